-- breaking: no
--
-- A provider may decide days later, as a bank does for a refund. Such a charge or refund waits for nobody's action, so it has to be
-- told apart from one whose outcome nobody knows: that one needs an operator. Null unless the last answer was "pending".
alter table orders add column pending_since timestamptz;
alter table refunds add column pending_since timestamptz;
