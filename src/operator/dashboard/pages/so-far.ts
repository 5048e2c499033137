// Today so far, compared with the whole of yesterday and of the same weekday a week ago.
import { addDays, dateOf } from '../../../lib/days.ts'
import { html, type Piece } from '../html.ts'
import { revenueLacking } from '../lacking.ts'
import { figures, figureWith, show, type Unit } from '../numbers.ts'
import { section, tile, tiles } from '../parts.ts'
import type { View } from '../view.ts'

const SHOWN = { revenue: 'usd', sales: 'number', sessions: 'number', new_subscriptions: 'number' } as const
const LABELS = { revenue: 'Revenue', sales: 'Sales', sessions: 'Sessions', new_subscriptions: 'New subscriptions' }
const PAGES = { revenue: '/revenue', sales: '/revenue', sessions: '/funnels', new_subscriptions: '/subscriptions' }
type Metric = keyof typeof SHOWN

export async function soFar(view: View): Promise<Piece> {
  const { today } = view.span
  const [yesterday, before] = [addDays(today, -1), addDays(today, -7)]
  const query = { by: 'day', from: before, to: addDays(today, 1) } as const
  const [found, lacking] = await Promise.all([
    figures(view, Object.keys(SHOWN).join(','), query),
    revenueLacking(view, query),
  ])
  const of = (day: string) => found.find(({ period }) => period === day)?.values ?? {}
  const figure = figureWith(view, of(today))
  const weekday = new Intl.DateTimeFormat('en', { weekday: 'long', timeZone: 'UTC' }).format(new Date(before))
  const without = (day: string, metric: Metric) => {
    const { shown } = lacking(({ period }) => metric === 'revenue' && period === day)
    return shown && html` ${shown}`
  }
  const amountOf = (day: string, metric: Metric, unit: Unit) =>
    html`${show(unit, of(day)[metric] ?? 0, view.reporting.currency)}${without(day, metric)}`
  const others = (metric: Metric, unit: Unit) =>
    html`${without(today, metric) && html`<span class="before">${without(today, metric)} ·</span> `}<span class="before">yesterday ${amountOf(yesterday, metric, unit)} ·</span> <span class="before">${weekday} ${amountOf(before, metric, unit)}</span>`
  const all = (Object.keys(SHOWN) as Metric[]).map((metric) => {
    const unit = SHOWN[metric]
    const href = view.mayOpen(PAGES[metric])
      ? view.href(PAGES[metric], { from: today, to: today, period: null })
      : undefined
    return tile(LABELS[metric], figure, metric, unit, { note: others(metric, unit), ...(href && { href }) })
  })
  return section('Today so far', tiles(...all), {
    actions: view.project && view.mayOpen('/hours') && html`<a href="${view.href('/hours')}">By hour</a>`,
    note: `${dateOf(today)} in ${view.reporting.timeZone}, compared with the whole of yesterday and of ${weekday} a week ago.`,
  })
}
