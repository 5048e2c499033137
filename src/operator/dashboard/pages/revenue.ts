// Revenue: gross, refunds, chargebacks and net, by period and by each dimension.
import { addDays } from '../../../lib/days.ts'
import { filterLink, howToFill, nameOfValue } from '../filter.ts'
import { labelsOf, money, words } from '../format.ts'
import { type Html, html } from '../html.ts'
import { lackingOf } from '../lacking.ts'
import {
  type Figure,
  figures,
  inEarlier,
  mostFirst,
  type Names,
  namesOf,
  pivotTable,
  roundMoney,
  type Series,
  seriesTable,
  total,
  valueCell,
} from '../numbers.ts'
import { choices, rowsBehind, section, tableSection, tile, tiles, withoutDollars } from '../parts.ts'
import type { Span } from '../period.ts'
import { type Column, cell, named, type Table } from '../sheet.ts'
import { hasProjects, noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import { inCurrency, type View } from '../view.ts'
import { revenueChange } from './revenue-change.ts'

const PAGE = { title: 'Revenue', hasPeriod: true, question: 'How much comes in, where from, and what goes back?' }
const MONEY = 'revenue,refunds,chargebacks,net_revenue,sales'
// The dimensions by which revenue is shown, one at a time.
const CHARTED = ['kind', 'product', 'country', 'funnel', 'provider', 'source', 'campaign', 'variant', 'currency']

export async function revenue(view: View): Promise<Page> {
  if (!view.organization || !hasProjects(view)) return { title: 'Revenue', body: noProject(view) }
  const { by } = view.span
  const splits = [...CHARTED, ...(view.project ? [] : ['project'])]
  const split = splits.find((name) => name === view.query.get('split')) ?? splitOf(view)
  const charted = figures(view, MONEY, { by: `${by},${split}` })
  const [names, sum, lines, averages, parts, own, change, lacks] = await Promise.all([
    namesOf(view),
    total(view, 'revenue,refunds,chargebacks,net_revenue,arpu,arppu,without_usd'),
    figures(view, 'revenue,refunds,chargebacks,net_revenue', { by, compare: true }),
    perPerson(view),
    charted,
    figures(view, MONEY, { by: 'currency', money: 'own' }),
    revenueChange(view, split),
    lackingOf(view, 'revenue', 'refunds', 'chargebacks', 'net_revenue'),
  ])
  const sold = parts.filter(({ values }) => values.revenue)
  const wentBack = (type: string) => rowsBehind(view, '/refunds', 'movements', { type })
  const summary = tiles(
    tile('Revenue', sum, 'revenue', 'usd', { lacks: lacks.revenue, rows: rowsBehind(view, '/payments', 'payments') }),
    tile('Refunds', sum, 'refunds', 'usd', { bad: true, lacks: lacks.refunds, rows: wentBack('refund') }),
    tile('Chargebacks', sum, 'chargebacks', 'usd', {
      bad: true,
      lacks: lacks.chargebacks,
      rows: wentBack('chargeback'),
    }),
    tile('Net revenue', sum, 'net_revenue', 'usd', { lacks: lacks.net_revenue }),
    tile('Revenue per person', sum, 'arpu', 'usd', { isRate: true, lacks: lacks.revenue }),
    tile('Revenue per payer and month', sum, 'arppu', 'usd', { isRate: true, lacks: lacks.revenue }),
  )
  if (own.length === 0) return { ...PAGE, body: html`${summary}${noRevenue(view)}` }
  return {
    ...PAGE,
    body: html`${summary}
      ${withoutDollars(view, sum)}
      ${section(`Net and gross by ${by}`, netToGross(view, lines), {
        note: 'A full bar is gross revenue: net revenue, refunds and chargebacks.',
      })}
      ${section(
        `Revenue by ${by} and ${split}`,
        html`${choices(view, labelsOf(...splits), split)}
        ${chart(
          view,
          'split',
          pivotTable(view, `Revenue by ${by} and ${split}, ${inCurrency(view)}`, sold, {
            metric: 'revenue',
            unit: 'usd',
            name: (key) => nameOf(view, split, key, names),
          }),
          { kind: 'stacked', unit: 'usd' },
        )}`,
      )}
      ${parts.length > 0 && split !== 'currency' && tableSection(view, split, splitTable(view, split, overPeriods(parts), names))}
      ${change((key) => nameOf(view, split, key, names))}
      ${averages}
      ${split === 'currency' && tableSection(view, 'currencies', ownTable(own))}`,
  }
}

/** The dimension that is shown without a choice: figures of one country, funnel … are not split by kind. */
const splitOf = ({ filters }: View): string =>
  filters.length === 0 ? 'kind' : filters.some(({ dimension }) => dimension === 'product') ? 'country' : 'product'

/** Sums the figures of a chart over its periods, which saves a query. */
function overPeriods(found: Figure[]): Figure[] {
  return [...Map.groupBy(found, ({ key }) => key)].map(([key, own]) => {
    const sumOf = (metric: string) => roundMoney(own.reduce((sum, { values }) => sum + (values[metric] ?? 0), 0))
    const values = Object.fromEntries(MONEY.split(',').map((metric) => [metric, sumOf(metric)]))
    return { period: null, key, currency: own[0]!.currency, values }
  })
}

const GROSS: Series = { label: 'Gross', metric: 'revenue', unit: 'usd', sum: true }
const NET_TO_GROSS: Series[] = [
  { label: 'Net', metric: 'net_revenue', unit: 'usd' },
  { label: 'Refunds', metric: 'refunds', unit: 'usd' },
  { label: 'Chargebacks', metric: 'chargebacks', unit: 'usd' },
  GROSS,
  inEarlier(GROSS),
]

const netToGross = (view: View, found: Figure[]): Html =>
  chart(view, 'revenue', seriesTable(view, `Revenue by ${view.span.by}, ${inCurrency(view)}`, found, NET_TO_GROSS), {
    kind: 'stacked',
    unit: 'usd',
  })

const noRevenue = (view: View) =>
  html`<div class="empty"><h2>No revenue in this period</h2>${howToFill(view, html`Load sales with <a href="/docs/guides/import">an import</a>, make <a href="/docs/guides/charging">custom charges</a>`)}</div>`

/** The whole months of the period, at least twelve: a payer is counted once in each calendar month. */
function wholeMonths({ from, to, ...span }: Span): Span {
  const yearBefore = new Date(addDays(to, -1))
  yearBefore.setUTCFullYear(yearBefore.getUTCFullYear(), yearBefore.getUTCMonth() - 11, 1)
  const first = [from, yearBefore.toISOString()].sort()[0]!
  return { ...span, from: `${first.slice(0, 7)}-01`, to, by: 'month' }
}

async function perPerson(view: View): Promise<Html> {
  const span = wholeMonths(view.span)
  const found = await figures(view, 'arpu,arppu', { by: 'month', from: span.from, to: span.to })
  const series: Series[] = [
    { label: 'Per person', metric: 'arpu', unit: 'usd', isRate: true },
    { label: 'Per payer', metric: 'arppu', unit: 'usd', isRate: true },
  ]
  const caption = `Revenue per person and per payer by month, ${inCurrency(view)}`
  return section(
    'Revenue per person and per payer by month',
    chart(view, 'averages', seriesTable(view, caption, found, series, { span }), { kind: 'line', unit: 'usd' }),
    {
      note: 'Per person: revenue divided by the people who had a session in the month. Per payer: divided by the people who paid in the month.',
    },
  )
}

const KINDS: Record<string, string> = { new: 'New', renewal: 'Renewal', trial: 'Trial', one_off: 'One-off' }

function nameOf({ projects }: View, split: string, key: string, names: Names): string {
  if (split === 'project') return projects.find(({ id }) => id === key)?.name || key || 'none'
  if (split === 'kind' && key !== '') return KINDS[key] ?? words(key)
  return nameOfValue(split, key, names)
}

/** Amounts in several currencies have no sum. */
const columns = (label: string, total: boolean): Column[] => [
  { label },
  ...['Gross', 'Refunds', 'Chargebacks', 'Net', 'Sales'].map((name) => ({ label: name, number: true, total })),
]

function ownTable(found: Figure[]): Table {
  const amount = (value: number | null | undefined, currency: string | null) =>
    cell(money(value ?? 0, currency!), value ?? 0)
  return {
    caption: 'By currency, not converted',
    columns: columns('Currency', false),
    rows: found.map(({ key, currency, values }) => [
      key,
      amount(values.revenue, currency),
      amount(values.refunds, currency),
      amount(values.chargebacks, currency),
      amount(values.net_revenue, currency),
      valueCell('number', values.sales),
    ]),
  }
}

function splitTable(view: View, split: string, found: Figure[], names: Names): Table {
  return {
    caption: `By ${split}`,
    columns: columns(words(split), true),
    rows: mostFirst(found, 'revenue').map(({ key, values }) => [
      named(filterLink(view, split, key!, nameOf(view, split, key!, names)), key!),
      valueCell('usd', values.revenue),
      valueCell('usd', values.refunds),
      valueCell('usd', values.chargebacks),
      valueCell('usd', values.net_revenue),
      valueCell('number', values.sales),
    ]),
  }
}
