-- breaking: no
--
-- Real providers are called in more ways than the simulator: their calls are noted beside the order too.
alter table order_log drop constraint order_log_call_check;
alter table order_log add constraint order_log_call_check check (call in ('prepare', 'confirm', 'charge', 'look_up',
  'refuse', 'find_by_key', 'refund', 'refunds_of', 'disputes_of'));
