-- breaking: no
--
-- The provider's own id of the account that a merchant account was first connected to. Its payments and saved cards exist in that
-- account only, so a key of another one is refused. Null: it was connected before this was stored, or never.
alter table merchant_accounts add column provider_account text;
