// The tie-out of a month: the gross revenue of the dashboard is that of the finance report and named differences, to the cent.

import { withAndWithoutPeople } from '../../core/records/without-people.ts'
import { type Access, hasRight } from '../../core/tenants/access.ts'
import { DECIMALS } from '../../data/figures/compute.ts'
import { addDays } from '../../lib/days.ts'
import { ApiError } from '../../lib/errors.ts'
import { jsonOf } from '../../lib/json/json.ts'
import { JsonNumber } from '../../lib/json/read.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { NamedRow, Param, Statement } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { decimal, instant, type Shape, text } from '../../lib/shape/shape.ts'
import { readPeriod } from '../../payments/billing/finance/period.ts'
import { closedMonths } from '../../payments/billing/finance/report.ts'
import { notFound } from './exist.ts'
import { currencyField, monthField, TAG, unitsOf, zoneField } from './finance.ts'
import { reading } from './operation.ts'
import { DIFFERENCES, type Difference, TIE_OUT_SUMS, WITH_ITEMS } from './tie-out-items.ts'

const PATH = '/organizations/:organization_id/finance/tie-out'
const MAX_ROWS = 1000
const NAMES = Object.keys(DIFFERENCES) as Difference[]

const asked = {
  month: monthField,
  project_id: Type.Optional(Type.String({ description: 'Only this project; by default all.', maxLength: 256 })),
}
interface Asked {
  month: string
  project_id?: string
}

const money = (description: string) => Type.Number({ description, examples: [1240.5] })
const sides = {
  dashboard: money('Gross revenue as figures have it.'),
  finance: money('Gross of the finance report.'),
  difference: money('The first less the second: the sum of the differences.'),
}

const tieOut = reading({
  id: 'getTieOut',
  right: 'reports',
  command: 'finance tie-out',
  path: PATH,
  tag: TAG,
  summary: 'Compare the revenue of the dashboard with the finance report',
  mayRefuse: true,
  description:
    'Gross revenue of a month, of real money: the dashboard counts transactions of the data API and payments without one, the finance report counts payments. `dashboard` is `finance` and the sum of the differences, in each currency, in US dollars and in the reporting currency.',
  query: Type.Object(asked),
  response: Type.Named('TieOut', {
    organization_id: Type.String({ description: 'Organization.' }),
    month: Type.String({ description: 'The month.', examples: ['2026-10'] }),
    time_zone: zoneField,
    reporting_currency: currencyField,
    closed: Type.Boolean({ description: 'Whether the month is closed.' }),
    currencies: Type.Array(
      Type.Named('TieOutCurrency', {
        currency_code: Type.String({ description: 'ISO 4217 code.', examples: ['EUR'] }),
        ...sides,
        dashboard_without_usd: money('What of `dashboard` has no value in US dollars.'),
        finance_without_usd: money('What of `finance` has no value in US dollars.'),
        dashboard_without_rate: money('What of `dashboard` has no value in the reporting currency.'),
        finance_without_rate: money('What of `finance` has no value in the reporting currency.'),
      }),
      { description: 'By currency.' },
    ),
    usd: Type.Named('TieOutDollars', sides, {
      description: 'All currencies in US dollars, without what has no value in US dollars.',
    }),
    reporting: Type.Named('TieOutReporting', sides, {
      description: 'All currencies in the reporting currency, without what has no value in it.',
    }),
    differences: Type.Array(
      Type.Named('TieOutDifference', {
        name: Type.String({ description: 'Its name.', enum: NAMES }),
        meaning: Type.String({ description: 'What it means.' }),
        currency_code: Type.String({ description: 'ISO 4217 code.', examples: ['EUR'] }),
        rows: Type.Integer({ description: 'How many payments or transactions it consists of.' }),
        amount: money('How much the dashboard has more, in this currency.'),
        amount_usd: money('The same in US dollars.'),
        amount_reported: money('The same in the reporting currency.'),
      }),
      { description: 'By name and currency.' },
    ),
  }),
  shown: ({ differences, ...response }) => ({
    ...response,
    differences: (differences as Record<string, unknown>[]).map(({ meaning: _meaning, ...one }) => one),
  }),
  checkInput: ({ query }) => void readPeriod({ month: query.month }),
  async run({ db }, { params, query }) {
    const { month } = query
    const values = await valuesOf(db, params.organization_id, query)
    const [rows, closed] = await Promise.all([
      db.query(TIE_OUT_SUMS, values),
      closedMonths(db, params.organization_id, readPeriod({ month })),
    ])
    const currencies = rows
      .filter(({ what }) => what === 'currency')
      .map((row) => ({ currency_code: row.currency!, ...amountsOf(row, [...SIDES, ...WITHOUT]) }))
    const differences = rows
      .filter(({ what }) => what === 'difference')
      .sort((a, b) => NAMES.indexOf(a.name as Difference) - NAMES.indexOf(b.name as Difference))
      .map(({ name, currency, rows: n, dashboard, finance, difference }) => ({
        name: name as Difference,
        meaning: DIFFERENCES[name as Difference],
        currency_code: currency!,
        rows: Number(n),
        amount: plain(dashboard!),
        amount_usd: plain(finance!),
        amount_reported: plain(difference!),
      }))
    return jsonOf({
      organization_id: params.organization_id,
      month,
      ...(await unitsOf(db, params.organization_id)),
      closed: closed.length > 0,
      currencies,
      usd: amountsOf(rows.find(({ what }) => what === 'usd')!, SIDES),
      reporting: amountsOf(rows.find(({ what }) => what === 'reporting')!, SIDES),
      differences,
    })
  },
})

