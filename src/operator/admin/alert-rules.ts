// Rules that send a message when a figure of a project is below or above a number, or has changed.

import { FILTERS, isStoredFilter } from '../../data/figures/filters.ts'
import { HOUR_METRICS } from '../../data/figures/hours.ts'
import { type MetricName, metricNames, metrics } from '../../data/figures/metrics.ts'
import { invalidParameter, invalidValue } from '../../lib/errors.ts'
import { DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import { MoneyError, readAmount } from '../../lib/money.ts'
import type { Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, decimal, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { ALERTS_TAG, checkAlertId, ensureAlertSettings, refuseTooMany } from './alert-settings.ts'
import { notFound } from './exist.ts'
import { readQuery } from './figures-query.ts'
import { list, ofProject } from './list.ts'
import { amountField } from './names.ts'
import { change, type Input, type ParamsOf } from './operation.ts'

const PATH = '/projects/:project_id/alerts'
const ONE = `${PATH}/:alert_id` as const
const MAX_RULES = 100

const rule = shape('AlertRule', 'r', {
  id: text('Name of the rule, unique in the project.', { example: 'low-revenue' }),
  metric: text('The metric of the figures.', { example: 'revenue' }),
  condition: text(
    'When a message is sent: the figure is `below` or `above` the threshold, or its `change` against the same weekday a week earlier reaches it.',
    { enum: ['below', 'above', 'change'] },
  ),
  threshold: decimal(
    'In the unit of the metric: money in major units, rates from 0 to 1. For `change`, percent; negative for a drop.',
    { example: 1000 },
  ),
  today: boolean('Whether it is checked on the present day instead of on the day before.'),
  from_hour: integer('For `today`: from which hour on.'),
  dimension: text('The dimension that the figure is filtered by.', { nullable: true, example: 'funnel' }),
  value: text('Its value.', { nullable: true, example: 'sleep' }),
  checked_day: text('The last day that was decided.', {
    nullable: true,
    sql: `to_char(r.checked_day, 'YYYY-MM-DD')`,
    example: '2026-10-25',
  }),
  last_value: decimal('The figure of that day.', { nullable: true, example: 812.5 }),
  fired_at: instant('When it last sent a message.', { nullable: true }),
  problem: text('Why it cannot be checked.', { nullable: true, example: 'There is no metric "gross".' }),
  created_at: instant('When it was created.'),
  updated_at: instant('When it was last changed.'),
})

interface Given extends Partial<Record<(typeof FILTERS)[number], string>> {
  metric: string
  condition: 'below' | 'above' | 'change'
  threshold: number | string
  today?: boolean
  from_hour?: number
}

const body = Type.Named('AlertRuleSettings', {
  metric: Type.String({
    description: 'The metric of the figures.',
    examples: ['revenue'],
    maxLength: 64,
    [DECLARED_ONLY]: { enum: metricNames },
  }),
  condition: Type.String({
    enum: ['below', 'above', 'change'],
    description: 'Below or above the threshold, or changed by it against the same weekday a week earlier.',
  }),
  threshold: amountField(
    'In the unit of the metric: money in major units, rates from 0 to 1 (5% is 0.05). For a change, percent; negative for a drop.',
    1000,
  ),
  today: Type.Optional(
    Type.Boolean({ default: false, description: 'Whether to check the present day instead of the day before.' }),
  ),
  from_hour: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: 23,
      description: 'For today: from which hour on. Required unless the condition is above.',
    }),
  ),
  ...Object.fromEntries(
    FILTERS.map((name) => [
      name,
      Type.Optional(
        Type.String({ description: `Only the figure of this ${name}. One filter can be given.`, maxLength: 256 }),
      ),
    ]),
  ),
})

/** Checks what the schema cannot, and returns what is stored. Throws a 400. */
function read({ body, exact = body }: Input) {
  const { metric, condition, today = false, from_hour, ...others } = body as unknown as Given
  const filters = Object.fromEntries(
    FILTERS.flatMap((name) => (others[name] === undefined ? [] : [[name, others[name]]])),
  )
  if (Object.keys(filters).length > 1)
    throw invalidValue('Only one filter can be given: a rule is about stored figures.')
  // The rule of the figures, of which a question may be about several.
  if (!metric.includes(',') && !Object.hasOwn(metrics, metric))
    throw invalidParameter(`metric must be one of ${metricNames.join(', ')}, got "${metric}".`)
  const { about } = readQuery({ metric, ...filters })
  const [filter] = about.filters ?? []
  if (about.metrics.length !== 1) throw invalidValue(`metric must be one metric, got "${metric}".`)
  if (filter && !isStoredFilter(about.metrics[0]!, filter.dimension))
    throw invalidValue(
      `${filter.dimension}: ${metric} is not stored by ${filter.dimension}, so no rule can be about it.`,
    )
  if (!today && from_hour !== undefined) throw invalidValue('from_hour needs today: other rules are about whole days.')
  if (today && condition !== 'above' && from_hour === undefined)
    throw invalidValue(
      `from_hour is required: early in the day a figure is always ${condition === 'below' ? 'low' : 'different'}.`,
    )
  if (today && condition === 'change' && (filter || !(HOUR_METRICS as readonly string[]).includes(metric)))
    throw invalidValue(`A change of today needs a metric by hour, without a filter: ${HOUR_METRICS.join(', ')}.`)
  const threshold = readThreshold(exact.threshold)
  if (condition !== 'change') requireInUnit(about.metrics[0]!, Number(threshold))
  else if (Number(threshold) === 0) throw invalidValue('threshold must not be 0 for a change.')
  return { metric, condition, threshold, today, fromHour: from_hour ?? 0, filter: filter ?? null }
}

