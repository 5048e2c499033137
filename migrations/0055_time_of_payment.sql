-- breaking: no
--
-- Saved cards, finance and figures go by the time of a payment: the provider's, or that of its row where the provider's is not
-- known. A row may be stored long after its payment, by an import that follows an account or by a late look-up.

-- Figures of a day, the finance report of a month, and the list of refunds and disputes.
create index report_transactions_by_payment on report_transactions
  (organization_id, (coalesce(psp_date, trx_created_at)), trx_created_at);

-- Finds the saved card: the customer's latest successful payments.
drop index report_transactions_by_customer;
create index report_transactions_by_customer on report_transactions
  (organization_id, external_id, (coalesce(psp_date, trx_created_at)), trx_created_at)
  where psp_transaction_type = 'sale' and status = 'succeeded';
drop index report_transactions_by_customer_back;
create index report_transactions_by_customer_back on report_transactions
  (organization_id, external_id, (coalesce(psp_date, trx_created_at)))
  where psp_transaction_type <> 'sale';
drop index report_transactions_by_customer_declined;
create index report_transactions_by_customer_declined on report_transactions
  (organization_id, external_id, (coalesce(psp_date, trx_created_at)))
  where psp_transaction_type = 'sale' and status = 'failed';

-- Figures until now went by the time of the row. Where the days differ, all days of the project are computed again.
insert into figure_marks (project_id, family, day)
select distinct c.project_id, 'all', current_date
from report_transactions r
join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id
where (r.psp_date at time zone 'UTC')::date <> (r.trx_created_at at time zone 'UTC')::date;
