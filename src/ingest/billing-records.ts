// The kinds of records that belong to billing: merchant accounts, customers, and what they paid.
import { fieldsOf, required } from './fields.ts'
import type { Kind, Scope, Tenant } from './kind.ts'
import { amount, currency, readCode, usd } from './money-types.ts'
import { boolean, digits, externalId, id, instant, integer, label, oneOf, past, text, texts, uuid } from './types.ts'

// Their lines bring no times.
const dates = ({ stamp }: Scope) => ({ created_at: stamp, updated_at: stamp })

export const merchantAccount: Kind = {
  name: 'merchant_account',
  table: 'merchant_accounts',
  tenant: 'organization_id',
  key: ['psp', 'psp_merchant_id'],
  fields: fieldsOf({
    psp: required(label()),
    psp_merchant_id: required(label()),
    region: text,
    currencies: texts(readCode),
  }),
  added: dates,
}

// A customer's events go to its project, which therefore cannot change.
const isElsewhere = ({ organization_id, project_id }: Tenant) => `exists (
  select from customers c where c.organization_id = ${organization_id} and c.external_id = s.external_id
    and c.project_id <> ${project_id})`

export const customer: Kind = {
  name: 'customer',
  table: 'customers',
  tenant: 'organization_id',
  key: ['external_id'],
  fields: fieldsOf({ external_id: required(externalId), email: label(320), profile_id: id }),
  references: { profile_id: 'profile' },
  misfits: [{ reason: 'customer.external_id belongs to another project of the organization', where: isElsewhere }],
  added: (scope) => ({ project_id: scope.project_id, ...dates(scope) }),
}

// What a report transaction says of its card, and of how it was approved.
const texted = (...names: string[]) => Object.fromEntries(names.map((name) => [name, text]))

export const payment: Kind = {
  name: 'payment',
  table: 'report_transactions',
  tenant: 'organization_id',
  key: ['trx_id'],
  fields: fieldsOf({
    external_id: required(externalId),
    order_id: required(uuid),
    trx_id: required(uuid),
    trx_created_at: required(past),
    currency_code: required(currency),
    amount: required(amount),
    amount_usd: usd,
    status: required(oneOf('succeeded', 'failed', 'refunded')),
    psp: required(label()),
    psp_transaction_type: required(text),
    psp_merchant_id: label(),
    psp_date: instant,
    pp_id: integer(0),
    pp_version: integer(0),
    is_cit: boolean,
    is_fallback: boolean,
    is_vaulted: boolean,
    threeds_challenge_issued: boolean,
    pm_data_is_network_tokenized: boolean,
    meta_subs_id: label(),
    meta_oneoff_id: label(),
    pm_data_first6: digits(6),
    pm_data_last4: digits(4),
    payment_method_token: text,
    ...texted('integration_type', 'region', 'psp_transaction_id', 'psp_status', 'psp_card_token_type'),
    ...texted('psp_reason_message', 'psp_reason_type', 'psp_reason_code', 'psp_reason_decline_type'),
    ...texted('meta_subs_iteration', 'meta_retry_step', 'meta_client_svc_project_id', 'meta_client_svc_session_id'),
    ...texted('meta_client_svc_price_id', 'pm_type', 'threeds_protocol_version', 'threeds_response_code'),
    ...texted('threeds_reason_code', 'threeds_reason_text', 'authorization_type', 'network'),
    ...texted('pm_data_bin_account_funding_type', 'pm_data_bin_account_number_type', 'pm_data_bin_issuer_name'),
    ...texted('pm_data_bin_issuer_country_code', 'pm_data_bin_issuer_currency_code', 'pm_data_expiration_date'),
    ...texted('pm_data_bin_prepaid_reloadable_indicator', 'pm_data_bin_product_code', 'pm_data_bin_product_name'),
    ...texted('pm_data_bin_product_usage_type', 'pm_data_bin_regional_restriction'),
  }),
  misfits: [
    { reason: 'payment.external_id belongs to another project of the organization', where: isElsewhere },
    {
      reason: 'payment.trx_id belongs to another project of the organization',
      where: ({ organization_id, project_id }) => `exists (
        select from report_transactions t join customers c using (organization_id, external_id)
        where t.organization_id = ${organization_id} and t.trx_id = s.trx_id and c.project_id <> ${project_id})`,
    },
  ],
  // The walk of the report rests on it.
  kept: ['trx_created_at'],
  added: ({ stamp }) => ({ imported: 'true', updated_at: stamp }),
  untouchable: (row) => `not ${row}.imported`,
}
