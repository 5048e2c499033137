// Entries in the balances of merchant accounts: what was not paid out yet, and what has no payment here.
import { jsonOf } from '../../lib/json/json.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, decimal, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { TAG } from './finance.ts'
import { equals, list, ofOrganization } from './list.ts'
import { reading } from './operation.ts'

const PATH = '/organizations/:organization_id/finance/balance-entries'

const name = (row: string, of: string, source = 'e.source') =>
  `exists (select from ${row} where r.organization_id = e.organization_id and ${of} = ${source})`
// For columns whose indexes have the default collation, which a comparison in the collation of ids does not use.
const SOURCE = 'e.source collate "default"'
// What this program charged is stored under the PaymentIntent, which fees have besides the charge. The rest of an authorization that was
// captured in part is a refund at Stripe and none here: its fee is stored with the charge.
const PAID = 'f.transaction_id collate "default"'
const HERE = `(${name('report_transactions r', 'r.imported and r.psp_transaction_id', SOURCE)}
  or ${name('refunds r', 'r.provider_transaction_id', SOURCE)} or ${name('disputes r', 'r.dispute_id')}
  or exists (select from provider_fees f where f.organization_id = e.organization_id and f.entry_id = e.entry_id and f.psp = e.psp
    and f.psp_merchant_id = e.psp_merchant_id
    and (${name('orders r', 'r.charge_transaction_id', PAID)} or ${name('report_transactions r', 'r.imported and r.psp_transaction_id', PAID)})))`
const OF_PAYMENT = `(e.type in ('charge', 'payment', 'refund', 'payment_refund', 'refund_failure', 'payment_failure_refund')
  or (e.type = 'adjustment' and e.source is not null))`

const entry = shape('BalanceEntry', 'e', {
  entry_id: text('The provider’s id.', { example: 'txn_1NGk1a2eZvKYlo2C' }),
  psp: text('Payment provider.', { example: 'stripe' }),
  psp_merchant_id: text('Account at the provider.', { example: 'main' }),
  payout_id: text('The payout that it is in; null: still in the balance.', { nullable: true }),
  type: text('What it is, in the provider’s words.', { example: 'charge' }),
  amount: decimal('In major units; negative when the account paid.', { example: 10 }),
  fee: decimal('What the provider kept of it.', { example: 0.59 }),
  net: decimal('The amount less the fee.', { example: 9.41 }),
  currency_code: text('ISO 4217 code of the balance.', { example: 'USD' }),
  source: text('The provider’s id of the charge, refund, dispute or payout.', { nullable: true }),
  description: text('The provider’s words about it, if it is of no payment.', { nullable: true }),
  entered_at: instant('When it was entered.'),
  here: boolean('Whether its payment is known here; null if it is of none.', {
    sql: `case when ${OF_PAYMENT} then ${HERE} end`,
    nullable: true,
  }),
})

const balance = shape('UnpaidBalance', 'e', {
  psp: text('Payment provider.'),
  psp_merchant_id: text('Account at the provider.'),
  test: boolean('Whether the account moves test money.', { sql: 'coalesce(bool_or(a.is_sandbox), false)' }),
  currency_code: text('ISO 4217 code of the balance.'),
  entries: integer('How many entries it consists of.', { sql: 'count(*)' }),
  net: decimal('Their sum, less fees.', { sql: 'sum(e.net)' }),
  oldest: instant('When the oldest of them was entered.', { sql: 'min(e.entered_at)' }),
})

const balances = reading({
  id: 'getUnpaidBalance',
  right: 'reports',
  command: 'finance balance',
  path: '/organizations/:organization_id/finance/balance',
  tag: TAG,
  summary: 'Get what was not paid out yet',
  description:
    'The balance at the provider of each merchant account, by its currency, as far as its entries are known here.',
  columns: ['psp', 'psp_merchant_id', 'test', 'currency_code', 'entries', 'net', 'oldest'],
  response: Type.Named('UnpaidBalances', {
    data: Type.Array(balance.schema, { description: 'By account and currency.' }),
  }),
  async run({ db }, { params }) {
    const rows = await db.read({ name: 'sum unpaid balances', text: BALANCES }, [params.organization_id])
    return jsonOf({ data: balance.list(rows) })
  },
})

const BALANCES = `
  select ${balance.columns} from balance_entries e
  left join merchant_accounts a on a.organization_id = e.organization_id and a.psp = e.psp and a.psp_merchant_id = e.psp_merchant_id
  where e.organization_id = $1 and e.payout_id is null
  group by e.psp, e.psp_merchant_id, e.currency_code order by e.psp, e.psp_merchant_id, e.currency_code`

export const balanceEntries = [
  list({
    id: 'listBalanceEntries',
    right: 'reports',
    command: 'finance entries',
    columns: [
      'entry_id',
      'psp_merchant_id',
      'payout_id',
      'type',
      'amount',
      'fee',
      'net',
      'currency_code',
      'source',
      'here',
    ],
    path: PATH,
    tag: TAG,
    summary: 'List entries of balances',
    description: 'What payouts consist of, and what is still in the balance.',
    shape: entry,
    from: 'balance_entries e',
    at: 'e.entered_at',
    key: `md5(e.psp || ' ' || e.psp_merchant_id || ' ' || e.entry_id)`,
    filters: {
      payout_id: equals('e.payout_id', 'Only those of this payout.', { maxLength: 256 }),
      unpaid: {
        schema: Type.Boolean({ description: 'Whether they are still in the balance.' }),
        where: (value) => `(e.payout_id is null) = ${value}`,
      },
      unknown: {
        schema: Type.Boolean({ description: 'Only those of payments that are not known here.' }),
        where: (value) => `(${OF_PAYMENT} and not ${HERE}) = ${value}`,
      },
    },
    ...ofOrganization('e'),
  }),
  balances,
] as const
