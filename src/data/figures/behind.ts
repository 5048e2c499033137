// The records behind figures: SQL for the filters of lists.
import { dayIn, zoneOf } from '../../core/tenants/reporting.ts'
import type { Db } from '../../lib/pg/db.ts'
import { DECIMALS } from './compute.ts'
import type { Family } from './family.ts'
import { checkSize } from './source.ts'
import { end, FIRST_PAYMENT, hasEnd, isTrial, subscriptions } from './subscriptions.ts'

// What the facts of figures tell: what happens to the MRR, and the days on which subscriptions begin to be paid for, and end.
const OF_FACTS = [
  'new',
  'reactivation',
  'expansion',
  'contraction',
  'churn',
  'paused',
  'changed',
  'started',
  'ended',
] as const

const ZONE = zoneOf('$1')
const dayOf = (instant: string) => dayIn(instant, ZONE)
const isCreated = (from: string, to: string) =>
  `s.created_at >= day_begins(${from}, ${ZONE}) and s.created_at < day_begins(${to} + 1, ${ZONE})`
/** SQL: whether the subscription `s` was paid for; `when` is SQL about `u` and `paid_from`. */
const isPaid = (when: string) => `exists (select from subscriptions u ${FIRST_PAYMENT}
  where u.project_id = s.project_id and u.id = s.id and paid_from is not null and ${when})`

/** SQL: whether the subscription `s` was first paid for in a month such as `2026-10`, the cohort that figures have it in. */
export const isOfCohort = (month: string) => isPaid(`to_char(paid_from at time zone ${ZONE}, 'YYYY-MM') = ${month}`)

// What a subscription tells by itself, however many there are.
const OF_SUBSCRIPTION: Record<string, (from: string, to: string) => string> = {
  created: isCreated,
  trial: (from, to) => `${isCreated(from, to)} and ${isTrial('s')}`,
  converted: (from, to) => `${isCreated(from, to)} and ${isTrial('s')} and ${isPaid('true')}`,
  paying: (_from, to) =>
    isPaid(`${dayOf('paid_from')} <= ${to} and not (${hasEnd('u')} and ${dayOf(end('u'))} <= ${to})`),
}

export const MOVES = [...OF_FACTS, ...Object.keys(OF_SUBSCRIPTION)]

export interface Moved {
  /** The first and the last day. */
  from: string
  to: string
  /** One of `MOVES`. */
  move: string
}

/** Reads a text such as `2026-10-01 2026-10-31 churn`, whose days are not checked. */
export function readMoved(text: string): Moved {
  const [from = '', to = '', move = ''] = text.split(' ')
  return { from, to, move }
}

/** SQL: whether the subscription `s` of the project $1 has the move of `text`; `placeholder` is its parameter. */
export function hasMoved(text: string, placeholder: string): string {
  const { move } = readMoved(text)
  const day = (n: number) => `split_part(${placeholder}, ' ', ${n})::date`
  const own = OF_SUBSCRIPTION[move]
  if (own) return own(day(1), day(2))
  const fact: Record<string, string> = {
    changed: `facts.movement <> ''`,
    started: 'facts.began_paying = 1',
    ended: 'facts.ended = 1',
  }
  return `s.id in (select facts.subscription_id from (${factsOf(subscriptions, day)}) facts
    where ${fact[move] ?? `facts.movement = split_part(${placeholder}, ' ', 3)`})`
}

/** SQL: the facts of the family for a list: its project is $1, and `day` is the first and the last day. */
const factsOf = ({ facts }: Family, day: (n: number) => string) =>
  facts
    .replaceAll('$2::date', day(1))
    .replaceAll('$3::date', `(${day(2)} + 1)`)
    .replaceAll('$4::text', ZONE)
    .replaceAll('$5::jsonb', `'${DECIMALS}'::jsonb`)
    .replaceAll('$6::text', '(select reporting_currency from projects where id = $1)')

/** Throws a 400 if facts have to tell, and the days have too many of them. `to` is the day after the last. */
export async function checkMoved(db: Db, projectId: string, move: string, days: { from: string; to: string }) {
  if (!(move in OF_SUBSCRIPTION)) await checkSize(db, subscriptions, { projects: [projectId], days })
}
