// Today by hour, compared with yesterday and the same weekday of the week before.

import { zoneOf } from '../../core/tenants/reporting.ts'
import { addDays } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'
import { type Figure, type Filter, readFigures } from './read.ts'
import { rounded } from './rounding.ts'

export const HOUR_METRICS = ['revenue', 'sales', 'customers', 'sessions', 'people', 'without_usd'] as const
export type HourValues = Record<(typeof HOUR_METRICS)[number], number>

const COMPARED = { today: 0, yesterday: 1, week_before: 7 } as const
type ComparedDay = keyof typeof COMPARED

export interface Hours {
  today: string
  /** The present hour, which is not over. */
  hour: number
  /** The 24 hours; those of today that have not begun are null. */
  hours: ({ hour: number } & Record<ComparedDay, HourValues | null>)[]
  /** The sums of the hours of each day that are over today. */
  so_far: Record<ComparedDay, HourValues>
}

/** By the clock of the project's time zone: an hour that comes twice on a day is one hour, one that is skipped has nothing. */
export async function readHours(
  db: Db,
  projectId: string,
  { test, filters = [] }: { test: boolean; filters?: readonly Filter[] },
): Promise<Hours> {
  const [now] = await db.query(NOW, [projectId])
  const [today, hour] = [now!.today!, Number(now!.hour)]
  const names = Object.keys(COMPARED) as ComparedDay[]
  const found = await Promise.all(
    names.map((name) => {
      const from = addDays(today, -COMPARED[name])
      const question = {
        projects: [projectId],
        from,
        to: addDays(from, 1),
        metrics: HOUR_METRICS,
        dimension: 'hour',
        filters,
      }
      return readFigures(db, { ...question, money: 'usd', test })
    }),
  )
  const days = Object.fromEntries(names.map((name, n) => [name, byHour(found[n]!)])) as Record<
    ComparedDay,
    HourValues[]
  >
  return {
    today,
    hour,
    hours: Array.from({ length: 24 }, (_, n) => ({
      hour: n,
      today: n <= hour ? days.today[n]! : null,
      yesterday: days.yesterday[n]!,
      week_before: days.week_before[n]!,
    })),
    so_far: Object.fromEntries(names.map((name) => [name, sumOf(days[name].slice(0, hour))])) as Hours['so_far'],
  }
}

const NOW = `
  select to_char(at, 'YYYY-MM-DD') as today, extract(hour from at) as hour
  from (select db_clock() at time zone ${zoneOf('$1')} as at) now`

const valuesOf = (of: (name: (typeof HOUR_METRICS)[number]) => number) =>
  Object.fromEntries(HOUR_METRICS.map((name) => [name, of(name)])) as HourValues

function byHour(figures: Figure[]): HourValues[] {
  const values = new Map(figures.map((one) => [Number(one.key), one.values]))
  return Array.from({ length: 24 }, (_, n) => valuesOf((name) => values.get(n)?.[name] ?? 0))
}

// Floating point would show.
const sumOf = (hours: HourValues[]) => valuesOf((name) => rounded(hours.reduce((sum, one) => sum + one[name], 0)))
