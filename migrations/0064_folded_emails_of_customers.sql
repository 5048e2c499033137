-- breaking: no
--
-- The e-mail addresses of billing customers in the same folding as those of profiles: lower() follows the locale of the database.
-- The server fills the column for the rows that are stored already, a batch at a time.
alter table customers add column email_folded text;
create index customers_by_folded_email on customers (organization_id, email_folded) where email_folded is not null;
create index customers_unfolded on customers (organization_id, external_id) where email is not null and email_folded is null;
drop index customers_by_email;
