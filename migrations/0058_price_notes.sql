-- breaking: no
--
-- What the price of a subscription does not include, such as metered usage.
alter table subscriptions add column price_note text;
