// The sentences of messages.
import { type MetricName, metrics } from '../../data/figures/metrics.ts'
import { clockOf, dateOf } from '../../lib/days.ts'
import { instantFromPg } from '../../lib/time.ts'
import { type Amount, changeOf, type Reading, type Rule } from './rule.ts'
import type { State } from './state.ts'

/** A message before it is written for its destination. None of it identifies a person. */
export interface Content {
  title: string
  lines: string[]
  /** The page of the dashboard that it is about. */
  path: string
  /** For programs: the rule with its figure, or the figures of a digest. */
  data?: object
}

const NUMBER = new Intl.NumberFormat('en-US', { maximumFractionDigits: 2 })
const PERCENT = new Intl.NumberFormat('en-US', { style: 'percent', maximumFractionDigits: 1 })

/** A figure as a page shows it. */
export function shown(metric: MetricName, value: number | null, currency: string): string {
  if (value === null) return 'none'
  const { unit } = metrics[metric]
  const money = () => new Intl.NumberFormat('en-US', { style: 'currency', currency })
  return (unit === 'money' ? money() : unit === 'ratio' ? PERCENT : NUMBER).format(value)
}

/** A threshold with all of its digits, of which it has at most six behind the point: 0.0075 is 0.75%, and not 0.8%. */
export function exactly(metric: MetricName, value: number, currency: string): string {
  const { unit } = metrics[metric]
  const style: Intl.NumberFormatOptions =
    unit === 'money' ? { style: 'currency', currency } : { style: unit === 'ratio' ? 'percent' : 'decimal' }
  return new Intl.NumberFormat('en-US', { ...style, maximumFractionDigits: unit === 'ratio' ? 4 : 6 }).format(value)
}

/** The figure of a rule; with more digits where it would look like the threshold that it is below or above. */
const found = ({ metric, condition, threshold }: Rule, value: number | null, currency: string): string =>
  value !== null && condition !== 'change' && shown(metric, value, currency) === shown(metric, threshold, currency)
    ? exactly(metric, value, currency)
    : shown(metric, value, currency)

/** `net_revenue` is `net revenue`. */
export const nameOf = (metric: MetricName): string =>
  metric.replaceAll('_', ' ').replace(/\b(mrr|cac|arpu|arppu)\b/, (word) => word.toUpperCase())

export function ruleContent(state: State, rule: Rule, reading: Reading): Content {
  const { metric, condition, threshold, filter } = rule
  const { day, value, before, hours, without, mrrWithout } = reading
  const what = `${nameOf(metric)}${filter ? ` of ${filter.dimension} ${filter.value}` : ''}`
  const when = hours === undefined ? dateOf(day) : `${dateOf(day)} until ${clockOf(hours)}`
  const lines = [metrics[metric].definition]
  if (condition === 'change') lines.push(`The same weekday a week earlier: ${shown(metric, before, state.currency)}.`)
  if (without > 0) lines.push(withoutLine(without))
  lines.push(...mrrWithoutLines(mrrWithout))
  lines.push(
    `Rule ${rule.id}: ${condition === 'change' ? `a change of ${signed(threshold)}` : `${condition} ${exactly(metric, threshold, state.currency)}`}.`,
  )
  const figure = `${found(rule, value, state.currency)} on ${when}, ${comparison(state, rule, reading)}`
  return {
    title: `${state.name}: ${what} ${metrics[metric].unit === 'count' ? 'were' : 'was'} ${figure}`,
    lines,
    path: pagePath(state.projectId, metric, day),
    data: {
      alert_id: rule.id,
      metric,
      condition,
      threshold,
      value,
      ...(condition === 'change' && { before }),
      ...(filter && { [filter.dimension]: filter.value }),
    },
  }
}

function comparison({ currency }: State, { metric, condition, threshold }: Rule, reading: Reading): string {
  if (condition !== 'change') return `${condition} ${exactly(metric, threshold, currency)}`
  const change = changeOf(reading)!
  return `${NUMBER.format(Math.abs(change))}% ${change < 0 ? 'less' : 'more'} than a week earlier`
}

const signed = (percent: number) => `${percent > 0 ? '+' : '−'}${NUMBER.format(Math.abs(percent))}%`

export const withoutLine = (count: number) =>
  `${NUMBER.format(count)} ${count === 1 ? 'amount has' : 'amounts have'} no exchange rate and ${count === 1 ? 'is' : 'are'} not in it.`

/** A line with the amounts that the MRR leaves out, or none. */
export const mrrWithoutLines = (amounts: Amount[]): string[] =>
  amounts.length === 0
    ? []
    : [
        `The MRR is without ${amounts.map(({ currency, amount }) => shown('mrr', amount, currency)).join(', ')}: no exchange rate.`,
      ]

export const staleContent = (state: State): Content => ({
  title: `${state.name}: the figures of ${dateOf(state.yesterday)} are not complete, so its alerts were not checked`,
  lines: [staleLine(state), 'They are checked as soon as the figures are complete. What to do: tundish doctor'],
  path: `/doctor?project=${encodeURIComponent(state.projectId)}`,
})

/** Why the figures of yesterday are not complete. */
export function staleLine({ asOf, failure, yesterday }: State): string {
  if (failure !== undefined) return `The figures of ${dateOf(yesterday)} cannot be computed (SQLSTATE ${failure}).`
  if (asOf === undefined) return 'Nothing was counted yet, or everything is counted again.'
  const instant = instantFromPg(asOf)
  return `Everything is counted until ${dateOf(instant)}, ${instant.slice(11, 16)} UTC only.`
}

// The page that shows a metric, by the table of its family.
const PAGES: Readonly<Record<string, string>> = {
  figures_sales: '/revenue',
  figures_visits: '/funnels',
  figures_screens: '/funnels',
  figures_spend: '/acquisition',
  figures_payments: '/charges',
  figures_declines: '/declines',
  figures_subscriptions: '/movements',
}

/** The path of the page that shows a metric. */
export const pageOf = (metric: MetricName): string => PAGES[metrics[metric].family.table] ?? '/'

const pagePath = (project: string, metric: MetricName, day: string): string =>
  `${pageOf(metric)}?${new URLSearchParams({ project, from: day, to: day })}`
