// Finance: the sums of a month by currency and merchant account, and the signed rows that add up to them.

import { hasRight } from '../../core/tenants/access.ts'
import { invalidParameter } from '../../lib/errors.ts'
import { DECLARED_ONLY, MONTH_PATTERN } from '../../lib/http/rule-phrases.ts'
import { jsonOf } from '../../lib/json/json.ts'
import type { Db } from '../../lib/pg/db.ts'
import { Type } from '../../lib/shape/schema.ts'
import { readInstant, TimeError } from '../../lib/time.ts'
import { financeCurrency } from '../../payments/billing/finance/currency.ts'
import { readPeriod } from '../../payments/billing/finance/period.ts'
import { closedMonths, financeRows, financeTotals, type Place } from '../../payments/billing/finance/report.ts'
import { financeRow, financeRowWithoutPeople, financeTotal } from '../../payments/billing/finance/shapes.ts'
import { financeSums, sumsOf } from '../../payments/billing/finance/sums.ts'
import { financeZone } from '../../payments/billing/finance/zone.ts'
import { day } from './day-filters.ts'
import { reading } from './operation.ts'

export const TAG = 'Finance'
const PATH = '/organizations/:organization_id/finance'
const DEFAULT_LIMIT = 100
const MAX_ROWS = 1000

export const monthField = Type.String({
  description: 'A month, such as `2026-10`, in the time zone of the report.',
  maxLength: 10,
  [DECLARED_ONLY]: { pattern: MONTH_PATTERN },
})

const periodFields = {
  month: Type.Optional(monthField),
  from: Type.Optional(day('Instead of `month`: the first day.')),
  to: Type.Optional(day('The last day, which is included.')),
  test: Type.Optional(
    Type.Boolean({ default: false, description: 'Test money instead of real money; the two are never added.' }),
  ),
}

export const zoneField = Type.String({
  description:
    'Time zone of the days and months: that of the closed months; without any, that of the projects if all have the same; else UTC.',
  examples: ['UTC'],
})

export const currencyField = Type.String({
  description:
    'Reporting currency of the sums: that of the closed months; without any, that of the projects if all have the same; else USD.',
  examples: ['EUR'],
})

const bounds = {
  organization_id: Type.String({ description: 'Organization.' }),
  from: Type.String({ format: 'date', description: 'The first day.' }),
  to: Type.String({ format: 'date', description: 'The last day.' }),
  time_zone: zoneField,
  reporting_currency: currencyField,
  test: Type.Boolean({ description: 'Whether it is the report of test money.' }),
}

const closedField = Type.Array(
  Type.Named('ClosedMonth', {
    month: Type.String({ description: 'The month.', examples: ['2026-10'] }),
    closed_at: Type.String({ format: 'date-time', description: 'When it was closed.' }),
  }),
  { description: 'The months of the period that are closed: their rows no longer change.' },
)

const totals = reading({
  id: 'getFinanceReport',
  right: 'reports',
  command: 'report',
  path: PATH,
  tag: TAG,
  summary: 'Sum payments, refunds and chargebacks',
  description:
    'By month, currency and merchant account. Every row of the transaction report is in exactly one count, so the sums agree with it to the last digit.',
  query: Type.Object(periodFields),
  response: Type.Named('FinanceReport', {
    ...bounds,
    closed: closedField,
    ...financeSums,
    totals: Type.Array(financeTotal.schema, { description: 'By month, then currency, then merchant account.' }),
  }),
  checkInput: ({ query }) => void readPeriod(query),
  async run({ db }, { params, query }) {
    const { test = false, ...given } = query
    const period = readPeriod(given)
    const id = params.organization_id
    const rows = await financeTotals(db, id, { ...period, test })
    const closed = await closedMonths(db, id, period)
    const totals = financeTotal.list(rows)
    return jsonOf({ organization_id: id, ...period, ...(await unitsOf(db, id)), test, closed, ...sumsOf(rows), totals })
  },
})

const rows = reading({
  id: 'listFinanceRows',
  right: 'reports',
  command: 'report',
  path: `${PATH}/rows`,
  tag: TAG,
  summary: 'List movements of money with their signs',
  description:
    'Oldest first: payments are positive, refunds and chargebacks negative. Rows that moved no money are left out.',
  query: Type.Object({
    ...periodFields,
    psp: Type.Optional(Type.String({ description: 'Only rows of this payment provider’s account.', maxLength: 100 })),
    psp_merchant_id: Type.Optional(
      Type.String({ description: 'The merchant account; left out, of payments that name none.', maxLength: 255 }),
    ),
    after: Type.Optional(Type.String({ description: '`next_after` of the previous page.', maxLength: 100 })),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_ROWS, default: DEFAULT_LIMIT, description: 'How many rows at most.' }),
    ),
  }),
  response: Type.Named('FinanceRows', {
    ...bounds,
    next_after: Type.OrNull(Type.String(), 'For the next page; null on the last.'),
    rows: Type.Array(financeRow.schema, { description: 'The movements.' }),
  }),
  checkInput({ query }) {
    const { after, psp, psp_merchant_id, ...given } = query
    if (psp === undefined && psp_merchant_id !== undefined)
      throw invalidParameter('psp_merchant_id needs psp, the payment provider of the account.')
    readPeriod(given)
    if (after !== undefined) readAfter(after)
  },
  async run({ db }, { params, query, access }) {
    const row = hasRight(access, 'people') ? financeRow : financeRowWithoutPeople
    const { after, limit = DEFAULT_LIMIT, test = false, psp, psp_merchant_id, ...given } = query
    const account = psp === undefined ? undefined : { psp, merchantId: psp_merchant_id ?? null }
    const period = readPeriod(given)
    const id = params.organization_id
    const page = { after: after === undefined ? undefined : readAfter(after), limit: limit + 1, account }
    const found = await financeRows(db, id, { ...period, test }, page, row)
    const served = found.rows.slice(0, limit)
    const next_after = found.rows.length > limit ? textOf(found.places[limit - 1]!) : null
    const units = await unitsOf(db, id)
    return jsonOf({ organization_id: id, ...period, ...units, test, next_after, rows: row.list(served) })
  },
})

/** The time zone and the reporting currency of the report. */
export async function unitsOf({ query }: Db, id: string) {
  const [time_zone, reporting_currency] = await Promise.all([financeZone(query, id), financeCurrency(query, id)])
  return { time_zone, reporting_currency }
}

const textOf = ({ booked_at, trx_created_at, part }: Place) => `${booked_at}_${trx_created_at}_${part}`

function readAfter(text: string): Place {
  const [booked = '', recorded = '', part = '', ...others] = text.split('_')
  if (!/^[0-9]{1,9}$/.test(part) || others.length > 0)
    throw invalidParameter('after must be `next_after` of the previous page.')
  try {
    return { booked_at: readInstant(booked), trx_created_at: readInstant(recorded), part }
  } catch (error) {
    if (error instanceof TimeError) throw invalidParameter(`after ${error.message}.`)
    throw error
  }
}

export const finance = [totals, rows] as const
