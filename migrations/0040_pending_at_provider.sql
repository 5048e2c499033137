-- breaking: no
--
-- Since when the provider has answered "pending", because it decides days later, as a bank does for a refund. Such a charge or refund needs no
-- operator; one whose outcome is unknown does. Null unless the last answer was "pending".
alter table orders add column pending_since timestamptz;
alter table refunds add column pending_since timestamptz;