const SIDES = ['dashboard', 'finance', 'difference']
const WITHOUT = ['dashboard_without_usd', 'finance_without_usd', 'dashboard_without_rate', 'finance_without_rate']

const amountsOf = (row: NamedRow, names: string[]) => Object.fromEntries(names.map((name) => [name, plain(row[name]!)]))
/** Without the zeros that a division leaves. */
const plain = (text: string) => new JsonNumber(text.includes('.') ? text.replace(/\.?0+$/, '') : text)

async function valuesOf(db: Db, id: string, { month, project_id }: Asked): Promise<Param[]> {
  const { from, to } = readPeriod({ month })
  if (project_id !== undefined) {
    const found = await db.query('select 1 from projects where organization_id = $1 and id = $2', [id, project_id])
    if (found.length === 0) throw notFound('project', project_id)
  }
  await requireSameDays(db, id, project_id)
  return [id, from, addDays(to, 1), false, DECIMALS, project_id ?? null]
}

/** Throws a 409 if a project has days of another time zone than the report: their months cannot be compared. */
async function requireSameDays(db: Db, id: string, project: string | undefined): Promise<void> {
  const [other] = await db.query(OTHER_DAYS, [id, project ?? null])
  if (!other) return
  throw new ApiError(
    409,
    'operation_refused',
    `The figures of project ${other.id} are by days of ${other.time_zone}, the finance report by those of ${other.zone}: their months cannot be compared.`,
  )
}

const OTHER_DAYS = `
  select id, time_zone, finance_zone($1) as zone from projects
  where organization_id = $1 and ($2::text is null or id = $2) and time_zone <> finance_zone($1) order by id limit 1`

const [row, rowWithoutPeople] = withAndWithoutPeople('TieOutRow', 'i', ['profile_id', 'external_id'], {
  name: text('Which difference it belongs to.', { enum: NAMES }),
  project_id: text('The project.', { example: 'shop' }),
  transaction_id: text('The transaction of the data API, if there is one.', { nullable: true }),
  trx_id: text('The payment in the transaction report, if there is one.', { nullable: true }),
  transaction_at: instant('When the transaction was made.', { nullable: true }),
  paid_at: instant('When the money of the payment moved.', { nullable: true }),
  currency_code: text('ISO 4217 code.', { sql: 'i.currency', example: 'EUR' }),
  dashboard: decimal('What the dashboard has of it in this month.', { sql: 'trim_scale(i.dashboard)', example: 10.5 }),
  finance: decimal('What the finance report has of it in this month.', { sql: 'trim_scale(i.finance)', example: 0 }),
  difference: decimal('The first less the second.', { sql: 'trim_scale(i.dashboard - i.finance)', example: 10.5 }),
  difference_usd: decimal('The same in US dollars.', {
    sql: 'trim_scale(coalesce(i.dashboard_usd, 0) - coalesce(i.finance_usd, 0))',
    example: 10.5,
  }),
  difference_reported: decimal('The same in the reporting currency.', {
    sql: 'trim_scale(coalesce(i.dashboard_value, 0) - coalesce(i.finance_value, 0))',
    example: 9.7,
  }),
  profile_id: text('The person.', { nullable: true, example: 'pro_ada' }),
  external_id: text('The caller’s id of the customer.', { nullable: true, example: 'ada' }),
})

interface Page {
  name?: string
  limit?: number
  after?: number
}

const rows = reading({
  id: 'listTieOutRows',
  right: 'reports',
  command: 'finance differences',
  path: `${PATH}/rows`,
  tag: TAG,
  summary: 'List what the differences of a tie-out consist of',
  mayRefuse: true,
  description: 'The largest first.',
  columns: ['name', 'project_id', 'transaction_id', 'trx_id', 'currency_code', 'dashboard', 'finance', 'difference'],
  query: Type.Object({
    ...asked,
    name: Type.Optional(Type.String({ enum: NAMES, description: 'Only this difference.' })),
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_ROWS, default: 100, description: 'How many rows at most.' }),
    ),
    after: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 1_000_000_000,
        default: 0,
        description: '`next_after` of the previous page.',
      }),
    ),
  }),
  response: Type.Named('TieOutRows', {
    data: Type.Array(row.schema, { description: 'The payments and transactions.' }),
    next_after: Type.OrNull(Type.Integer(), 'For the next page; null on the last.'),
  }),
  checkInput: ({ query }) => void readPeriod({ month: query.month }),
  async run({ db }, { params, query, access }) {
    return tieOutRows(db, access, params.organization_id, query)
  },
})

/** A page of the list. The database makes the whole comparison for each page, so a caller that wants all rows asks for large ones. */
export async function tieOutRows(
  db: Db,
  access: Access,
  id: string,
  { name, limit = 100, after = 0, ...of }: Asked & Page,
) {
  const shape = hasRight(access, 'people') ? row : rowWithoutPeople
  const values = [...(await valuesOf(db, id, of)), name ?? null, limit + 1, after]
  const found = await db.readLong(ROWS.get(shape)!, values)
  return jsonOf({ data: shape.list(found.slice(0, limit)), next_after: found.length > limit ? after + limit : null })
}

const rowsAs = (shape: Shape): Statement => ({
  name: shape === row ? 'list a tie-out' : 'list a tie-out without people',
  text: `
  with ${WITH_ITEMS}
  select ${shape.columns} from items i where $7::text is null or i.name = $7
  order by abs(i.dashboard - i.finance) desc, i.name, i.transaction_id, i.trx_id limit $8::int offset $9::int`,
})
const ROWS = new Map([row, rowWithoutPeople].map((shape) => [shape, rowsAs(shape)]))

export const tieOuts = [tieOut, rows] as const
