// Every text column of the database is wiped by an erasure or was decided not to be: a new one fails here until it is decided.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setUpDb } from '../../support/database.ts'
import { PERSONAL } from './person.ts'

// What an erasure keeps on purpose in the tables with people: with what is personal, every text column of them.
const KEPT: Record<string, string> = {
  profiles: 'project_id id country locale funnel_id',
  sessions:
    'project_id id profile_id funnel_id experiment_id locale country region_code city timezone locale_code visit_source visit_medium visit_campaign visit_content visit_term visit_referrer visit_device visit_browser visit_os visit_variant',
  replies: 'project_id session_id screen_id element_id screen_custom_id element_type element_custom_id',
  customers: 'organization_id external_id project_id profile_id',
  orders:
    'organization_id external_id project_id idempotency_key currency_code status failed_message_for_user psp psp_merchant_id region payment_method_token provider_key provider_handle provider_customer provider_mismatch charge_transaction_id asked_currency_code resolved_because grants',
  credit_entries: 'organization_id project_id external_id unit account cause idempotency_key',
  refunds:
    'organization_id external_id idempotency_key currency_code status provider_key origin provider_transaction_id provider_mismatch resolved_because',
  events: 'project_id type object_id profile_id',
  webhook_attempts: 'project_id error url',
}

// Tables of records without personal fields: a new field is decided upon in its record.
const RECORDS = ['funnels', 'experiments', 'products', 'subscriptions', 'transactions', 'report_transactions']

// Of people, the other tables have ids and what happened to their payments; the rest is about tenants and operators.
const IMPERSONAL: Record<string, string> = {
  api_import_ids: 'project_id source kind id label',
  api_imports: 'organization_id project_id source options status place notes',
  audit_chain_keys: 'sealed',
  audit_head: 'hash',
  audit_log: 'actor_kind actor source action target before after hash',
  consumables: 'organization_id external_id currency_code',
  credit_accounts: 'organization_id external_id unit',
  credit_clocks: 'organization_id',
  credit_grants: 'organization_id external_id unit',
  credit_holds: 'organization_id external_id unit status',
  credit_keys: 'organization_id external_id idempotency_key request',
  credit_rules: 'organization_id currency_code unit',
  credit_top_ups: 'organization_id external_id unit status off_reason currency_code',
  credit_units: 'organization_id unit name',
  charge_caps: 'organization_id scope per currency_code',
  charge_counters: 'organization_id external_id per currency_code',
  counts: 'project_id list field value',
  dashboard_sessions: 'hash',
  people_sessions: 'hash subject name access tokens',
  disputes: 'organization_id dispute_id currency_code status reason',
  erasure_marks: 'project_id',
  erasure_twins: 'project_id profile_id twin_id',
  erasures: 'project_id profile_id',
  detached_cards: 'organization_id psp psp_merchant_id token',
  exchange_rates: 'organization_id currency_code',
  failovers: 'loss',
  figure_failures: 'project_id family code',
  figure_marks: 'project_id family',
  figure_progress: 'project_id',
  figure_reports: 'organization_id',
  figure_settings: 'project_id time_zone currency',
  figures_by_older: 'project_id family',
  figures_answers: 'project_id split key subkey element kind value',
  figures_declines: 'project_id split key subkey currency',
  figures_experiments: 'project_id split key subkey',
  figures_payments: 'project_id split key subkey',
  figures_renewals: 'project_id split key subkey currency',
  figures_returned: 'project_id split key subkey currency',
  figures_sales: 'project_id split key subkey currency',
  figures_screens: 'project_id split key subkey',
  figures_spend: 'project_id split key subkey currency',
  figures_subscriptions: 'project_id split key subkey currency',
  figures_visits: 'project_id split key subkey',
  figures_worth: 'project_id split key subkey currency base',
  // Of operators; messages have sums alone.
  alert_settings: 'project_id',
  alert_destinations: 'project_id id kind address shown receives last_error',
  alert_rules: 'project_id id metric condition dimension value problem',
  alert_messages: 'project_id destination_id kind rule_id content status error',
  balance_entries:
    'organization_id psp psp_merchant_id entry_id payout_id type category currency_code source description',
  provider_payouts: 'organization_id psp psp_merchant_id payout_id currency_code status failure_code bank_reference',
  finance_months: 'organization_id time_zone currency',
  finance_rows: 'organization_id project_id kind currency_code fee_currency psp psp_merchant_id psp_transaction_id',
  instance: 'name value',
  key_uses: 'organization_id project_id',
  lost_movements:
    'organization_id psp psp_merchant_id transaction_id type state provider_key reference charge_transaction_id provider_customer currency_code accepted_because',
  merchant_accounts:
    'organization_id psp psp_merchant_id region currencies credentials credentials_last4 provider_account webhook_secrets',
  operator_keys: 'name hash scope role organizations projects refund_limits',
  order_log: 'organization_id call outcome',
  organization_clocks: 'organization_id',
  organizations: 'id name one_off_charge_max_amount erase_at_provider',
  pending_notifications: 'organization_id psp psp_merchant_id notification_id event',
  profile_aliases: 'project_id alias profile_id',
  project_clocks: 'project_id',
  projects: 'id organization_id name time_zone reporting_currency',
  provider_customers: 'organization_id external_id psp psp_merchant_id customer',
  provider_erasures: 'organization_id psp psp_merchant_id target target_kind project_id profile_id customer how why',
  provider_fees: 'organization_id psp psp_merchant_id transaction_id move entry_id currency_code',
  provider_notifications: 'organization_id psp psp_merchant_id notification_id kind',
  rates_fetch: 'url etag last_modified error',
  record_writers: 'project_id record code',
  saved_cards: 'organization_id psp psp_merchant_id token network last4 expiration_date',
  schema_migrations: 'name',
  secret_keys: 'organization_id project_id name hash sealed scopes last_four',
  sessions_to_describe: 'project_id after',
  shared_exchange_rates: 'currency_code',
  sign_in_links: 'hash',
  spend: 'project_id source campaign currency_code',
  stripe_imports: 'organization_id project_id psp_merchant_id options status step after tally error',
  stripe_checkouts: 'organization_id project_id bought names',
  stripe_invoice_payments: 'organization_id project_id payment subscription_id',
  sync_readers: 'project_id list',
  unlisted_accounts: 'organization_id psp psp_merchant_id cause',
  waiting_links: 'project_id record id field named',
  webhook_deliveries: 'project_id status',
  webhook_endpoints: 'project_id url kinds disabled_because',
}

const fresh = setUpDb()

test('every text column is wiped by an erasure, or kept on purpose', async () => {
  const rows = await fresh.db.query(
    `select table_name as table, string_agg(column_name, ' ' order by column_name collate "C") as columns
     from information_schema.columns
     where table_schema = 'public' and data_type in ('text', 'json', 'jsonb', 'character varying', 'bytea', 'ARRAY', 'inet')
     group by 1`,
  )
  const found = Object.fromEntries(rows.map(({ table, columns }) => [table!, columns!]))
  const decided = { ...IMPERSONAL, ...Object.fromEntries(RECORDS.map((table) => [table, found[table]!])) }
  for (const [table, personal] of Object.entries(PERSONAL))
    decided[table] = [...Object.keys(personal), KEPT[table]!].join(' ')
  for (const [table, columns] of Object.entries(decided)) decided[table] = columns.split(' ').sort().join(' ')
  assert.deepEqual(found, decided)
})
