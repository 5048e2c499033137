-- breaking: no
--
-- Figures of payment attempts are also split by merchant account: all days with payments are computed again.
insert into figure_marks (project_id, family, day)
select distinct project_id, 'payments', day from figures_payments where split = '';

-- Support searches for the provider's id of an imported payment, refund or dispute. Charges and refunds made by Tundish are found
-- by orders and refunds, so that this index costs a charge nothing.
create index report_transactions_by_provider_id on report_transactions (organization_id, psp_transaction_id)
  where imported and psp_transaction_id is not null;
