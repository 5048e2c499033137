-- breaking: no
--
-- Why an operator ended a refund by hand, as orders have it.

alter table refunds add column resolved_because text;
