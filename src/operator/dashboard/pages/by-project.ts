// The figures of an organization by project, each in its own reporting currency.
import { money } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Figure, figures, mostFirst, roundMoney, valueCell } from '../numbers.ts'
import { choices, tableSection } from '../parts.ts'
import { type Cell, cell, named, numbers, type Table } from '../sheet.ts'
import { type Page, PLAIN_PERIOD } from '../shell.ts'
import { nameOfProject, shownProjects, type View } from '../view.ts'

const METRICS = 'revenue,net_revenue,sales,sessions,conversion_rate,new_subscriptions,paying,mrr'
const MONEY = ['revenue', 'net_revenue', 'mrr'] as const

/** A table with a row for each project, which leads to its page. */
export async function projectTable(view: View): Promise<Piece> {
  return tableSection(view, 'projects', tableOf(view, await figures(view, METRICS, { by: 'project' })))
}

/**
 * In place of a page with the sums of projects that have different reporting currencies, whose amounts are not added: each project, and each
 * currency.
 */
export async function severalCurrencies(view: View, title: string): Promise<Page> {
  const each = await figures(view, METRICS, { by: 'project' })
  const projects = shownProjects(view)
  return {
    title,
    ...PLAIN_PERIOD,
    body: html`<p class="note">These projects have different reporting currencies, whose amounts are not added: each project is shown on
        its own. Choose one to see this page for it.</p>
      ${choices(view, Object.fromEntries(projects.map(({ id, name }) => [id, name || id])), '', (project) => ({ project }))}
      ${tableSection(view, 'projects', tableOf(view, each))}
      ${tableSection(view, 'currencies', currencyTable(each), { note: 'Sums of the projects with the same reporting currency.' })}`,
  }
}

const moneyCell = ({ currency, values }: Figure, metric: string): Cell =>
  cell(money(values[metric] ?? 0, currency ?? 'USD'), values[metric] ?? 0)

function tableOf(view: View, each: Figure[]): Table {
  return {
    caption: 'By project',
    columns: [
      { label: 'Project' },
      ...numbers('Revenue', 'Net', 'MRR', 'Sales', 'Sessions', 'Conversion', 'New subscriptions', 'Paying'),
      { label: 'Currency', csvOnly: true },
    ],
    rows: mostFirst(each, 'revenue').map((one) => [
      named(
        html`<a href="${view.href('/', { project: one.key! })}">${nameOfProject(view, one.key!)}</a>`,
        one.key!,
        nameOfProject(view, one.key!),
      ),
      ...MONEY.map((metric) => moneyCell(one, metric)),
      valueCell('number', one.values.sales ?? 0),
      valueCell('number', one.values.sessions ?? 0),
      valueCell('percent', one.values.conversion_rate),
      valueCell('number', one.values.new_subscriptions ?? 0),
      valueCell('number', one.values.paying ?? 0),
      cell('', one.currency),
    ]),
  }
}

function currencyTable(each: Figure[]): Table {
  const rows = [...Map.groupBy(each, ({ currency }) => currency ?? 'USD')].sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    caption: 'By currency',
    columns: [{ label: 'Currency' }, ...numbers('Projects', 'Revenue', 'Net', 'MRR')],
    rows: rows.map(([currency, own]) => {
      const sumOf = (metric: string) => roundMoney(own.reduce((sum, { values }) => sum + (values[metric] ?? 0), 0))
      return [
        currency,
        valueCell('number', own.length),
        ...MONEY.map((metric) => cell(money(sumOf(metric), currency), sumOf(metric))),
      ]
    }),
  }
}
