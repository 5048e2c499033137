// The periods of figures: days, weeks and months.
import { DAY_MS } from '../../lib/days.ts'

export const PERIODS = ['day', 'week', 'month'] as const
export type Period = (typeof PERIODS)[number]

const dayText = (ms: number) => new Date(ms).toISOString().slice(0, 10)

/** The first days of all periods from `from` until `to`. */
export function starts(from: string, to: string, period: Period): string[] {
  const found = new Set<string>()
  for (let ms = Date.parse(from); ms < Date.parse(to); ms += DAY_MS) found.add(startOf(ms, period))
  return [...found]
}

/** The first day of the period with this instant. */
export function startOf(ms: number, period: Period): string {
  if (period === 'month') return `${dayText(ms).slice(0, 7)}-01`
  // Weeks begin on Monday, as in PostgreSQL.
  return dayText(period === 'day' ? ms : ms - ((new Date(ms).getUTCDay() + 6) % 7) * DAY_MS)
}
