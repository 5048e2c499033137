// Ticks payouts off against lines of the bank.
import { readDay } from '../../lib/days.ts'
import { invalidValue, Refusal } from '../../lib/errors.ts'
import { numberText } from '../../lib/json/read.ts'
import { type Decimal, MoneyError, readAmount, toMinor } from '../../lib/money.ts'
import type { Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { notFound } from './exist.ts'
import { TAG } from './finance.ts'
import { accountOf } from './merchant-accounts.ts'
import { amountField } from './names.ts'
import { change, type ParamsOf } from './operation.ts'
import { PAYOUTS_PATH, payout } from './payouts.ts'

const PATH = `${PAYOUTS_PATH}/:psp/:psp_merchant_id/:payout_id/bank` as const

const match = change({
  id: 'matchPayout',
  right: 'books',
  command: 'finance match',
  method: 'POST',
  path: PATH,
  tag: TAG,
  summary: 'Tick off a payout against a line of the bank',
  description: 'Notes the line that the bank shows for it. Noting it again replaces what was noted.',
  body: Type.Named('BankLine', {
    day: Type.String({ description: 'The day of the line.', examples: ['2026-10-05'], maxLength: 40 }),
    amount: amountField('Its amount in the currency of the payout; it must be the same.', '1158.20'),
    reference: Type.Optional(
      Type.String({ description: 'What identifies it at the bank.', minLength: 1, maxLength: 200 }),
    ),
  }),
  response: payout.schema,
  checkInput({ body, exact = body }) {
    readDay('day', body.day)
    readSigned(exact.amount as Line['amount'])
  },
  change: (query, { params, body, exact = body }) =>
    set(query, params, {
      day: readDay('day', body.day),
      amount: exact.amount as Parameters<typeof readAmount>[0],
      reference: body.reference ?? null,
    }),
})

const unmatch = change({
  id: 'unmatchPayout',
  right: 'books',
  command: 'finance unmatch',
  method: 'DELETE',
  path: PATH,
  tag: TAG,
  summary: 'Remove the line of the bank from a payout',
  response: payout.schema,
  change: (query, { params }) => set(query, params, undefined),
})

interface Line {
  day: string
  amount: Parameters<typeof readAmount>[0]
  reference: string | null
}

async function set(query: Query, params: ParamsOf<typeof PATH>, line: Line | undefined) {
  const key = [params.organization_id, params.psp, params.psp_merchant_id, params.payout_id]
  const [known] = await query(FIND, key)
  if (!known) throw notFound('payout', params.payout_id)
  if (line && (known.status === 'failed' || known.status === 'canceled'))
    throw new Refusal(`The payout ${known.status}: its money is in the balance again. Nothing was noted.`)
  if (line) requireSame(line.amount, known.amount!, known.currency_code!)
  const values = line ? [line.day, known.amount!, line.reference, true] : [null, null, null, false]
  const [row] = await query(SET, [...key, ...values])
  const target = `payout ${params.payout_id} of ${accountOf(params)}`
  return {
    entry: {
      action: line ? 'payout.matched' : 'payout.unmatched',
      target,
      ...(known.day !== null && { before: { day: known.day, amount: known.amount!, reference: known.reference! } }),
      after: line ? { day: line.day, amount: known.amount!, reference: line.reference } : {},
    },
    result: payout.readNamed(row!),
  }
}

function requireSame(given: Line['amount'], amount: string, currency: string): void {
  const [sent, known] = [readSigned(given), readSigned(amount)]
  const isSame = toMinor(sent.size, currency) === toMinor(known.size, currency)
  if (!isSame || sent.isNegative !== known.isNegative)
    throw new Refusal(`The payout has ${amount} ${currency}. Nothing was noted.`)
}

/** The sign is read apart: an amount in a string has none, and a payout may be negative. Throws a 400. */
function readSigned(given: Line['amount']): { isNegative: boolean; size: Decimal } {
  const text = numberText(given)
  try {
    return { isNegative: text.startsWith('-'), size: readAmount(text.replace(/^-/, '')) }
  } catch (error) {
    throw error instanceof MoneyError ? invalidValue(`amount ${error.message}.`) : error
  }
}

const FIND = `
  select o.amount, o.currency_code, o.status, to_char(o.bank_day, 'YYYY-MM-DD') as day, o.bank_reference as reference
  from provider_payouts o
  where o.organization_id = $1 and o.psp = $2 and o.psp_merchant_id = $3 and o.payout_id = $4 for update`
const SET = `
  update provider_payouts o set bank_day = $5::date, bank_amount = $6, bank_reference = $7,
    matched_at = case when $8 then db_clock() end
  where o.organization_id = $1 and o.psp = $2 and o.psp_merchant_id = $3 and o.payout_id = $4 returning ${payout.namedColumns}`

export const payoutMatches = [match, unmatch] as const
