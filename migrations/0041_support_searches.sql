-- breaking: no
--
-- Support searches for what the provider's pages and e-mails quote: its id of a refund or of a dispute. The index of
-- refunds by order and provider's id serves both in this order.
drop index refunds_by_provider_transaction;
create index refunds_by_provider_transaction on refunds (organization_id, provider_transaction_id, order_id)
  where provider_transaction_id is not null;
create index disputes_by_id on disputes (organization_id, dispute_id);

-- A customer's declined payments, for the page of a person: why did the card not renew?
create index report_transactions_by_customer_declined on report_transactions (organization_id, external_id, trx_created_at)
  where psp_transaction_type = 'sale' and status = 'failed';
