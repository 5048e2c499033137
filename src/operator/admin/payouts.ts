// Payouts of merchant accounts: what each consists of, what is still in the balance, and the line of the bank that was found for it.
import { readDay } from '../../lib/days.ts'
import { ApiError, Refusal } from '../../lib/errors.ts'
import { MoneyError, readAmount, toMinor } from '../../lib/money.ts'
import type { Query } from '../../lib/pg/types.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { boolean, decimal, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { notFound, requireOrganization } from './exist.ts'
import { TAG } from './finance.ts'
import { equals, list, ofOrganization } from './list.ts'
import type { Change, Operation, Reading } from './operation.ts'

const PATH = '/organizations/:organization_id/finance/payouts'
const ENTRIES = '/organizations/:organization_id/finance/balance-entries'

// The entry of the payout itself is not one of its movements.
const IS_MOVEMENT = `not (e.type in ('payout', 'payout_cancel', 'payout_failure') and e.source = o.payout_id)`
const sum = (what: string, condition = 'true') => `
  (select coalesce(sum(${what}) filter (where ${condition}), 0) from balance_entries e
   where e.organization_id = o.organization_id and e.payout_id = o.payout_id and e.psp = o.psp
     and e.psp_merchant_id = o.psp_merchant_id and ${IS_MOVEMENT})`
const CHARGES = `e.type in ('charge', 'payment')`
const REFUNDS = `e.type in ('refund', 'payment_refund', 'refund_failure', 'payment_failure_refund')`
const FEES = `e.type in ('stripe_fee', 'stripe_fx_fee', 'tax_fee', 'application_fee')`
const part = (description: string, sql: string) => decimal(description, { sql, example: 12.5 })

const payout = shape('Payout', 'o', {
  psp: text('Payment provider.', { example: 'stripe' }),
  psp_merchant_id: text('Account at the provider.', { example: 'main' }),
  payout_id: text('The provider’s id.', { example: 'po_1NGk1a2eZvKYlo2C' }),
  test: boolean('Whether the account moves test money.', {
    sql: `coalesce((select a.is_sandbox from merchant_accounts a where a.organization_id = o.organization_id and a.psp = o.psp
      and a.psp_merchant_id = o.psp_merchant_id), false)`,
  }),
  amount: decimal('In major units; negative if money was taken from the bank account.', { example: 1158.2 }),
  currency_code: text('ISO 4217 code.', { example: 'USD' }),
  status: text('Its state at the provider; a failed one is in the balance again.', {
    enum: ['pending', 'in_transit', 'paid', 'failed', 'canceled'],
  }),
  automatic: boolean('Whether it was made by a schedule. Of others, the provider does not tell what they consist of.', {
    sql: 'o.is_automatic',
  }),
  created_at: instant('When it was made.'),
  arrives_on: text('The day on which it arrives.', {
    sql: `to_char(o.arrives_on, 'YYYY-MM-DD')`,
    example: '2026-10-05',
  }),
  failure_code: text('Why it failed.', { nullable: true }),
  entries: integer('How many entries of the balance it consists of.', { sql: sum('1'), example: 120 }),
  charged: part('Payments in it.', sum('e.amount', CHARGES)),
  refunded: part('Refunds in it, negative.', sum('e.amount', REFUNDS)),
  fees: part('Fees of the payments and refunds in it, negative.', sum('-e.fee')),
  account_fees: part('Fees that were charged to the account, negative.', sum('e.amount', FEES)),
  adjusted: part(
    'Disputes, corrections by the provider, failed payouts that are paid again, and all else.',
    sum('e.amount', `not (${CHARGES} or ${REFUNDS} or ${FEES})`),
  ),
  difference: decimal('`amount` less all of these: 0, unless something is missing. Null unless `automatic`.', {
    sql: `case when o.is_automatic then o.amount - ${sum('e.net')} end`,
    nullable: true,
    example: 0,
  }),
  bank_day: text('The day of the bank’s line, if it was found.', {
    sql: `to_char(o.bank_day, 'YYYY-MM-DD')`,
    nullable: true,
  }),
  bank_amount: decimal('Its amount.', { nullable: true }),
  bank_reference: text('What identifies it at the bank.', { nullable: true }),
  matched_at: instant('When an operator noted it.', { nullable: true }),
})

const name = (row: string, of: string) =>
  `exists (select from ${row} where r.organization_id = e.organization_id and ${of} = e.source)`
