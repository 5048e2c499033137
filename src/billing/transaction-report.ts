// The payment report: every movement of money whose outcome is known, walked from one instant to the next.
import type { FastifyInstance } from 'fastify'
import { ApiError } from '../lib/errors.ts'
import { sendJson } from '../lib/http/listener.ts'
import type { Db } from '../lib/pg/db.ts'
import type { Param, Statement } from '../lib/pg/types.ts'
import { Type } from '../lib/shape/schema.ts'
import { boolean, decimal, type Fields, instant, integer, shape, text } from '../lib/shape/shape.ts'
import { readInstant, TimeError } from '../lib/time.ts'
import { limited, weightOf } from '../lists/page.ts'
import { uuidIn } from './body.ts'
import { describe, lineOf, ok, type Post } from './route.ts'

const optional = { nullable: true }

const told = (names: Record<string, string>): Fields =>
  Object.fromEntries(Object.entries(names).map(([name, description]) => [name, text(description, optional)]))

const reportTransaction = shape('ReportTransaction', 'r', {
  order_id: text('Order it belongs to (UUID).'),
  trx_id: text('Identifier (UUID).'),
  trx_created_at: instant('When it was entered here: no two rows share an instant, and later rows come later.'),
  amount: decimal('Amount in major units, positive also for refunds.', { example: 10.5 }),
  amount_usd: decimal('The same in US dollars, by the rate of the day; null without a rate.', optional),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  status: text('`succeeded`, `failed` or `refunded`.', { example: 'succeeded' }),
  integration_type: text('How the payment was made.', optional),
  region: text('Region of the merchant account.', optional),
  pp_id: integer('Price point.', optional),
  pp_version: integer('Version of the price point.', optional),
  is_cit: boolean('Whether the customer was there and started it.'),
  is_fallback: boolean('Whether it was tried at a second provider after the first one failed.'),
  is_vaulted: boolean('Whether the card is kept in a vault.'),
  psp: text('Payment provider.', { example: 'simulator' }),
  psp_date: instant('When the provider says it happened.', optional),
  psp_transaction_type: text('`sale` or `refund`.', { example: 'sale' }),
  ...told({
    psp_transaction_id: 'What the provider calls it.',
    psp_merchant_id: 'Merchant account at the provider.',
    psp_status: 'Status in the provider’s words.',
    psp_card_token_type: 'Kind of the card’s token.',
    psp_reason_message: 'Why it was declined, in the provider’s words.',
    psp_reason_type: 'Kind of the reason.',
    psp_reason_code: 'Code of the reason.',
    psp_reason_decline_type: 'Whether trying again may help: `soft` or `hard`.',
    meta_subs_id: 'Subscription.',
    meta_subs_iteration: 'Which period of the subscription.',
    meta_retry_step: 'Which try of the period.',
    meta_oneoff_id: 'One-off purchase.',
    meta_client_svc_project_id: 'Project at the client.',
    meta_client_svc_session_id: 'Session at the client.',
    meta_client_svc_price_id: 'Price at the client.',
    pm_type: 'Kind of payment method.',
  }),
  threeds_challenge_issued: boolean('Whether 3-D Secure asked the customer.'),
  ...told({
    threeds_protocol_version: 'Version of 3-D Secure.',
    threeds_response_code: 'Answer of 3-D Secure.',
    threeds_reason_code: 'Code of its reason.',
    threeds_reason_text: 'Its reason.',
    authorization_type: 'Kind of authorization.',
    network: 'Card network.',
  }),
  pm_data_is_network_tokenized: boolean('Whether the network’s own token stood for the card.'),
  ...told({
    pm_data_bin_account_funding_type: 'Credit, debit or prepaid.',
    pm_data_bin_account_number_type: 'Kind of account number.',
    pm_data_bin_issuer_name: 'Issuer of the card.',
    pm_data_bin_issuer_country_code: 'Country of the issuer.',
    pm_data_bin_issuer_currency_code: 'Currency of the issuer.',
    pm_data_bin_prepaid_reloadable_indicator: 'Whether a prepaid card can be loaded again.',
    pm_data_bin_product_code: 'Code of the card product.',
    pm_data_bin_product_name: 'Name of the card product.',
    pm_data_bin_product_usage_type: 'Consumer or commercial.',
    pm_data_bin_regional_restriction: 'Where the card may be used.',
    pm_data_expiration_date: 'When the card expires.',
    pm_data_first6: 'First six digits of the card.',
    pm_data_last4: 'Last four digits of the card.',
  }),
})

