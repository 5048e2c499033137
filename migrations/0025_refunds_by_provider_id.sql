-- breaking: no
--
-- That a provider gives two refunds of an order one id is its mistake, and must not keep the second from being settled.
drop index refunds_by_provider_transaction;
create index refunds_by_provider_transaction on refunds (organization_id, order_id, provider_transaction_id)
  where provider_transaction_id is not null;
