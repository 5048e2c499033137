// The records behind figures: SQL for the filters of lists.
import { zoneOf } from '../../core/tenants/reporting.ts'
import type { Db } from '../../lib/pg/db.ts'
import { DECIMALS } from './compute.ts'
import type { Family } from './family.ts'
import { checkSize } from './source.ts'
import { subscriptions } from './subscriptions.ts'

/** What happens to the MRR, and the days on which subscriptions are created, start to be paid for, and end. */
export const MOVES = [
  'new',
  'reactivation',
  'expansion',
  'contraction',
  'churn',
  'paused',
  'created',
  'started',
  'ended',
] as const

/** SQL: the ids of the subscriptions of the project $1 with a move on some days; `moved` is SQL of `2026-10-01 2026-10-31 churn`. */
export const movedIds = (moved: string): string => {
  const move = `split_part(${moved}, ' ', 3)`
  return `select facts.subscription_id from (${factsOf(subscriptions, moved)}) facts
    where case ${move} when 'created' then facts.started = 1 when 'started' then facts.began_paying = 1 when 'ended' then facts.ended = 1 else facts.movement = ${move} end`
}

/** SQL: the facts of the family for a list: its project is $1, and `days` begins with the first and the last day. */
const factsOf = ({ facts }: Family, days: string) =>
  facts
    .replaceAll('$2::date', `split_part(${days}, ' ', 1)::date`)
    .replaceAll('$3::date', `(split_part(${days}, ' ', 2)::date + 1)`)
    .replaceAll('$4::text', zoneOf('$1'))
    .replaceAll('$5::jsonb', `'${DECIMALS}'::jsonb`)
    .replaceAll('$6::text', '(select reporting_currency from projects where id = $1)')

/** Throws a 400 for days with too many subscriptions to find those that moved. */
export const checkMoved = (db: Db, projectId: string, days: { from: string; to: string }): Promise<void> =>
  checkSize(db, subscriptions, { projects: [projectId], days })
