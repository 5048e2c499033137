// Acquisition: what customers cost, what they bring back, and what they are worth by cohort.
import { addDays, addMonths, dateOf, monthOf } from '../../../lib/days.ts'
import type { Response } from '../call.ts'
import { FILTERED_BY, VISITED_BY } from '../dimensions.ts'
import { callFiltered, filterTo } from '../filter.ts'
import { country, money, plural } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { firstLacking, lackingOf, sumLacking } from '../lacking.ts'
import { type Figure, type Names, namesOf, valueCell } from '../numbers.ts'
import { choices, rowsBehind, tableSection, tile, tiles } from '../parts.ts'
import { type Cell, type Column, cell, named, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { inCurrency, type View } from '../view.ts'

type Return = Response<'getAcquisition'>['data'][number]

const BY = { source: 'Source', campaign: 'Campaign', funnel: 'Funnel' } as const
type By = keyof typeof BY
const DAYS = [0, 7, 30, 90]

export async function acquisition(view: View): Promise<Page> {
  const title = 'Acquisition'
  if (!view.project) return { title, body: noProject(view) }
  const { from, to } = view.span
  const query = { from, to: addDays(to, -1), test: view.test }
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
  const figure: Figure = { period: null, key: null, currency: view.reporting.currency, values }
  const newPeople = rowsBehind(view, '/sessions', 'sessions', { first: 'true' })
  const newCustomers = rowsBehind(view, '/payments', 'payments', { first: 'true' })
  const incomplete = DAYS.filter((day) => all.days_since < day)
  return {
    title,
    hasPeriod: true,
    isGrouped: false,
    isCompared: false,
    question: 'What does a customer cost, and does it pay back?',
    body: html`${unfiltered && html`<p class="note">${unfiltered}People who come have no product yet.</p>`}
      ${tiles(
        tile('Spend', figure, 'spend', 'usd', { isRate: sum?.spend === null, note: spendNote(sum), lacks: spent }),
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

const spendNote = (sum: Return | undefined): Piece =>
  sum && sum.spend === null ? 'not known of one country or variant' : 'on advertising'

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
    columns: [{ label: BY[by] }, ...labels.map((label): Column => ({ label, number: true }))],
    rows: [...rows.map((row) => [keyCell(view, by, row.key, names), ...cells(row)]), ...total],
  }
}

const paybackOf = ({ payback_days, spend }: Return): Piece =>
  payback_days !== null ? `${payback_days} days` : spend ? 'not yet' : '–'

/** The value of a dimension, which is null only for all of them together. */
function keyCell(view: View, by: string, key: string | null, names: Names): Cell {
  const value = key ?? ''
  return named(filterTo(view, '/revenue', by, value, nameOf(by, value, names)), value)
}

const nameOf = (by: string, key: string, { funnels, products }: Names): string => {
  if (key === '') return 'none'
  if (by === 'country') return country(key)
  return (by === 'funnel' ? funnels[key] : by === 'product' ? products[key] : key) ?? key
}

// Thirty days say nothing of a worth, and little of an experiment.
export const YEAR = { period: '12m' }
export const hasChosenPeriod = ({ query }: View) => query.has('period') || query.has('from')

const WORTH_BY = {
  cohort: 'Cohort',
  source: 'Source',
  campaign: 'Campaign',
  funnel: 'Funnel',
  product: 'Product',
  country: 'Country',
  variant: 'Variant',
}
const SHOWN_MONTHS = 12

export async function worth(view: View): Promise<Page | string> {
  const title = 'Customer worth'
  if (!view.project) return { title, body: noProject(view) }
  if (!hasChosenPeriod(view)) return view.href(view.path, YEAR)
  const since = view.query.get('since') === 'session' ? 'session' : 'payment'
  const cohort = view.query.get('cohort') === 'week' ? 'week' : 'month'
  const asked = view.query.get('split') ?? 'cohort'
  const split = asked in WORTH_BY && (asked !== 'product' || since === 'payment') ? asked : 'cohort'
  const { from, to } = view.span
  const known = since === 'payment' ? FILTERED_BY : VISITED_BY
  const input = {
    params: { project_id: view.project.id },
    query: { from, to: addDays(to, -1), since, cohort, test: view.test, ...(split !== 'cohort' && { by: split }) },
  }
  const [{ result, note: unfiltered }, names] = await Promise.all([
    callFiltered(view, 'getLifetime', input, known),
    namesOf(view),
  ])
  const choice = (name: string, chosen: string, options: Record<string, string>) =>
    choices(view, options, chosen, (key) => ({ since, cohort, split, [name]: key }))
  const rows = result.data
  return {
    title,
    hasPeriod: true,
    isGrouped: false,
    isCompared: false,
    question: 'What is a customer worth, and how soon?',
    body: html`${split === 'cohort' && worthTiles(view, rows)}
      ${tableSection(view, 'worth', worthTable(view, split, rows, names), {
        title: `Net revenue per person since the first ${since}`,
        above: html`${choice('since', since, { payment: 'Since the first payment', session: 'Since the first session' })}
          ${choice('split', split, since === 'payment' ? WORTH_BY : omit(WORTH_BY, 'product'))}
          ${split === 'cohort' && choice('cohort', cohort, { month: 'By month', week: 'By week' })}`,
        note: html`${unfiltered}Cumulative, ${inCurrency(view)}, by whole months since. Faded: not over yet for everybody in the row.`,
        empty: html`<p>Nobody began in this period.</p>`,
      })}`,
  }
}

const AFTER = [1, 3, 6, 12]

/** What a person was worth after some months, of all people for whom they are over. */
function worthTiles(view: View, rows: Response<'getLifetime'>['data']): Piece {
  const values: Record<string, number | null> = {}
  const notes = AFTER.map((months) => {
    const over = rows.filter(({ complete }) => complete >= months)
    const people = over.reduce((sum, one) => sum + one.people, 0)
    const worth = over.reduce((sum, one) => sum + one.people * (one.worth[months - 1] ?? 0), 0)
    values[months] = people > 0 ? worth / people : null
    return people > 0 ? html`of ${plural(people, 'person', 'people')}` : 'not over yet'
  })
  const figure: Figure = { period: null, key: null, currency: view.reporting.currency, values }
  const lacks = (months: number) =>
    sumLacking(
      rows
        .filter(({ complete }) => complete >= months)
        .flatMap(({ unvalued }) =>
          unvalued.map(({ currency, amounts }) => ({ currency, amount: amounts[months - 1] ?? 0 })),
        ),
    )
  const label = (months: number) => (months === 1 ? 'After 1 month' : `After ${months} months`)
  return (
    rows.length > 0 &&
    tiles(
      ...AFTER.map((months, n) =>
        tile(label(months), figure, String(months), 'usd', {
          isRate: true,
          note: notes[n]!,
          lacks: lacks(months),
        }),
      ),
    )
  )
}

const omit = (all: Record<string, string>, name: string) =>
  Object.fromEntries(Object.entries(all).filter(([key]) => key !== name))

function worthTable(view: View, split: string, rows: Response<'getLifetime'>['data'], names: Names): Table {
  const months = Math.min(SHOWN_MONTHS, Math.max(0, ...rows.map(({ worth }) => worth.length)))
  const heads = Array.from({ length: months }, (_, month) => `Month ${month + 1}`)
  return {
    caption: 'Net revenue per person',
    hasMoney: true,
    columns: [
      { label: WORTH_BY[split as keyof typeof WORTH_BY] },
      ...['People', ...heads].map((label): Column => ({ label, number: true })),
    ],
    rows: rows.map(({ cohort, key, people, worth, complete }) => [
      split === 'cohort' ? cohortCell(view, cohort!) : keyCell(view, split, key, names),
      valueCell('number', people),
      ...heads.map((_, month) => faded(worth[month], month >= complete, view.reporting.currency)),
    ]),
  }
}

/**
 * A month, or the first day of a week. It leads to the sessions of its days, or to the subscriptions of those who paid first in the month.
 */
function cohortCell(view: View, cohort: string): Cell {
  const isWeek = view.query.get('cohort') === 'week'
  const shown = isWeek ? dateOf(cohort) : monthOf(cohort)
  const to = addDays(isWeek ? addDays(cohort, 7) : addMonths(cohort, 1), -1)
  if (view.query.get('since') === 'session')
    return cell(html`<a href="${view.href('/sessions', { from: cohort, to, period: null })}">${shown}</a>`, cohort)
  if (isWeek) return cell(shown, cohort)
  return cell(
    html`<a href="${view.href('/subscriptions', { first_payment: cohort.slice(0, 7) })}#subscriptions">${shown}</a>`,
    cohort,
  )
}

const faded = (value: number | null | undefined, isFaded: boolean, currency: string) =>
  value === undefined
    ? cell('', null)
    : cell(isFaded ? html`<span class="quiet">${money(value, currency)}</span>` : money(value, currency), value)
