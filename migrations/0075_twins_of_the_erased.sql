-- breaking: no
--
-- Other profiles with the e-mail address or the customer of an erased one, as they were known when it was erased: the address is
-- gone afterwards, and the receipt has to name what the erasure did not reach.
create table erasure_twins (
  project_id text collate "C" not null references projects (id),
  profile_id text collate "C" not null,
  twin_id    text collate "C" not null,
  primary key (project_id, profile_id, twin_id)
);

-- Finds who is behind a customer of the provider: twins, and objects that are imported from there.
create index report_transactions_by_provider_customer on report_transactions (organization_id, psp_customer_id, external_id)
  where psp_customer_id is not null;
create index transactions_by_session on transactions (project_id, session_id) where session_id is not null;