/** A percentage is refused where a rate is meant: the rule would never send a message, or every day. */
function requireInUnit(metric: MetricName, threshold: number): void {
  if (metrics[metric].unit !== 'ratio' || (threshold >= 0 && threshold <= 1)) return
  const meant =
    threshold > 1 && threshold <= 100 ? `: ${threshold}% is ${Number((threshold / 100).toPrecision(9))}` : ''
  throw invalidValue(`threshold must be from 0 to 1, because ${metric} is a rate, got ${threshold}${meant}.`)
}

/** A decimal number as text. Only an amount in a number may have a sign, so that of a string is read here. */
function readThreshold(given: unknown): string {
  const negative = typeof given === 'string' && given.startsWith('-')
  try {
    const { digits, scale } = readAmount((negative ? given.slice(1) : given) as Parameters<typeof readAmount>[0])
    const plain = (digits < 0n ? -digits : digits).toString().padStart(scale + 1, '0')
    if (plain.length > 20 || scale > 6) throw invalidValue('threshold must have at most 14 digits and 6 decimals.')
    const [whole, decimals] = scale === 0 ? [plain, ''] : [plain.slice(0, -scale), `.${plain.slice(-scale)}`]
    return `${negative || digits < 0n ? '-' : ''}${whole}${decimals}`
  } catch (error) {
    throw error instanceof MoneyError ? invalidValue(`threshold ${error.message}.`) : error
  }
}

const target = (params: ParamsOf<typeof ONE>) => `alert ${params.alert_id} of project ${params.project_id}`
const KEPT = 'metric, condition, threshold, today, from_hour, dimension, value'

async function find(query: Query, { project_id, alert_id }: ParamsOf<typeof ONE>) {
  const [row] = await query(`select ${KEPT} from alert_rules where project_id = $1 and id = $2 for update`, [
    project_id,
    alert_id,
  ])
  return row
}

const put = change({
  id: 'putAlert',
  right: 'webhooks',
  command: 'alert set',
  method: 'PUT',
  path: ONE,
  tag: ALERTS_TAG,
  summary: 'Set an alert',
  description:
    'Creates the rule, or replaces it. A rule is checked once a day, when the figures of the day are complete; one that is new or changed, at once.',
  body,
  response: rule.schema,
  checkInput(input) {
    checkAlertId('alert_id', input.params.alert_id)
    read(input)
  },
  async change(query, input) {
    const { params } = input
    const { metric, condition, threshold, today, fromHour, filter } = read(input)
    await ensureAlertSettings(query, params.project_id)
    const before = await find(query, params)
    if (!before) await refuseTooMany(query, params.project_id, 'alert_rules', MAX_RULES, 'alerts')
    const values = [threshold, today, fromHour, filter?.dimension ?? null, filter?.value ?? null]
    await query(PUT, [params.project_id, params.alert_id, metric, condition, ...values])
    const [row] = await query(
      `select ${rule.namedColumns}, ${KEPT} from alert_rules r where r.project_id = $1 and r.id = $2`,
      [params.project_id, params.alert_id],
    )
    const after = Object.fromEntries(KEPT.split(', ').map((name) => [name, row![name]]))
    const entry = { action: 'alert.set', target: target(params), ...(before && { before }), after }
    return { entry, result: rule.readNamed(row!) }
  },
})

// A rule that is other than before is decided anew; the unique index of messages keeps it at one message a day.
const PUT = `
  insert into alert_rules as r
    (project_id, id, metric, condition, threshold, today, from_hour, dimension, value, created_at, updated_at)
  select $1, $2, $3, $4, $5::numeric, $6, $7, $8, $9, at, at from (select db_clock() as at) now
  on conflict (project_id, id) do update set metric = excluded.metric, condition = excluded.condition,
    threshold = excluded.threshold, today = excluded.today, from_hour = excluded.from_hour,
    dimension = excluded.dimension, value = excluded.value, problem = null, updated_at = excluded.updated_at,
    checked_day = case when (r.metric, r.condition, r.threshold, r.today, r.dimension, r.value) is not distinct from
      (excluded.metric, excluded.condition, excluded.threshold, excluded.today, excluded.dimension, excluded.value)
      then r.checked_day end`

const remove = change({
  id: 'removeAlert',
  right: 'webhooks',
  command: 'alert remove',
  method: 'DELETE',
  path: ONE,
  tag: ALERTS_TAG,
  summary: 'Remove an alert',
  response: Type.Object({ id: Type.String({ description: 'The rule.' }) }, { title: 'AlertRemoved' }),
  async change(query, { params }) {
    const before = await find(query, params)
    if (!before) throw notFound('alert', params.alert_id)
    await query('delete from alert_rules where project_id = $1 and id = $2', [params.project_id, params.alert_id])
    return { entry: { action: 'alert.removed', target: target(params), before }, result: { id: params.alert_id } }
  },
})

export const alertRules = [
  list({
    id: 'listAlerts',
    right: 'setup',
    command: 'alert list',
    columns: ['id', 'metric', 'condition', 'threshold', 'checked_day', 'last_value', 'fired_at', 'problem'],
    path: PATH,
    tag: ALERTS_TAG,
    summary: 'List alerts',
    shape: rule,
    from: 'alert_rules r',
    at: 'r.created_at',
    key: 'r.id',
    ...ofProject('r'),
  }),
  put,
  remove,
] as const
