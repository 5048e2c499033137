// Today by hour, compared with yesterday and the same weekday.

import { readHorizon } from '../../core/lists/horizon.ts'
import { VISITED_BY } from '../../data/figures/filters.ts'
import { HOUR_METRICS, type Hours, type HourValues, readHours } from '../../data/figures/hours.ts'
import { metrics } from '../../data/figures/metrics.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { filtersBy, filtersOf, nowFields, nowOf, TAG, testQuery } from './figures-query.ts'
import { reading } from './operation.ts'

const values = Type.Object(
  Object.fromEntries(
    HOUR_METRICS.map((name) => [name, Type.Number({ description: metrics[name].definition })]),
  ) as Record<(typeof HOUR_METRICS)[number], Schema<number>>,
  { title: 'HourValues', additionalProperties: false },
)
const orNull = Type.OrNull(values, 'Null: the hour has not begun.')
const daysOf = <T>(each: Schema<T>) => ({ today: each, yesterday: each, week_before: each })

const today = reading({
  id: 'getToday',
  right: 'figures',
  command: 'figures today',
  path: '/projects/:project_id/figures/today',
  tag: TAG,
  summary: 'Get today by hour, compared with yesterday and the same weekday',
  description:
    'Hours are those of the project’s time zone, money is in its reporting currency. Only hours that are over are compared. An hour that comes twice, because clocks are set back, is one hour; one that is skipped has nothing.',
  query: Type.Object({
    ...filtersBy(...VISITED_BY),
    ...testQuery,
  }),
  response: Type.Named('Today', {
    today: Type.String({ description: 'The present day.' }),
    hour: Type.Integer({ description: 'The present hour, which is not over.' }),
    ...nowFields,
    so_far: Type.Object(daysOf(values), {
      description: 'Sums of the hours that are over today, of each day.',
      additionalProperties: false,
    }),
    data: Type.Array(
      Type.Named('Hour', { hour: Type.Integer({ description: 'The hour, from 0 to 23.' }), ...daysOf(orNull) }),
      { description: 'The 24 hours.' },
    ),
  }),
  shown: ({ data, so_far, ...response }) => {
    const hours = data as Hours['hours']
    const leavesOut = hours.some((one) => DAYS.some((day) => one[day]?.without_usd))
    const shown = leavesOut ? [...SHOWN, 'without_usd' as const] : SHOWN
    return {
      ...response,
      data: [...hours.map((one) => line(shown, one.hour, one)), line(shown, 'so far', so_far as Hours['so_far'])],
    }
  },
  async run({ db }, { params, query }) {
    const { test = false } = query
    await readHorizon(db, params.project_id)
    const [{ hours, ...others }, { today: _today, ...now }] = await Promise.all([
      readHours(db, params.project_id, { test, filters: filtersOf(query) }),
      nowOf(db, params.project_id),
    ])
    return { ...others, ...now, data: hours }
  },
})

const DAYS = ['today', 'yesterday', 'week_before'] as const
/** Besides, what the revenue leaves out, if it leaves out anything. */
const SHOWN: readonly (keyof HourValues)[] = ['revenue', 'sessions']

const line = (shown: typeof SHOWN, hour: unknown, days: Record<(typeof DAYS)[number], HourValues | null>) => ({
  hour,
  ...Object.fromEntries(
    shown.flatMap((metric) => DAYS.map((day) => [`${metric} ${day}`, days[day]?.[metric] ?? null])),
  ),
})

export const hourOperations = [today] as const
