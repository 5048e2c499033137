// Decides the rules of a project: reads the figure of each, and makes its messages, once for a rule and day.
import { receives } from '../../core/events/alert-addresses.ts'
import { isStoredFilter } from '../../data/figures/filters.ts'
import { readHours } from '../../data/figures/hours.ts'
import { type MetricName, metrics } from '../../data/figures/metrics.ts'
import { addDays } from '../../lib/days.ts'
import type { Db } from '../../lib/pg/db.ts'
import { ruleContent } from './content.ts'
import { addMessages } from './queue.ts'
import { figureOf, isReached, mrrWithout, type Reading, type Rule, valueIn, withoutOf } from './rule.ts'
import { isToDo, type Shared, type State } from './state.ts'

export async function decideRules({ db }: Shared, state: State): Promise<void> {
  const rows = await db.query(RULES, [state.projectId, state.yesterday, state.today, state.hour])
  for (const row of rows) {
    const { metric, dimension, value } = row
    const problem = problemOf(metric!, dimension!)
    if (problem !== row.problem) await db.query(SET_PROBLEM, [state.projectId, row.id!, problem])
    if (problem !== null || !(row.today === 't' ? state.isCurrent : state.isComplete)) continue
    const rule: Rule = {
      id: row.id!,
      metric: metric as MetricName,
      condition: row.condition as Rule['condition'],
      threshold: Number(row.threshold),
      today: row.today === 't',
      fromHour: Number(row.from_hour),
      filter: dimension ? { dimension, value: value! } : undefined,
    }
    await decide(db, state, rule, row.updated_at!)
  }
}

// A day that was decided is over for a rule, also if the clock is set back.
const RULES = `
  select id, metric, condition, threshold, today, from_hour, dimension, value, problem, updated_at from alert_rules
  where project_id = $1 and ${isToDo('checked_day', 'case when today then $3::date else $2::date end')}
    and (not today or from_hour <= $4) order by id`

const SET_PROBLEM = 'update alert_rules set problem = $3 where project_id = $1 and id = $2'

/** Why the figure does not exist, as after an update that renamed it; null if it does. */
function problemOf(metric: string, dimension: string | null): string | null {
  if (!Object.hasOwn(metrics, metric)) return `There is no metric "${metric}".`
  if (dimension && !isStoredFilter(metric as MetricName, dimension))
    return `${metric} cannot be filtered by ${dimension}.`
  return null
}

async function decide(db: Db, state: State, rule: Rule, updatedAt: string): Promise<void> {
  const reading = await read(db, state, rule)
  const isMet = isReached(rule, reading)
  // Of today only a message decides: the figure of the next minute may be another.
  if (rule.today && !isMet) return
  const content = isMet ? JSON.stringify(ruleContent(state, rule, reading)) : null
  await db.query(DECIDE, [state.projectId, rule.id, reading.day, reading.value, isMet, updatedAt, content])
}

// Of several processes one sets the day, and its statement makes the messages. A rule that was changed since is read again.
const DECIDE = `
  with decided as (
    update alert_rules set checked_day = $3::date, last_value = $4::float8::numeric,
      fired_at = case when $5 and exists (
        select from alert_destinations d where d.project_id = $1 and ${receives('alert')}) then db_clock() else fired_at end
    where project_id = $1 and id = $2 and updated_at = $6::timestamptz and ${isToDo('checked_day', '$3::date')}
    returning $5::boolean as is_met
  ), claimed as (select from decided where is_met)
  ${addMessages('rule', 'alert', '$2', '$3::date', '$7::jsonb')}`

async function read(db: Db, state: State, rule: Rule): Promise<Reading> {
  const { metric, condition, today, filter } = rule
  const day = today ? state.today : state.yesterday
  if (today && condition === 'change') {
    const { so_far, hour } = await readHours(db, state.projectId, { test: false })
    const of = (one: 'today' | 'week_before') => so_far[one][metric as 'revenue']
    return {
      day,
      value: of('today'),
      before: of('week_before'),
      hours: hour,
      without: so_far.today.without_usd,
      mrrWithout: [],
    }
  }
  const without = withoutOf(metric)
  const on = (from: string) => figureOf(db, state.projectId, from, [metric, ...(without ? [without] : [])], filter)
  const [now, before, left] = await Promise.all([
    on(day),
    condition === 'change' ? on(addDays(day, -7)) : undefined,
    metric === 'mrr' ? mrrWithout(db, state.projectId, day, filter) : [],
  ])
  return {
    day,
    value: valueIn(now, metric),
    before: before ? valueIn(before, metric) : null,
    hours: today ? state.hour : undefined,
    without: without ? (now[without] ?? 0) : 0,
    mrrWithout: left,
  }
}
