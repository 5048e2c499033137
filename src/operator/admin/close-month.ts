// Closing months of the finance report.
import { readMonth } from '../../lib/days.ts'
import { minorUnits } from '../../lib/money.ts'
import { Type } from '../../lib/shape/schema.ts'
import { instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { closeMonth, requireClosable } from '../../payments/billing/finance/close.ts'
import { financeCurrency } from '../../payments/billing/finance/currency.ts'
import { monthPeriod } from '../../payments/billing/finance/period.ts'
import { financeTotals } from '../../payments/billing/finance/report.ts'
import { sumsOf, withoutRate } from '../../payments/billing/finance/sums.ts'
import { requireOrganization } from './exist.ts'
import { monthField, TAG } from './finance.ts'
import { list, ofOrganization } from './list.ts'
import { act } from './operation.ts'

const PATH = '/organizations/:organization_id/finance/months'

const closedMonth = shape('FinanceMonth', 'm', {
  organization_id: text('Organization.', { example: 'acme' }),
  month: text('The month.', { sql: `to_char(m.month, 'YYYY-MM')`, example: '2026-10' }),
  closed_at: instant('When it was closed.'),
  currency: text('The reporting currency in which it was closed.', { example: 'USD' }),
  rows: integer('How many rows of the report it has.', {
    sql: '(select count(*) from finance_rows r where r.organization_id = m.organization_id and r.month = m.month)',
    example: 120,
  }),
  corrections: integer('How many of them correct an earlier month.', {
    sql: '(select count(*) from finance_rows r where r.organization_id = m.organization_id and r.month = m.month and r.is_correction)',
    example: 0,
  }),
})

const close = act({
  id: 'closeFinanceMonth',
  right: 'books',
  command: 'finance close',
  method: 'POST',
  path: PATH,
  tag: TAG,
  summary: 'Close a month of the finance report',
  description:
    'Permanently: its rows stay as they are now. What changes later (late imports, fees, refunds that fail) is booked as corrections in the first open month. Months are closed one after the other, from any month on.',
  body: Type.Named('FinanceMonthIn', { month: monthField }),
  response: Type.Named('FinanceMonthClosed', {
    month: Type.String({ description: 'The month.', examples: ['2026-10'] }),
    rows: Type.Integer({ description: 'How many rows it has.' }),
    closed_at: Type.String({ format: 'date-time', description: 'When it was closed.' }),
  }),
  checkInput: ({ body }) => void readMonth('month', body.month),
  entry: ({ params, body }) => ({
    action: 'finance.close_asked',
    target: `organization ${params.organization_id}`,
    after: { month: body.month },
  }),
  async describe({ db }, { params, body }) {
    const id = params.organization_id
    const first = readMonth('month', body.month)
    await requireOrganization(db.query, id)
    await requireClosable(db.query, id, first)
    const sums = sumsOf(await financeTotals(db, id, { ...monthPeriod(first), test: false }))
    const currency = await financeCurrency(db.query, id)
    const net = Number(sums.reporting.net.text).toFixed(minorUnits(currency) ?? 2)
    const missing = withoutRate(sums).map(({ amount, currency }) => `${amount} ${currency}`)
    const without = missing.join(', ')
    return `Closes ${body.month} of ${id} permanently, with a net of ${net} ${currency}${without && `, without ${without} for which there is no exchange rate`}. Later changes are booked as corrections in the next month.`
  },
  async act(app, { params, body }) {
    const id = params.organization_id
    const { rows, closed_at } = await closeMonth(app, id, readMonth('month', body.month))
    return { month: body.month, rows, closed_at }
  },
})

export const closings = [
  list({
    id: 'listFinanceMonths',
    right: 'reports',
    command: 'finance months',
    path: PATH,
    tag: TAG,
    summary: 'List closed months',
    description: 'The last closed one first.',
    shape: closedMonth,
    from: 'finance_months m',
    at: 'm.closed_at',
    key: `to_char(m.month, 'YYYY-MM')`,
    ...ofOrganization('m'),
  }),
  close,
] as const
