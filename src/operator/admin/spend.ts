// Loads what was spent on advertising: the rows of a day and a source replace those that were loaded before.
import { clean } from '../../core/records/visit.ts'
import { storeSpend } from '../../data/figures/store-spend.ts'
import { readDay } from '../../lib/days.ts'
import { invalidValue } from '../../lib/errors.ts'
import { formatMinor, MoneyError, readAmount, readCurrency, toMinor, tooManyDecimals } from '../../lib/money.ts'
import { Type } from '../../lib/shape/schema.ts'
import { TAG } from './figures-query.ts'
import { amountField } from './names.ts'
import { change } from './operation.ts'

/** The most rows of a request. A command sends more in several. */
export const MAX_ROWS = 5000

const row = Type.Named('SpendRow', {
  day: Type.String({
    description: 'The day, in the time zone of the project.',
    examples: ['2026-01-31'],
    maxLength: 40,
  }),
  source: Type.String({ description: 'The `source` of the sessions that were paid for.', maxLength: 400 }),
  campaign: Type.Optional(
    Type.String({ description: 'Their `campaign`; without it, all sessions of the source.', maxLength: 400 }),
  ),
  currency: Type.String({ description: 'Currency of the amount.', minLength: 3, maxLength: 3, examples: ['USD'] }),
  amount: amountField('What was spent, in major units.', '125.40'),
})

interface Given {
  day: string
  source: string
  campaign?: string
  currency: string
  amount: Parameters<typeof readAmount>[0]
}

function readRow(given: Given, place: string) {
  const bad = (sentence: string) => invalidValue(`${place}${sentence}`)
  const day = readDay(`${place}day`, given.day)
  const source = clean(given.source, 'source')
  if (source === null) throw bad('source must name a source, and no person.')
  const campaign = given.campaign ? clean(given.campaign, 'campaign') : ''
  if (campaign === null) throw bad('campaign must name a campaign, and no person.')
  const currency = readCurrency(given.currency)
  if (currency === undefined) throw bad(`currency must be one of ISO 4217, got "${given.currency}".`)
  try {
    const amount = readAmount(given.amount)
    if (amount.digits < 0n) throw new MoneyError('must not be negative')
    const minor = toMinor(amount, currency)
    if (minor === undefined) throw new MoneyError(tooManyDecimals(currency))
    return { day, source, campaign, currency, amount: formatMinor(minor, currency) }
  } catch (error) {
    throw error instanceof MoneyError ? bad(`amount ${error.message}.`) : error
  }
}

const load = change({
  id: 'loadSpend',
  right: 'imports',
  command: 'figures spend',
  method: 'POST',
  path: '/projects/:project_id/spend',
  tag: TAG,
  summary: 'Load what was spent on advertising',
  description:
    'Replaces all amounts of the days and sources that it contains; of a day, source, campaign and currency that are given twice, the sum counts.',
  body: Type.Named('SpendIn', {
    rows: Type.Array(row, { minItems: 1, maxItems: MAX_ROWS, description: 'The amounts.' }),
  }),
  response: Type.Named('SpendOut', {
    rows: Type.Integer({ description: 'Amounts that were loaded.' }),
    days: Type.Integer({ description: 'Days that they are of.' }),
    replaced: Type.Integer({ description: 'Amounts that were there before.' }),
    without_usd: Type.Integer({
      description:
        'Amounts without a value in the reporting currency, because no exchange rate of their day is loaded.',
    }),
  }),
  checkInput: ({ body, exact = body }) => void rowsOf(exact),
  async change(query, { params, body, exact = body }) {
    const result = await storeSpend(query, params.project_id, rowsOf(exact))
    return { entry: { action: 'spend.loaded', target: `project ${params.project_id}`, after: result }, result }
  },
})

function rowsOf(body: Record<string, unknown>) {
  const rows = body.rows as Given[]
  return rows.map((one, n) => readRow(one, rows.length === 1 ? '' : `rows[${n}].`))
}

export const spendOperations = [load] as const
