// Acquisition: what customers cost, and what they bring back.
import type { Response } from '../call.ts'
import { VISITED_BY } from '../dimensions.ts'
import { callFiltered, filterTo, nameOfValue } from '../filter.ts'
import { labelsOf, plural } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { firstLacking, type Lacking, lackingOf, sumLacking } from '../lacking.ts'
import { type Figure, figureWith, type Names, namesOf, valueCell } from '../numbers.ts'
import { choices, rowsBehind, tableSection, tile, tiles } from '../parts.ts'
import { type Cell, cell, named, numbers, type Table } from '../sheet.ts'
import { noProject, type Page, PLAIN_PERIOD } from '../shell.ts'
import { daysOf, type View } from '../view.ts'

type Return = Response<'getAcquisition'>['data'][number]

const BY = labelsOf('source', 'campaign', 'funnel')
type By = keyof typeof BY
const DAYS = [0, 7, 30, 90]

export async function acquisition(view: View): Promise<Page> {
  const title = 'Acquisition'
  if (!view.project) return { title, body: noProject(view) }
  const query = { ...daysOf(view), test: view.test }
  const params = { project_id: view.project.id }
  const by = (Object.keys(BY) as By[]).find((name) => name === view.query.get('split')) ?? 'source'
  const [{ result: all, note: unfiltered }, { result: each }, names, { spend: spent }] = await Promise.all([
    callFiltered(view, 'getAcquisition', { params, query }, VISITED_BY),
    callFiltered(view, 'getAcquisition', { params, query: { ...query, by } }, VISITED_BY),
    namesOf(view),
    lackingOf(view, 'spend'),
  ])
  const [sum] = all.data
  const { key: _key, returned: _returned, returned_unvalued: _left, revenue_unvalued: _out, roas, ...sums } = sum ?? {}
  const values = { ...sums, roas: roas?.at(-1) ?? null }
  const figure = figureWith(view, values)
  const newPeople = rowsBehind(view, '/sessions', 'sessions', { first: 'true' })
  // The figure is that of all products.
  const newCustomers = rowsBehind(view, '/payments', 'payments', { first: 'true', product: null })
  const incomplete = DAYS.filter((day) => all.days_since < day)
  return {
    title,
    ...PLAIN_PERIOD,
    question: 'What does a customer cost, and does it pay back?',
    body: html`${unfiltered && html`<p class="note">${unfiltered}People who come have no product yet.</p>`}
      ${tiles(
        spendTile(view, figure, sum, spent),
        tile('New people', figure, 'people', 'number', { note: 'first session', rows: newPeople }),
        tile('New customers', figure, 'customers', 'number', { note: 'first payment', rows: newCustomers }),
        tile('Cost of a customer', figure, 'cac', 'usd', {
          isRate: true,
          note: 'spend ÷ new customers',
          lacks: spent,
          rows: newCustomers,
        }),
        tile('Return at day 90', figure, 'roas', 'percent', {
          note: all.days_since < 90 ? 'still growing' : 'of the spend',
          lacks: firstLacking(sumLacking(sum?.returned_unvalued), spent),
          rows: newPeople,
        }),
        tile('Revenue per new person', figure, 'revenue_per_new_person', 'usd', {
          isRate: true,
          note: 'of these people',
          lacks: sumLacking(sum?.revenue_unvalued),
          rows: newPeople,
        }),
      )}
      ${tableSection(view, 'acquisition', returnTable(view, by, each.data, sum, names), {
        title: `By ${BY[by].toLowerCase()}`,
        above: choices(view, BY, by),
        note: html`${unfiltered}Net revenue of the people who came first in this period, so many days after they came, divided by the spend.
          ${incomplete.length > 0 && `Not complete yet: day ${incomplete.join(', ')}.`} Values beyond the 1,000 most frequent of a day are “other”.`,
        empty: html`<p>No sessions and no spend in this period. Load what you spend: <code>tundish figures spend</code>.</p>`,
      })}`,
  }
}

/** Spend has no rows but its sums: the tile leads to those by campaign. */
const spendTile = (view: View, figure: Figure, sum: Return | undefined, lacks: Lacking) =>
  tile('Spend', figure, 'spend', 'usd', {
    isRate: sum?.spend === null,
    note: sum?.spend === null ? 'not known of one country or variant' : 'on advertising',
    lacks,
    rows: rowsBehind(view, '/acquisition', 'acquisition', { split: 'campaign' }),
  })

function returnTable(view: View, by: By, rows: Return[], sum: Return | undefined, names: Names): Table {
  const labels = ['Per customer', 'Payback', 'Spend', 'People', 'Customers', ...DAYS.map((day) => `Day ${day}`)]
  const cells = (row: Return) => [
    valueCell('usd', row.cac),
    cell(paybackOf(row), row.payback_days),
    valueCell('usd', row.spend || null),
    valueCell('number', row.people),
    valueCell('number', row.customers),
    ...row.roas.map((value: number | null) => valueCell('percent', value)),
  ]
  const total = sum && rows.length > 1 ? [['Total', ...cells(sum)]] : []
  return {
    caption: `By ${BY[by].toLowerCase()}`,
    columns: [{ label: BY[by] }, ...numbers(...labels)],
    rows: [...rows.map((row) => [keyCell(view, by, row.key, names), ...cells(row)]), ...total],
  }
}

const paybackOf = ({ payback_days, spend }: Return): Piece =>
  payback_days !== null ? plural(payback_days, 'day') : spend ? 'not yet' : '–'

/** The value of a dimension, which is null only for all of them together. */
export function keyCell(view: View, by: string, key: string | null, names: Names): Cell {
  const value = key ?? ''
  return named(filterTo(view, '/revenue', by, value, nameOfValue(by, value, names)), value)
}

// Thirty days say nothing of a worth, and little of an experiment.
export const YEAR = { period: '12m' }
export const hasChosenPeriod = ({ query }: View) => query.has('period') || query.has('from')
