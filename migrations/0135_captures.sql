-- breaking: no
--
-- The log of provider calls takes captures of authorized payments.
alter table order_log drop constraint order_log_call_check;
alter table order_log add constraint order_log_call_check check (call in ('prepare', 'confirm', 'charge', 'capture',
  'find_by_key', 'look_up', 'refuse', 'refund', 'refunds_of', 'disputes_of')) not valid;
