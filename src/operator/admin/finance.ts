// Finance: the sums of a month by currency and provider, and the signed rows that add up to them.

import { hasRight } from '../../core/tenants/access.ts'
import { ApiError } from '../../lib/errors.ts'
import { DAY_OR_INSTANT_PATTERN, DECLARED_ONLY, MONTH_PATTERN } from '../../lib/http/rule-phrases.ts'
import { Type } from '../../lib/shape/schema.ts'
import { readInstant, TimeError } from '../../lib/time.ts'
import {
  financeRow,
  financeRows,
  financeRowWithoutPeople,
  financeTotal,
  financeTotals,
  type Period,
  type PeriodGiven,
  type Place,
  placeOf,
  readPeriod,
} from '../../payments/billing/finance.ts'
import { requireOrganization } from './exist.ts'
import type { Operation, Reading } from './operation.ts'

const TAG = 'Finance'
const PATH = '/organizations/:organization_id/finance'
const DEFAULT_LIMIT = 100
const MAX_ROWS = 1000

const periodFields = {
  month: Type.Optional(
    Type.String({
      description: 'A month in UTC, such as `2026-10`.',
      maxLength: 10,
      [DECLARED_ONLY]: { pattern: MONTH_PATTERN },
    }),
  ),
  from: Type.Optional(
    Type.String({
      description: 'Instead of `month`: the first day; or a date-time, which is an instant.',
      maxLength: 40,
      [DECLARED_ONLY]: { pattern: DAY_OR_INSTANT_PATTERN },
    }),
  ),
  to: Type.Optional(
    Type.String({
      description: 'The last day, which is included; or a date-time, which is excluded.',
      maxLength: 40,
      [DECLARED_ONLY]: { pattern: DAY_OR_INSTANT_PATTERN },
    }),
  ),
}

const bounds = {
  organization_id: Type.String({ description: 'Organization.' }),
  from: Type.String({ format: 'date-time', description: 'Beginning of the period.' }),
  to: Type.String({ format: 'date-time', description: 'End of the period, exclusive.' }),
}

const totals: Reading = {
  id: 'getFinanceReport',
  right: 'reports',
  command: 'report',
  method: 'GET',
  path: PATH,
  tag: TAG,
  summary: 'Sum payments, refunds and chargebacks',
  description:
    'By month, currency and provider. Every row of the transaction report is in exactly one count, so the sums agree with it to the last digit.',
  query: Type.Object(periodFields),
  response: Type.Object(
    { ...bounds, totals: Type.Array(financeTotal.schema, { description: 'By month, then currency, then provider.' }) },
    { title: 'FinanceReport', additionalProperties: false },
  ),
  async run({ db }, { params, query }) {
    const period = readPeriod(query as PeriodGiven)
    await requireOrganization(db.query, params.organization_id!)
    const rows = await financeTotals(db, params.organization_id!, period)
    return financeTotal.writeList(rows, `${beginning(params.organization_id!, period)},"totals":[`, ']}').toString()
  },
}

const rows: Reading = {
  id: 'listFinanceRows',
  right: 'reports',
  command: 'report',
  method: 'GET',
  path: `${PATH}/rows`,
  tag: TAG,
  summary: 'List movements of money with their signs',
  description:
    'Oldest first: payments are positive, refunds and chargebacks negative. Rows that moved no money are left out.',
  query: Type.Object({
    ...periodFields,
    after: Type.Optional(Type.String({ description: '`next_after` of the previous page.', maxLength: 80 })),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_ROWS, default: DEFAULT_LIMIT, description: 'How many rows at most.' }),
    ),
  }),
  response: Type.Object(
    {
      ...bounds,
      next_after: Type.Union([Type.String(), Type.Null()], { description: 'For the next page; null on the last.' }),
      rows: Type.Array(financeRow.schema, { description: 'The movements.' }),
    },
    { title: 'FinanceRows', additionalProperties: false },
  ),
  async run({ db }, { params, query, access }) {
    const row = hasRight(access, 'people') ? financeRow : financeRowWithoutPeople
    const { after, limit = DEFAULT_LIMIT, ...given } = query as PeriodGiven & { after?: string; limit?: number }
    const period = readPeriod(given)
    await requireOrganization(db.query, params.organization_id!)
    const page = { after: after === undefined ? undefined : readAfter(after), limit: limit + 1 }
    const found = await financeRows(db, params.organization_id!, period, page, row)
    const served = found.slice(0, limit)
    const next = found.length > limit ? textOf(placeOf(served.at(-1)!, row)) : null
    const before = `${beginning(params.organization_id!, period)},"next_after":${JSON.stringify(next)},"rows":[`
    return row.writeList(served, before, ']}').toString()
  },
}

const beginning = (organization_id: string, { from, to }: Period) =>
  JSON.stringify({ organization_id, from, to }).slice(0, -1)

const textOf = ({ paid_at, trx_created_at }: Place) => `${paid_at}_${trx_created_at}`

/** An instant alone is after all rows of that instant. */
function readAfter(text: string): Place {
  const [paid, recorded] = text.split('_', 2) as [string, string?]
  try {
    return { paid_at: readInstant(paid), trx_created_at: recorded === undefined ? 'infinity' : readInstant(recorded) }
  } catch (error) {
    if (error instanceof TimeError) throw new ApiError(400, 'invalid_parameter', `after ${error.message}.`)
    throw error
  }
}

export const finance: Operation[] = [totals, rows]
