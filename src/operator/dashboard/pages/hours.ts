// Today by hour: how is today, compared with yesterday and the same weekday, up to this hour?
import { addDays, clockOf } from '../../../lib/days.ts'
import type { Response } from '../call.ts'
import { VISITED_BY } from '../dimensions.ts'
import { callFiltered } from '../filter.ts'
import { html } from '../html.ts'
import { type Lacking, revenueLacking } from '../lacking.ts'
import { type Figure, figureWith, show, type Unit, valueCell } from '../numbers.ts'
import { choices, rowsBehind, section, tableSection, tile, tiles } from '../parts.ts'
import { type Column, cell, numbers, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import { inCurrency, type View } from '../view.ts'

const SHOWN = { revenue: 'usd', sales: 'number', customers: 'number', sessions: 'number' } as const
const LABELS = { revenue: 'Revenue', sales: 'Sales', customers: 'New customers', sessions: 'Sessions' }
type Metric = keyof typeof SHOWN
const DAYS = { today: 'Today', yesterday: 'Yesterday', week_before: 'A week before' } as const
type Day = keyof typeof DAYS

/** The payments or sessions of today; of new customers, their first payments. */
function rowsOfToday(view: View, metric: Metric) {
  const { today } = view.span
  const list = metric === 'sessions' ? 'sessions' : 'payments'
  const first = metric === 'customers' ? 'true' : null
  return rowsBehind(view, `/${list}`, list, { from: today, to: today, period: null, first })
}

export async function hours(view: View): Promise<Page> {
  const title = 'Today by hour'
  if (!view.project) return { title, body: noProject(view) }
  const input = { params: { project_id: view.project.id }, query: { test: view.test } }
  const { today } = view.span
  const [{ result, note }, lacking] = await Promise.all([
    callFiltered(view, 'getToday', input, VISITED_BY),
    revenueLacking(view, { by: 'hour', from: today, to: addDays(today, 1) }),
  ])
  const { hour, so_far, data } = result
  const asked = view.query.get('split') ?? 'revenue'
  const metric = (Object.hasOwn(SHOWN, asked) ? asked : 'revenue') as Metric
  const unit: Unit = SHOWN[metric]
  const figure: Figure = { ...figureWith(view, so_far.today), compared: so_far.today, previous: so_far.week_before }
  /** What is not in a tile: amounts without a value, and the hour that is not over, which the list behind it has. */
  const besides = (name: Metric): Lacking => {
    const value = data[hour]?.today?.[name]
    const now = value ? html`${show(SHOWN[name], value, view.reporting.currency)} more since ${clockOf(hour)}` : ''
    if (name !== 'revenue') return { currencies: [], shown: now }
    const over = lacking(({ key }) => Number(key) < hour)
    return { ...over, shown: over.shown && now ? html`${over.shown}, ${now}` : over.shown || now }
  }
  const { shown: missing } = lacking(() => true)
  const content: Table = {
    caption: `${LABELS[metric]} by hour, in ${view.reporting.timeZone}`,
    columns: [
      { label: 'Hour' },
      ...Object.values(DAYS).map((label): Column => ({ label, number: true, earlier: label !== DAYS.today })),
    ],
    rows: data.map((one) => [
      cell(clockOf(one.hour), clockOf(one.hour)),
      ...(Object.keys(DAYS) as Day[]).map((day) => valueCell(unit, one[day]?.[metric] ?? null)),
    ]),
  }
  return {
    title,
    question: html`How is today, compared with yesterday and the same weekday, ${hour === 0 ? 'before its first hour is over' : `until ${clockOf(hour)} in ${view.reporting.timeZone}`}?`,
    body: html`${note && html`<p class="note">${note}Sessions have no product.</p>`}
      ${tiles(...(Object.keys(SHOWN) as Metric[]).map((name) => tile(LABELS[name], figure, name, SHOWN[name], { lacks: besides(name), rows: rowsOfToday(view, name) })))}
      ${missing && html`<p class="note">The revenue of today is ${missing}, which has no value ${inCurrency(view)}.</p>`}
      ${tableSection(view, 'so-far', soFarTable(so_far), { title: hour === 0 ? 'Until now' : `Until ${clockOf(hour)}`, note: 'Changes above: against the same weekday. Only hours that are over are compared.' })}
      ${section(
        `${LABELS[metric]} by hour`,
        html`${choices(view, LABELS, metric)}
        ${chart(view, 'hours', content, { kind: 'bar', unit })}`,
        { note: `The hour from ${clockOf(hour)} is not over today.` },
      )}`,
  }
}

function soFarTable(sums: Response<'getToday'>['so_far']): Table {
  return {
    caption: 'Until this hour',
    columns: [{ label: 'Figure' }, ...numbers(...Object.values(DAYS))],
    rows: (Object.keys(SHOWN) as Metric[]).map((metric) => [
      LABELS[metric],
      ...(Object.keys(DAYS) as Day[]).map((day) => valueCell(SHOWN[metric], sums[day][metric])),
    ]),
  }
}
