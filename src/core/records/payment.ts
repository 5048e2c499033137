// A payment: the transaction report's shape, the import's fields, and the fields that only the payment provider knows.
import { boolean, decimal, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { belongsElsewhere } from './customer.ts'
import { required, type Type } from './import/fields.ts'
import { amount, currency, usd } from './import/money-types.ts'
import * as from from './import/types.ts'
import { type Field, field, importedOnly, record, shownFields } from './record.ts'

const nullable = { nullable: true }
const optional = (description: string, read: Type = from.label): Field => field(text(description, nullable), read)

/** The fields that Tundish or an import sets. */
const own = {
  order_id: field(text('Order it belongs to (UUID).'), required(from.uuid)),
  trx_id: field(text('Identifier (UUID).'), required(from.uuid)),
  trx_created_at: field(
    instant(
      'When Tundish recorded it. No two rows of an organization have the same instant, and no row appears before one that was already returned.',
    ),
    required(from.past),
  ),
  currency_code: field(text('ISO 4217 code.', { example: 'USD' }), required(currency)),
  amount: field(decimal('Amount in major units, positive also for refunds.', { example: 10.5 }), required(amount)),
  amount_usd: field(decimal('The same in US dollars, by the rate of the day; null without a rate.', nullable), usd),
  status: field(
    text('`succeeded`, `failed` or `refunded`.', { example: 'succeeded' }),
    required(from.oneOf('succeeded', 'failed', 'refunded')),
  ),
  integration_type: optional('How the payment was made.'),
  region: optional('Region of the merchant account.'),
  pp_id: field(integer('Price point.', nullable), from.integer(0)),
  pp_version: field(integer('Version of the price point.', nullable), from.integer(0)),
  is_cit: field(boolean('Whether the customer was present and initiated it.'), from.boolean),
  is_fallback: field(
    boolean('Whether it is a second attempt at another provider, after the first one failed.'),
    from.boolean,
  ),
  psp: field(text('Payment provider.', { example: 'simulator' }), required(from.filledLabel)),
  psp_merchant_id: optional('Merchant account at the provider.'),
  meta_subs_id: optional('Subscription.'),
  meta_subs_iteration: optional('Number of the subscription’s period.'),
  meta_retry_step: optional('Number of the attempt for the period.'),
  meta_oneoff_id: optional('One-off purchase.'),
  meta_client_svc_project_id: optional('Project at the client.'),
  meta_client_svc_session_id: optional('Session at the client.'),
  meta_client_svc_price_id: optional('Price at the client.'),
}

/** The fields that only the provider knows. */
const provided = {
  psp_transaction_type: field(
    text('`sale`, `refund`, `soft_refund` (no money moved), `chargeback` or `chargeback_reversal` (of a dispute).', {
      example: 'sale',
    }),
    required(from.filledLabel),
  ),
  psp_transaction_id: optional('Identifier at the provider.'),
  psp_status: optional('The provider’s status.'),
  psp_date: field(instant('When it happened, according to the provider.', nullable), from.instant),
  psp_card_token_type: optional('Kind of the card’s token.'),
  psp_reason_message: optional('The provider’s message about why it was declined.', from.freeText),
  psp_reason_type: optional('Kind of the reason.'),
  psp_reason_code: optional('Code of the reason.'),
  psp_reason_decline_type: optional('Whether trying again may help: `soft` or `hard`.'),
  pm_type: optional('Kind of payment method.'),
  threeds_protocol_version: optional('Version of 3-D Secure.'),
  threeds_response_code: optional('Response of 3-D Secure.'),
  threeds_reason_code: optional('Code of its reason.'),
  threeds_reason_text: optional('Its reason.', from.freeText),
  authorization_type: optional('Kind of authorization.'),
  network: optional('Card network.'),
  pm_data_bin_account_funding_type: optional('Credit, debit or prepaid.'),
  pm_data_bin_account_number_type: optional('Kind of account number.'),
  pm_data_bin_issuer_name: optional('Issuer of the card.', from.name),
  pm_data_bin_issuer_country_code: optional('Country of the issuer.'),
  pm_data_bin_issuer_currency_code: optional('Currency of the issuer.'),
  pm_data_bin_prepaid_reloadable_indicator: optional('Whether a prepaid card can be loaded again.'),
  pm_data_bin_product_code: optional('Code of the card product.'),
  pm_data_bin_product_name: optional('Name of the card product.', from.name),
  pm_data_bin_product_usage_type: optional('Consumer or commercial.'),
  pm_data_bin_regional_restriction: optional('Where the card may be used.'),
  pm_data_expiration_date: optional('When the card expires.'),
  pm_data_first6: optional('First six digits of the card.', from.digits(6)),
  pm_data_last4: optional('Last four digits of the card.', from.digits(4)),
}

/** The same: yes or no, and no when the provider does not say. */
const flags = {
  is_vaulted: field(boolean('Whether the card is stored in a vault.'), from.boolean),
  threeds_challenge_issued: field(boolean('Whether 3-D Secure challenged the customer.'), from.boolean),
  pm_data_is_network_tokenized: field(boolean('Whether a token of the card network was used.'), from.boolean),
}

/** What a provider says of a payment, under the names of the transaction report; null is unknown. */
export type PaymentDetails = Record<keyof typeof provided, string | null> & Record<keyof typeof flags, boolean | null>

export const detailFlags: ReadonlySet<string> = new Set(Object.keys(flags))

/** All details unknown: adapters spread it and add what they know. */
export const noDetails = Object.fromEntries(
  Object.keys({ ...provided, ...flags }).map((name) => [name, null]),
) as PaymentDetails

export const paymentRecord = record({
  name: 'payment',
  table: 'report_transactions',
  tenant: 'organization_id',
  key: ['trx_id'],
  fields: {
    external_id: importedOnly(required(from.externalId)),
    ...own,
    ...provided,
    ...flags,
    payment_method_token: importedOnly(from.cardToken),
    // The provider's customer that the card is attached to.
    psp_customer_id: importedOnly(from.label),
  },
  conflicts: [
    { reason: 'payment.external_id belongs to another project of the organization', where: belongsElsewhere },
    {
      reason: 'payment.trx_id belongs to another project of the organization',
      where: ({ organization_id, project_id }) => `exists (
        select from report_transactions t join customers c using (organization_id, external_id)
        where t.organization_id = ${organization_id} and t.trx_id = s.trx_id and c.project_id <> ${project_id})`,
    },
    {
      reason: 'payment.order_id is an order of another customer, which was charged here',
      where: ({ organization_id }) => `exists (
        select from orders o where o.organization_id = ${organization_id} and o.order_id = s.order_id
          and o.external_id <> s.external_id)`,
    },
  ],
  // Clients walk the report by it.
  kept: ['trx_created_at'],
  added: ({ stamp }) => ({ imported: 'true', updated_at: stamp }),
  readOnlyRows: (row) => `not ${row}.imported`,
})

/** As the transaction report shows it. */
export const reportTransaction = shape('ReportTransaction', 'r', shownFields({ ...own, ...provided, ...flags }))