// What this program charged is stored under the PaymentIntent, which fees have besides the charge.
const HERE = `(${name('report_transactions r', 'r.imported and r.psp_transaction_id')}
  or ${name('refunds r', 'r.provider_transaction_id')} or ${name('disputes r', 'r.dispute_id')}
  or exists (select from provider_fees f join orders r on r.organization_id = f.organization_id and r.charge_transaction_id = f.transaction_id
    where f.organization_id = e.organization_id and f.entry_id = e.entry_id and f.psp = e.psp
      and f.psp_merchant_id = e.psp_merchant_id))`
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

const balances: Reading = {
  id: 'getUnpaidBalance',
  right: 'reports',
  command: 'finance balance',
  method: 'GET',
  path: '/organizations/:organization_id/finance/balance',
  tag: TAG,
  summary: 'Get what was not paid out yet',
  description:
    'The balance at the provider of each merchant account, by its currency, as far as its entries are known here.',
  columns: ['psp', 'psp_merchant_id', 'test', 'currency_code', 'entries', 'net', 'oldest'],
  response: Type.Object(
    {
      data: Type.Array(
        Type.Object(
          {
            psp: Type.String({ description: 'Payment provider.' }),
            psp_merchant_id: Type.String({ description: 'Account at the provider.' }),
            test: Type.Boolean({ description: 'Whether the account moves test money.' }),
            currency_code: Type.String({ description: 'ISO 4217 code of the balance.' }),
            entries: Type.Integer({ description: 'How many entries it consists of.' }),
            net: Type.Number({ description: 'Their sum, less fees.' }),
            oldest: Type.String({ format: 'date-time', description: 'When the oldest of them was entered.' }),
          },
          { title: 'UnpaidBalance', additionalProperties: false },
        ),
        { description: 'By account and currency.' },
      ),
    },
    { title: 'UnpaidBalances', additionalProperties: false },
  ),
  async run({ db }, { params }) {
    await requireOrganization(db.query, params.organization_id!)
    const rows = await db.read({ name: 'sum unpaid balances', text: BALANCES }, [params.organization_id!])
    return BALANCE.writeList(rows, '{"data":[', ']}').toString()
  },
}

const BALANCE = shape('UnpaidBalanceRow', 'e', {
  psp: text(''),
  psp_merchant_id: text(''),
  test: boolean('', { sql: 'coalesce(bool_or(a.is_sandbox), false)' }),
  currency_code: text(''),
  entries: integer('', { sql: 'count(*)' }),
  net: decimal('', { sql: 'sum(e.net)' }),
  oldest: instant('', { sql: 'min(e.entered_at)' }),
})
const BALANCES = `
  select ${BALANCE.columns} from balance_entries e
  left join merchant_accounts a on a.organization_id = e.organization_id and a.psp = e.psp and a.psp_merchant_id = e.psp_merchant_id
  where e.organization_id = $1 and e.payout_id is null
  group by e.psp, e.psp_merchant_id, e.currency_code order by e.psp, e.psp_merchant_id, e.currency_code`

const match: Change = {
  id: 'matchPayout',
  right: 'books',
  command: 'finance match',
  method: 'POST',
  path: `${PATH}/:psp/:psp_merchant_id/:payout_id/bank`,
  tag: TAG,
  summary: 'Tick off a payout against a line of the bank',
  description: 'Notes the line that the bank shows for it. Noting it again replaces what was noted.',
  body: Type.Object(
    {
      day: Type.String({ description: 'The day of the line.', examples: ['2026-10-05'], maxLength: 40 }),
      amount: {
        type: ['number', 'string'],
        description: 'Its amount in the currency of the payout; it must be the same.',
        examples: ['1158.20'],
      } as Schema,
      reference: Type.Optional(
        Type.String({ description: 'What identifies it at the bank.', minLength: 1, maxLength: 200 }),
      ),
    },
    { title: 'BankLine', additionalProperties: false },
  ),
  response: payout.schema,
  checkInput: ({ body }) => void readDay('day', String(body.day)),
  change: (query, { params, body, exact = body }) =>
    set(query, params, {
      day: readDay('day', String(body.day)),
      amount: exact.amount as Parameters<typeof readAmount>[0],
      reference: (body.reference as string | undefined) ?? null,
    }),
}

