-- breaking: no
--
-- Payments whose first attempt was declined, by the day of that attempt, and those of them that were paid later. `attempt` is the one that
-- succeeded, from 2; empty if none did.
create table figures_declines (
  project_id text collate "C" not null,
  split      text collate "C" not null,
  day        date not null,
  test       boolean not null,
  key        text collate "C" not null,
  subkey     text collate "C" not null,
  currency   text collate "C" not null,
  declines   bigint not null,
  recovered  bigint not null,
  amount     numeric not null,
  amount_usd numeric not null,
  recovered_amount     numeric not null,
  recovered_amount_usd numeric not null,
  without_usd bigint not null,
  primary key (project_id, split, day, test, key, subkey, currency)
);

-- The declined payments of a day.
create index report_transactions_declined on report_transactions (organization_id, (coalesce(psp_date, trx_created_at)))
  where psp_transaction_type = 'sale' and status = 'failed';

insert into figure_marks (project_id, family, day)
select distinct c.project_id, 'declines', (coalesce(r.psp_date, r.trx_created_at) at time zone 'UTC')::date
from report_transactions r join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id
where r.psp_transaction_type = 'sale' and r.status = 'failed' and c.project_id is not null;
