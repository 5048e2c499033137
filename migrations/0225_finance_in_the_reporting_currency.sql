-- breaking: no
--
-- The currency that a month of the finance report sums in, kept when it is closed: what a closed month is worth must not change.
alter table finance_months add column currency text not null default 'USD';

-- The amount in that currency; null without a rate. In US dollars it is `amount_usd`: months that were closed earlier have no other.
alter table finance_rows add column amount_reported numeric;

-- Finds the rows of closed months whose rate may become known.
create index finance_rows_without_rate on finance_rows (organization_id, order_id) where amount_reported is null and amount <> 0;

-- The currency in which the finance report of an organization sums: that of its closed months; without any, the reporting currency of its
-- projects if they have one; otherwise the US dollar.
create function finance_currency(organization text) returns text language sql stable parallel safe as $$
  select coalesce(
    (select m.currency from finance_months m where m.organization_id = organization order by m.month desc limit 1),
    (select min(p.reporting_currency) from projects p where p.organization_id = organization
     having count(distinct p.reporting_currency) = 1),
    'USD') $$;