const unmatch: Change = {
  id: 'unmatchPayout',
  right: 'books',
  command: 'finance unmatch',
  method: 'DELETE',
  path: `${PATH}/:psp/:psp_merchant_id/:payout_id/bank`,
  tag: TAG,
  summary: 'Remove the line of the bank from a payout',
  response: payout.schema,
  change: (query, { params }) => set(query, params, undefined),
}

interface Line {
  day: string
  amount: Parameters<typeof readAmount>[0]
  reference: string | null
}

async function set(query: Query, params: Record<string, string>, line: Line | undefined) {
  const key = ['organization_id', 'psp', 'psp_merchant_id', 'payout_id'].map((one) => params[one]!)
  await requireOrganization(query, key[0]!)
  const [known] = await query(FIND, key)
  if (!known) throw notFound('payout', params.payout_id!)
  if (line && (known.status === 'failed' || known.status === 'canceled'))
    throw new Refusal(`The payout ${known.status}: its money is in the balance again. Nothing was noted.`)
  if (line) requireSame(line.amount, known.amount!, known.currency_code!)
  const values = line ? [line.day, known.amount!, line.reference, true] : [null, null, null, false]
  const [row] = await query(SET, [...key, ...values])
  const target = `payout ${params.payout_id} of merchant account ${params.psp} ${params.psp_merchant_id} of organization ${params.organization_id}`
  return {
    entry: {
      action: line ? 'payout.matched' : 'payout.unmatched',
      target,
      after: line ? { day: line.day, amount: known.amount!, reference: line.reference } : {},
    },
    result: JSON.parse(payout.writeNamed(row!).toString()),
  }
}

function requireSame(given: Line['amount'], amount: string, currency: string): void {
  // An amount in a string has no sign there, and a payout may be negative.
  const plain = typeof given === 'string' && given.startsWith('-') ? given.slice(1) : given
  try {
    const same = toMinor(readAmount(plain), currency) === toMinor(readAmount(amount.replace('-', '')), currency)
    if (same || String(given) === amount) return
  } catch (error) {
    throw error instanceof MoneyError ? new ApiError(400, 'invalid_value', `amount ${error.message}.`) : error
  }
  throw new Refusal(`The payout has ${amount} ${currency}. Nothing was noted.`)
}

const FIND = `
  select o.amount, o.currency_code, o.status from provider_payouts o
  where o.organization_id = $1 and o.psp = $2 and o.psp_merchant_id = $3 and o.payout_id = $4 for update`
const SET = `
  update provider_payouts o set bank_day = $5::date, bank_amount = $6, bank_reference = $7,
    matched_at = case when $8 then db_clock() end
  where o.organization_id = $1 and o.psp = $2 and o.psp_merchant_id = $3 and o.payout_id = $4 returning ${payout.namedColumns}`

const key = (row: string, id: string) => `md5(${row}.psp || ' ' || ${row}.psp_merchant_id || ' ' || ${row}.${id})`

export const payouts: Operation[] = [
  list({
    id: 'listPayouts',
    right: 'reports',
    command: 'finance payouts',
    columns: [
      'payout_id',
      'psp_merchant_id',
      'amount',
      'currency_code',
      'status',
      'charged',
      'refunded',
      'fees',
      'account_fees',
      'adjusted',
      'difference',
      'bank_day',
    ],
    path: PATH,
    tag: TAG,
    summary: 'List payouts',
    description: 'Each is the sum of its payments, refunds, fees and adjustments.',
    shape: payout,
    from: 'provider_payouts o',
    at: 'o.created_at',
    key: key('o', 'payout_id'),
    where: 'o.organization_id = $1',
    filters: {
      psp_merchant_id: equals('o.psp_merchant_id', 'Only those of this account.', { maxLength: 256 }),
      status: equals('o.status', 'Only those in this state.', { maxLength: 20 }),
      matched: {
        schema: Type.Boolean({ description: 'Whether a line of the bank was found.' }),
        where: (value) => `(o.matched_at is not null) = ${value}`,
      },
    },
    ...ofOrganization,
  }),
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
    path: ENTRIES,
    tag: TAG,
    summary: 'List entries of balances',
    description: 'What payouts consist of, and what is still in the balance.',
    shape: entry,
    from: 'balance_entries e',
    at: 'e.entered_at',
    key: key('e', 'entry_id'),
    where: 'e.organization_id = $1',
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
    ...ofOrganization,
  }),
  balances,
  match,
  unmatch,
]