const reportIn = Type.Object(
  {
    last_transaction_date: Type.String({
      format: 'date-time',
      description:
        'Rows with a later `trx_created_at` are returned: at first any early date, then that of the last row.',
      examples: ['2026-01-31T23:59:59.123456Z'],
    }),
    subs_id: Type.Optional(uuidIn('Rows with this `meta_subs_id` only.', { nullable: true })),
    order_id: Type.Optional(uuidIn('Rows of this order only.', { nullable: true })),
    oneoff_id: Type.Optional(uuidIn('Rows with this `meta_oneoff_id` only.', { nullable: true })),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: 500, default: 100, description: 'At most so many rows.' }),
    ),
  },
  { title: 'TransactionReportIn', additionalProperties: false },
)

const reportOut = Type.Object(
  { transactions: Type.Array(reportTransaction.schema, { description: 'Oldest first.' }) },
  { title: 'TransactionReport' },
)

interface ReportRequest {
  last_transaction_date: string
  subs_id?: string | null
  order_id?: string | null
  oneoff_id?: string | null
  limit?: number
}

const DEFAULT_LIMIT = 100
const limitOf = ({ limit = DEFAULT_LIMIT }: ReportRequest) => limit

export function transactionReport(app: FastifyInstance, { db }: { db: Db }): void {
  const schema = {
    ...describe({
      operationId: 'reportTransactions',
      summary: 'Report payment transactions',
      description:
        'Oldest first. Passing the `trx_created_at` of the last row as the next `last_transaction_date` walks every row exactly once, whatever is charged meanwhile.',
    }),
    body: reportIn,
    ...ok('The next rows.', reportOut),
  }
  app.post<Post<ReportRequest>>('/transaction_report', { schema }, async ({ organizationId, body }, reply) => {
    const list = reportTransaction.beginList('{"transactions":[')
    const asked = read(organizationId, body)
    await db.fair(lineOf(organizationId), weightOf(limitOf(body)), () => db.read(...asked, list.add))
    return sendJson(reply, list.end(']}'))
  })
}

const FILTERS = { subs_id: 'meta_subs_id', order_id: 'order_id', oneoff_id: 'meta_oneoff_id' } as const
type Filter = keyof typeof FILTERS

/** One statement for each set of filters, so that each walks the index that fits. */
function read(organizationId: string, request: ReportRequest): [Statement, Param[]] {
  const limit = limitOf(request)
  const params: Param[] = [organizationId, instantField(request.last_transaction_date)]
  const given = (Object.keys(FILTERS) as Filter[]).filter((name) => request[name] != null)
  const conditions = given.map((name) => conditionsOf(name, request[name]!, params))
  const text = (most: number) => `
    select ${reportTransaction.columns} from (${walks(conditions, most)}) r order by r.trx_created_at limit ${most}`
  return [limited(['report', ...given].join(' '), limit, limit, text), params]
}

/** A filter's conditions, one of which holds: a row of ours has its UUID in lower case, an imported one keeps it as it came. */
function conditionsOf(name: Filter, uuid: string, params: Param[]): string[] {
  const forms = name === 'order_id' ? [uuid] : [uuid.toLowerCase(), uuid.toUpperCase(), uuid]
  // Of a form that is there twice one is null, which nothing equals: the statement stays the same, and no row comes twice.
  const distinct = forms.map((form, n) => (forms.indexOf(form) === n ? form : null))
  return distinct.map((form) => ` and r.${FILTERS[name]} = $${params.push(form)}`)
}

/** A walk in the order of an index for each way to meet all filters. With `= any` PostgreSQL would read and sort all rows. */
function walks(filters: string[][], most: number): string {
  let ways = ['']
  for (const conditions of filters) ways = ways.flatMap((way) => conditions.map((condition) => way + condition))
  return ways
    .map(
      (way) => `(select r.* from report_transactions r where r.organization_id = $1 and r.trx_created_at > $2${way}
        order by r.trx_created_at limit ${most})`,
    )
    .join(' union all ')
}

function instantField(value: string): string {
  try {
    return readInstant(value)
  } catch (error) {
    if (error instanceof TimeError)
      throw new ApiError(400, 'invalid_property', `last_transaction_date ${error.message}.`)
    throw error
  }
}
