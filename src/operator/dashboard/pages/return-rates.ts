// Refund and dispute rates over the payments that they belong to, by one dimension.
import { monthOf } from '../../../lib/days.ts'
import { filterLink, nameOfValue } from '../filter.ts'
import { labelsOf } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Figure, figures, type Names, namesOf, valueCell } from '../numbers.ts'
import { choices, tableSection } from '../parts.ts'
import { named, numbers, type Table } from '../sheet.ts'
import { allChoices, inCurrency, type View } from '../view.ts'
import { conversionCell, FEW_SESSIONS as FEW } from './funnels.ts'

const BY = labelsOf('product', 'funnel', 'country', 'provider', 'cohort')
type By = keyof typeof BY

const METRICS =
  'payments,paid_amount,refunded_payments,refunded_amount,disputed_payments,disputed_amount,refund_rate_by_count,refund_rate_by_money,dispute_rate_by_count,dispute_rate_by_money,payments_without_usd'

/** A table with the rates of the payments of the period, by the dimension that is chosen. */
export async function returnRates(view: View): Promise<Piece> {
  const by = (Object.keys(BY) as By[]).find((name) => name === view.query.get('split')) ?? 'product'
  const [names, [sum], found] = await Promise.all([
    namesOf(view),
    figures(view, METRICS),
    figures(view, METRICS, { by }),
  ])
  const rows = found.filter(({ values }) => Object.values(values).some(Boolean))
  const missing = sum?.values.payments_without_usd ?? 0
  return tableSection(view, 'rates', rateTable(view, by, sorted(by, rows), sum, names), {
    title: 'Rates of the payments of this period',
    above: choices(view, BY, by, (split) => ({ ...allChoices(view), split })),
    note: html`What went back of the payments of this period, whenever that was: the rates of recent payments still grow. Payments are
      those of the payment report; rates are by their number, and by money. “few”: fewer than ${FEW} payments, of which a share says little.${by === 'cohort' && ' Cohort: the month of the customer’s first payment.'}
      ${missing > 0 && html`<strong>The money of ${missing} of these payments, refunds and disputes is left out: it has no value ${inCurrency(view)}.</strong>`}`,
    empty: html`<p>No payments of the payment report in this period.</p>`,
  })
}

/** Cohorts in their order, others by their payments. */
const sorted = (by: By, rows: Figure[]) =>
  [...rows].sort((a, b) =>
    by === 'cohort' ? (a.key! < b.key! ? 1 : -1) : (b.values.payments ?? 0) - (a.values.payments ?? 0),
  )

function rateTable(view: View, by: By, rows: Figure[], sum: Figure | undefined, names: Names): Table {
  const labels = [
    'Refund rate',
    'Refunds by money',
    'Dispute rate',
    'Disputes by money',
    'Payments',
    'Paid',
    'Refunded',
    'Charged back',
  ]
  return {
    caption: `Refund and dispute rates by ${by}`,
    columns: [{ label: BY[by] }, ...numbers(...labels)],
    rows: [
      ...rows.map((row) => [nameCell(view, by, row.key!, names), ...cells(row)]),
      ...(sum && rows.length > 1 ? [['Total', ...cells(sum)]] : []),
    ],
  }
}

function cells({ values }: Figure) {
  const share = (rate: number | null | undefined) =>
    rate ? conversionCell(values.payments ?? 0, rate) : valueCell('percent', rate)
  return [
    share(values.refund_rate_by_count),
    share(values.refund_rate_by_money),
    share(values.dispute_rate_by_count),
    share(values.dispute_rate_by_money),
    valueCell('number', values.payments ?? 0),
    valueCell('usd', values.paid_amount ?? 0),
    valueCell('usd', values.refunded_amount ?? 0),
    valueCell('usd', values.disputed_amount ?? 0),
  ]
}

function nameCell(view: View, by: By, key: string, names: Names) {
  const name = nameOf(by, key, names)
  return named(filterLink(view, by, key, name), key, name)
}

function nameOf(by: By, key: string, names: Names): string {
  if (key === '') return 'unknown'
  return by === 'cohort' ? monthOf(`${key}-01`) : nameOfValue(by, key, names)
}
