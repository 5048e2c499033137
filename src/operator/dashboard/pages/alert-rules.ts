// The rules of alerts as a table, and the form that adds one.
import { type MetricName, metricNames, metrics } from '../../../data/figures/metrics.ts'
import { clockOf, dateOf } from '../../../lib/days.ts'
import { exactly, pageOf } from '../../alerts/content.ts'
import type { Item } from '../call.ts'
import { id, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { show } from '../numbers.ts'
import { actionForm, selectField, textField } from '../parts.ts'
import { type Cell, cell, columns, type Table } from '../sheet.ts'
import { inCurrency, pathOf, type View } from '../view.ts'

type Rule = Item<'listAlerts'>

const CONDITIONS: Record<string, string> = { below: 'below', above: 'above', change: 'change in percent' }

export function ruleTable(view: View, rules: Rule[]): Table {
  return {
    caption: 'Rules',
    columns: [
      ...columns('Rule', 'Condition'),
      { label: 'Last figure', number: true },
      ...columns('Day', 'Last message', 'Problem'),
      { label: 'Actions', actions: ['/alerts/one/remove'] },
    ],
    rows: rules.map((one) => [
      cell(id(one.id), one.id),
      whenOf(view, one),
      lastFigure(view, one),
      one.checked_day ? cell(dateOf(one.checked_day), one.checked_day) : '',
      time(one.fired_at),
      one.problem ?? '',
      actionForm(view, {
        action: view.href(`${pathOf('alerts', one.id)}/remove`),
        button: 'Remove',
        danger: true,
        explanation: `The rule ${one.id} is no longer checked.`,
      }),
    ]),
  }
}

const UNITS = { money: 'usd', ratio: 'percent', count: 'number' } as const
/** Whether there is such a metric: an update may have removed it. */
const isMetric = (name: string): name is MetricName => Object.hasOwn(metrics, name)

/** A figure with the unit of its metric. */
const figureOf = ({ reporting }: View, metric: string, value: number | null): Piece =>
  show(UNITS[isMetric(metric) ? metrics[metric].unit : 'count'], value, reporting.currency)

/** The last figure, linked to the page with its day. */
function lastFigure(view: View, { metric, last_value, checked_day }: Rule): Cell {
  const shown = figureOf(view, metric, last_value)
  if (last_value === null || !isMetric(metric) || !view.mayOpen(pageOf(metric))) return cell(shown, last_value)
  const href = view.href(pageOf(metric), { from: checked_day, to: checked_day })
  return cell(html`<a href="${href}">${shown}</a>`, last_value)
}

function whenOf(view: View, { metric, condition, threshold, today, from_hour, dimension, value }: Rule): Piece {
  const what = `${metric.replaceAll('_', ' ')}${dimension ? ` of ${dimension} ${value}` : ''}`
  const limit =
    condition === 'change'
      ? `a ${threshold < 0 ? 'drop' : 'rise'} of ${Math.abs(threshold)}% in a week`
      : `${condition} ${isMetric(metric) ? exactly(metric, threshold, view.reporting.currency) : threshold}`
  return html`${what}: ${limit}${today && `, today from ${clockOf(from_hour)}`}`
}

const metricOptions = Object.fromEntries(metricNames.map((name) => [name, name.replaceAll('_', ' ')]))

export const ruleForm = (view: View): Piece =>
  actionForm(view, {
    action: view.href('/alerts/new'),
    button: 'Add a rule',
    explanation:
      'The rule is checked at once on the figures of yesterday, and then every day. A rule with the same name is replaced.',
    fields: html`${textField('alert_id', 'Name', { required: true, hint: 'For example low-revenue.' })}
      ${selectField('metric', 'Metric', metricOptions, 'revenue')}
      ${selectField('condition', 'Condition', CONDITIONS, 'below')}
      ${textField('threshold', 'Threshold', { required: true, hint: `Money ${inCurrency(view)}, rates from 0 to 1 (5% is 0.05). A change in percent against the same weekday: −30 for a drop.` })}
      ${textField('from_hour', 'Check today, from this hour', { hint: 'Leave empty to check whole days.' })}`,
  })
