// Customer worth: what people bring in after some months, by cohort.
import { addDays, addMonths, dateOf, monthOf } from '../../../lib/days.ts'
import type { Response } from '../call.ts'
import { FILTERED_BY, VISITED_BY } from '../dimensions.ts'
import { callFiltered } from '../filter.ts'
import { labelsOf, money, plural } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { sumLacking } from '../lacking.ts'
import { figureWith, type Names, namesOf, valueCell } from '../numbers.ts'
import { choices, rowsBehind, tableSection, tile, tiles } from '../parts.ts'
import { type Cell, cell, numbers, type Table } from '../sheet.ts'
import { noProject, type Page, PLAIN_PERIOD } from '../shell.ts'
import { daysOf, inCurrency, type View } from '../view.ts'
import { hasChosenPeriod, keyCell, YEAR } from './acquisition.ts'

const WORTH_BY = labelsOf('cohort', 'source', 'campaign', 'funnel', 'product', 'country', 'variant')
const SHOWN_MONTHS = 12

export async function worth(view: View): Promise<Page | string> {
  const title = 'Customer worth'
  if (!view.project) return { title, body: noProject(view) }
  if (!hasChosenPeriod(view)) return view.href(view.path, YEAR)
  const since = view.query.get('since') === 'session' ? 'session' : 'payment'
  const cohort = isByWeek(view) ? 'week' : 'month'
  const asked = view.query.get('split') ?? 'cohort'
  const split = Object.hasOwn(WORTH_BY, asked) && (asked !== 'product' || since === 'payment') ? asked : 'cohort'
  const known = since === 'payment' ? FILTERED_BY : VISITED_BY
  const input = {
    params: { project_id: view.project.id },
    query: { ...daysOf(view), since, cohort, test: view.test, ...(split !== 'cohort' && { by: split }) },
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
    ...PLAIN_PERIOD,
    question: 'What is a customer worth, and how soon?',
    body: html`${split === 'cohort' && worthTiles(view, rows)}
      ${tableSection(view, 'worth', worthTable(view, split, rows, names), {
        title: `Net revenue per person since the first ${since}`,
        above: html`${choice('since', since, { payment: 'Since the first payment', session: 'Since the first session' })}
          ${choice('split', split, since === 'payment' ? WORTH_BY : omit(WORTH_BY, 'product'))}
          ${split === 'cohort' && choice('cohort', cohort, { month: 'By month', week: 'By week' })}`,
        note: html`${unfiltered}Cumulative, ${inCurrency(view)}, by whole months since. Faded: not over yet for everybody in the row.${leftOut(view, rows)}`,
        empty: html`<p>Nobody began in this period.</p>`,
      })}`,
  }
}

/** Says what the rows leave out up to now, which includes months that no tile shows. */
function leftOut(view: View, rows: Response<'getLifetime'>['data']): Piece {
  const { shown } = sumLacking(
    rows.flatMap(({ unvalued }) =>
      unvalued.map(({ currency, amounts }) => ({ currency, amount: amounts.at(-1) ?? 0 })),
    ),
  )
  return shown && html` <strong>Revenue is ${shown}: no value ${inCurrency(view)}.</strong>`
}

const AFTER = [1, 3, 6, 12]

/** What a person was worth after some months, of all people for whom they are over. */
function worthTiles(view: View, rows: Response<'getLifetime'>['data']): Piece {
  const values: Record<string, number | null> = {}
  const overAfter = (months: number) => rows.filter(({ complete }) => complete >= months)
  const notes = AFTER.map((months) => {
    const over = overAfter(months)
    const people = over.reduce((sum, one) => sum + one.people, 0)
    const worth = over.reduce((sum, one) => sum + one.people * (one.worth[months - 1] ?? 0), 0)
    values[months] = people > 0 ? worth / people : null
    return people > 0 ? html`of ${plural(people, 'person', 'people')}` : 'not over yet'
  })
  const figure = figureWith(view, values)
  const lacks = (months: number) =>
    sumLacking(
      overAfter(months).flatMap(({ unvalued }) =>
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
          rows: peopleBehind(view, overAfter(months)),
        }),
      ),
    )
  )
}

/** The first payments or sessions of the people in these cohorts, which follow each other from the first day of the page. */
function peopleBehind(view: View, cohorts: Response<'getLifetime'>['data']): string | undefined {
  const last = cohorts
    .map(({ cohort }) => cohort!)
    .sort()
    .at(-1)
  if (last === undefined) return undefined
  const list = view.query.get('since') === 'session' ? 'sessions' : 'payments'
  const { from, to } = view.span
  const [end] = [lastDayOf(view, last), addDays(to, -1)].sort()
  return rowsBehind(view, `/${list}`, list, { first: 'true', from, to: end!, period: null })
}

const isByWeek = ({ query }: View) => query.get('cohort') === 'week'
const lastDayOf = (view: View, cohort: string) =>
  addDays(isByWeek(view) ? addDays(cohort, 7) : addMonths(cohort, 1), -1)

const omit = (all: Record<string, string>, name: string) =>
  Object.fromEntries(Object.entries(all).filter(([key]) => key !== name))

function worthTable(view: View, split: string, rows: Response<'getLifetime'>['data'], names: Names): Table {
  const months = Math.min(SHOWN_MONTHS, Math.max(0, ...rows.map(({ worth }) => worth.length)))
  const heads = Array.from({ length: months }, (_, month) => `Month ${month + 1}`)
  return {
    caption: 'Net revenue per person',
    columns: [{ label: WORTH_BY[split as keyof typeof WORTH_BY] }, ...numbers('People', ...heads)],
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
  const isWeek = isByWeek(view)
  const shown = isWeek ? dateOf(cohort) : monthOf(cohort)
  const to = lastDayOf(view, cohort)
  if (view.query.get('since') === 'session')
    return cell(html`<a href="${view.href('/sessions', { from: cohort, to, period: null })}">${shown}</a>`, cohort)
  if (isWeek) return cell(shown, cohort)
  return cell(
    html`<a href="${view.href('/subscriptions', { first_payment: cohort.slice(0, 7) })}#subscriptions">${shown}</a>`,
    cohort,
  )
}

const faded = (value: number | null | undefined, isFaded: boolean, currency: string): Cell => {
  if (value === undefined) return cell('', null)
  const shown = money(value, currency)
  return { ...cell(isFaded ? html`<span class="quiet">${shown}</span>` : shown, value), unit: 'usd' }
}
