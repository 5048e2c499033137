// Revenue: gross, refunds, chargebacks and net, by period and by whatever splits it.
import { money } from '../format.ts'
import { html } from '../html.ts'
import { type Figure, figures, type Names, namesOf, pivotTable, seriesTable, show, total } from '../numbers.ts'
import { section, tableSection, tile, tiles } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { picture } from '../table.ts'
import type { View } from '../view.ts'

const MONEY = 'revenue,refunds,chargebacks,net_revenue,sales'
const SPLITS = ['product', 'country', 'funnel', 'provider', 'kind'] as const
// What the first picture can be split by.
const PICTURED = ['kind', 'product', 'country', 'funnel', 'provider', 'currency']

export async function revenue(view: View): Promise<Page> {
  if (!view.organization || view.projects.length === 0) return { title: 'Revenue', body: noProject(view) }
  const { by } = view.span
  const pictured = [...PICTURED, ...(view.project ? [] : ['project'])]
  const split = pictured.find((name) => name === view.query.get('split')) ?? 'kind'
  const [names, sum, lines, parts, own, ...splits] = await Promise.all([
    namesOf(view),
    total(view, `${MONEY},payers,arpu,arppu,refund_rate,without_usd`),
    figures(view, `${MONEY},payers,arppu`, { by }),
    figures(view, 'revenue', { by: `${by},${split}` }),
    figures(view, MONEY, { by: 'currency', money: 'own' }),
    ...SPLITS.map((split) => figures(view, MONEY, { by: split })),
  ])
  const unknown = sum.values.without_usd ?? 0
  const sold = parts.filter(({ values }) => values.revenue)
  return {
    title: 'Revenue',
    hasPeriod: true,
    body: html`
      ${tiles(
        tile('Revenue', sum, 'revenue', 'usd'),
        tile('Refunds', sum, 'refunds', 'usd', { bad: true }),
        tile('Chargebacks', sum, 'chargebacks', 'usd', { bad: true }),
        tile('Net revenue', sum, 'net_revenue', 'usd'),
        tile('Revenue per person', sum, 'arpu', 'usd'),
        tile('Revenue per payer', sum, 'arppu', 'usd'),
      )}
      ${unknown > 0 && html`<p class="note">The value of ${unknown} movements in US dollars is not known: they are in the table by currency only. <a href="/docs/guides/commands#rates">Load exchange rates</a>.</p>`}
      ${section(
        `Revenue by ${by} and ${split}`,
        html`<p class="chips">${pictured.map((name) => html`<a href="${view.href(view.path, { split: name })}"${name === split ? html` aria-current="true"` : ''}>${sentence(name)}</a> `)}</p>
        ${picture(
          view,
          'split',
          pivotTable(view, `Revenue by ${by} and ${split}, in US dollars`, sold, {
            metric: 'revenue',
            unit: 'usd',
            name: (key) => nameOf(split, key, names),
          }),
          { kind: 'stacked', unit: 'usd' },
        )}`,
      )}
      ${section(
        `Gross and net by ${by}`,
        picture(
          view,
          'revenue',
          seriesTable(view, `Revenue by ${by}, in US dollars`, lines, [
            { label: 'Gross', metric: 'revenue', unit: 'usd' },
            { label: 'Refunds', metric: 'refunds', unit: 'usd' },
            { label: 'Chargebacks', metric: 'chargebacks', unit: 'usd' },
            { label: 'Net', metric: 'net_revenue', unit: 'usd' },
          ]),
          { kind: 'line', unit: 'usd' },
        ),
      )}
      ${tableSection(view, 'currencies', ownTable(own))}
      ${SPLITS.map((one, n) => tableSection(view, one, splitTable(one, splits[n]!, names), one === 'product' ? { note: 'Refunds and disputes have no product: they are in the row without one.' } : {}))}`,
  }
}

const KINDS: Record<string, string> = { new: 'New', renewal: 'Renewal', trial: 'Trial', one_off: 'One-off' }
const sentence = (name: string) => name.replace(/^./, (letter) => letter.toUpperCase())

function nameOf(split: string, key: string, names: Names): string {
  if (key === '') return 'none'
  if (split === 'product') return names.products[key] ?? key
  if (split === 'funnel') return names.funnels[key] ?? key
  return split === 'kind' ? (KINDS[key] ?? sentence(key.replaceAll('_', ' '))) : key
}

const columns = (label: string) => [
  { label },
  ...['Gross', 'Refunds', 'Chargebacks', 'Net', 'Sales'].map((name) => ({ label: name, number: true })),
]

function ownTable(found: Figure[]): Table {
  const inIt = (value: number | null | undefined, currency: string | null) =>
    cell(money(value ?? 0, currency!), value ?? 0)
  return {
    caption: 'By currency, each in its own',
    columns: columns('Currency'),
    rows: found.map(({ key, currency, values }) => [
      key,
      inIt(values.revenue, currency),
      inIt(values.refunds, currency),
      inIt(values.chargebacks, currency),
      inIt(values.net_revenue, currency),
      show('number', values.sales),
    ]),
  }
}

function splitTable(split: (typeof SPLITS)[number], found: Figure[], names: Names): Table {
  const rows = [...found].sort((a, b) => (b.values.revenue ?? 0) - (a.values.revenue ?? 0))
  return {
    caption: `By ${split}`,
    columns: columns(sentence(split)),
    rows: rows.map(({ key, values }) => [
      cell(nameOf(split, key!, names), key),
      show('usd', values.revenue),
      show('usd', values.refunds),
      show('usd', values.chargebacks),
      show('usd', values.net_revenue),
      show('number', values.sales),
    ]),
  }
}
