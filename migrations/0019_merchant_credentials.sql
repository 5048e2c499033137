-- breaking: no
--
-- Merchant accounts are connected to their payment provider: credentials, mode and notifications belong to each of them.

alter table merchant_accounts
  -- Whether the account moves play money only. Null: it was never connected; the simulator's always does.
  add column is_sandbox boolean,
  -- The provider's secret key, sealed under the master key. Null: not connected, its cards cannot be charged.
  add column credentials bytea,
  -- The end of that key, by which people tell keys apart.
  add column credentials_last4 text,
  -- A JSON list of the secrets that sign the provider's notifications, sealed too; several while one is rotated.
  add column webhook_secrets bytea,
  add column connected_at timestamptz,
  -- The last notification with a valid signature.
  add column notified_at timestamptz,
  add constraint connected_accounts_have_a_mode check (credentials is null or
    (is_sandbox is not null and credentials_last4 is not null and connected_at is not null));

-- Whether an erasure is repeated at the payment provider: the customer there is emptied (`on`) or deleted (`delete`).
alter table organizations
  add column erase_at_provider text not null default 'off' check (erase_at_provider in ('off', 'on', 'delete'));
