-- breaking: no
--
-- Payments of the payment report by their day, and what went back of them whenever that was: refund and dispute rates over the payments
-- that they belong to.
create table figures_returned (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  currency   text collate "C" not null,
  payments   bigint not null,
  amount     numeric not null,
  amount_usd numeric not null,
  refunded_payments bigint not null,
  refunded     numeric not null,
  refunded_usd numeric not null,
  disputed_payments bigint not null,
  charged_back     numeric not null,
  charged_back_usd numeric not null,
  without_usd bigint not null,
  primary key (project_id, split, day, test, key, subkey, currency)
);

insert into figure_marks (project_id, family, day)
select distinct c.project_id, 'sales', (coalesce(r.psp_date, r.trx_created_at) at time zone 'UTC')::date
from report_transactions r join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id
where (r.psp_transaction_type <> 'sale' or r.status = 'succeeded') and c.project_id is not null;
