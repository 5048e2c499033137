// Carries out automatic top-ups: takes the rules that are due, and charges through the same path as any custom charge.
import { writeAll } from '../../../core/events/outbox.ts'
import { isMoving } from '../../../core/tenants/leaving.ts'
import { ApiError } from '../../../lib/errors.ts'
import { watchClock } from '../../../lib/pg/clock-watch.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import { rowReader } from '../../../lib/pg/row-reader.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { repeat } from '../../../lib/repeat.ts'
import type { BillingContext } from '../context.ts'
import { formatCredits } from '../credits/amount.ts'
import { topUpSwitchedOff } from '../credits/events.ts'
import { heldIn } from '../credits/save.ts'
import { KEY, type KeyRow, keyOf, lockAccounts, rowOf } from '../credits/store.ts'
import { oneOffCharge, readChargeRequest } from '../kinds.ts'
import { leaseMs } from '../movement/lease.ts'
import { presentOf } from './rule.ts'

const PAUSE_MS = 1_000
// Each charges a card, and connections are shared with what callers request.
const MAX_AT_ONCE = 8
// The claim and settling wait for the database too. A lease that ends too early does no harm: the key is the same.
const LEASE_FACTOR = 3
// A day, because the repair also makes the rules due that have used up their month.
const READINGS_FOR_REPAIR = 43_200

// Seconds until the next try of a charge that could not begin, by the code of the refusal.
const TRY_AGAIN_S: Record<string, number> = {
  charge_in_progress: 10,
  charge_cap_reached: 600,
  // An operator has paused charges, or has not connected the account again yet: no reason to end the rules of customers.
  one_off_charge_disabled: 600,
  provider_not_set_up: 600,
}
const UNAVAILABLE_S = 60
// An unknown outcome: settling looks it up, and the same key then returns it.
const UNKNOWN_S = 15

/** Starts the work, on any number of processes; returns the function that stops it. */
export function startTopUps(context: BillingContext): () => Promise<void> {
  const stopWork = repeat(context, { pauseMs: PAUSE_MS, failure: 'Automatic top-ups failed.' }, async () =>
    (await topUpDue(context)) === MAX_AT_ONCE ? 0 : PAUSE_MS,
  )
  const stopWatch = watchClock(context, { readings: READINGS_FOR_REPAIR }, async () => {
    await context.db.query(MAKE_DUE, [leaseSeconds(context)])
  })
  return async () => {
    await Promise.all([stopWork(), stopWatch()])
  }
}

const leaseSeconds = ({ providerTimeoutMs }: BillingContext) => (LEASE_FACTOR * leaseMs(providerTimeoutMs, 2)) / 1000

// Those that were postponed by a database clock that has been set back since. Earlier than needed does no harm: the key is the same.
const MAKE_DUE: Statement = {
  name: 'make top-ups due again',
  text: `
    update credit_top_ups set due_at = db_clock(), lease_until = null
    where due_at > db_clock() or lease_until > db_clock() + make_interval(secs => $1)`,
}

/** Tops up the accounts that are due and that no other process has, and returns how many rules were read. */
export async function topUpDue(context: BillingContext): Promise<number> {
  const { looked, taken } = await takeDue(context)
  await Promise.all(taken.map((turn) => topUp(context, turn)))
  return looked
}

type Turn = Record<
  'organization_id' | 'external_id' | 'unit' | 'turn' | 'amount' | 'currency_code' | 'grants',
  string
> & {
  expires_after: string | null
}

async function topUp(context: BillingContext, turn: Turn): Promise<void> {
  const { db, log } = context
  try {
    const { checkout_status, order_id } = await oneOffCharge(context, turn.organization_id, requestOf(turn))
    if (checkout_status === 'processing') return await postpone(db.query, turn, UNKNOWN_S)
    await conclude(db, turn, checkout_status === 'failed' ? { orderId: order_id } : undefined)
  } catch (error) {
    if (error instanceof ApiError) return refuse(db, turn, error)
    log.error({ err: error, unit: turn.unit }, 'An automatic top-up is tried again.')
  }
}

/** The key is that of the customer's turn: a retry, also one after a restored backup, finds the charge that was made. */
function requestOf({ external_id, unit, turn, amount, currency_code, grants, expires_after }: Turn) {
  return readChargeRequest({
    external_id,
    amount,
    currency_code,
    idempotency_key: `top-up:${unit}:${turn}`,
    grants: [{ unit, amount: grants, expires_after: expires_after === null ? null : `${expires_after}h` }],
  })
}

/** After a refusal nothing was begun: what may pass is tried again under the same key, anything else switches the rule off. */
async function refuse(db: Db, turn: Turn, { status, code }: ApiError): Promise<void> {
  // A caller has used the key, or the rule was changed after its charge had begun.
  if (code === 'idempotency_key_reused') return conclude(db, turn)
  const seconds = status === 400 ? TRY_AGAIN_S[code] : UNAVAILABLE_S
  if (seconds !== undefined) return postpone(db.query, turn, seconds)
  await db.tx((query) => switchOff(query, turn, { reason: code, orderId: null }))
}

/** Takes the rules whose accounts are below their limit. Accounts are locked before rules, as everything that spends does it. */
function takeDue(context: BillingContext): Promise<{ looked: number; taken: Turn[] }> {
  return context.db.tx(async (query) => {
    const due = await query<KeyRow>(FIND_DUE)
    if (due.length === 0) return { looked: 0, taken: [] }
    const accounts = heldIn(await lockAccounts(query, due.map(keyOf)))
    if (accounts.length === 0) return { looked: 0, taken: [] }
    const rows = accounts.map((held) => ({ ...rowOf(held), available: formatCredits(held.account.available) }))
    const judged = await query(...TAKE(rows, leaseSeconds(context)))
    return { looked: due.length, taken: judged.map(judgedFrom).filter(({ is_taken }) => is_taken) }
  })
}

const judgedFrom = rowReader<Turn & { is_taken: boolean }>({ is_taken: 'boolean' })

const FIND_DUE: Statement = {
  name: 'find top-ups that are due',
  text: `
    select t.organization_id, t.external_id, t.unit from credit_top_ups t
    where t.due_at <= db_clock() and (t.lease_until is null or t.lease_until <= db_clock())
      and not ${isMoving('t.organization_id')}
    order by t.due_at limit ${MAX_AT_ONCE}`,
}

const TODAY = presentOf('day', 'now.at')
const THIS_MONTH = presentOf('month', 'now.at')
const IS_FULL = (period: 'day' | 'month', start: string) =>
  `(t.${period} = ${start} and t.used_of_${period} >= t.most_per_${period})`

// A rule that has used up its day or month is read again when the next begins.
const TAKE = onGivenRows(
  'take top-ups that are due',
  { ...KEY, available: 'numeric' },
  (rows) => `
    with now as materialized (select db_clock() as at), judged as materialized (
      select t.organization_id, t.external_id, t.unit, t.status = 'on' and a.available < t.below as is_low,
        case when ${IS_FULL('month', THIS_MONTH)} then (${THIS_MONTH} + interval '1 month') at time zone 'UTC'
          when ${IS_FULL('day', TODAY)} then (${TODAY} + interval '1 day') at time zone 'UTC' end as full_until
      from ${rows} join credit_top_ups t on t.organization_id = a.organization_id and t.external_id = a.external_id
        and t.unit = a.unit, now
      where t.due_at <= now.at and (t.lease_until is null or t.lease_until <= now.at)
      order by t.organization_id, t.external_id, t.unit for no key update of t)
    update credit_top_ups t set due_at = case when j.is_low then coalesce(j.full_until, t.due_at) end,
      lease_until = case when j.is_low and j.full_until is null then now.at + make_interval(secs => $1) end
    from judged j, now
    where t.organization_id = j.organization_id and t.external_id = j.external_id and t.unit = j.unit
    returning t.organization_id, t.external_id, t.unit, t.turn, t.amount, t.currency_code, trim_scale(t.grants) as grants,
      t.expires_after, j.is_low and j.full_until is null as is_taken`,
  1,
)

const paramsOf = ({ organization_id, external_id, unit, turn }: Turn) => [organization_id, external_id, unit, turn]
const IS_TURN = 't.organization_id = $1 and t.external_id = $2 and t.unit = $3 and t.turn = $4'

async function postpone(query: Query, turn: Turn, seconds: number): Promise<void> {
  await query(POSTPONE, [...paramsOf(turn), seconds])
}

const POSTPONE: Statement = {
  name: 'postpone top-up',
  text: `update credit_top_ups t set lease_until = null,
      due_at = case status when 'on' then db_clock() + make_interval(secs => $5) end
    where ${IS_TURN}`,
}

/** Ends the turn, once; a decline switches the rule off. What the charge granted may be too little, so the rule stays due. */
async function conclude(db: Db, turn: Turn, declined?: { orderId: string }): Promise<void> {
  await db.tx(async (query) => {
    const [row] = await query(CONCLUDE, paramsOf(turn))
    if (!row || !declined) return
    const reason = await reasonOf(query, turn, declined.orderId)
    await switchOff(query, { ...turn, turn: row.turn! }, { reason, orderId: declined.orderId })
  })
}

const CONCLUDE: Statement = {
  name: 'conclude top-up',
  text: `
    update credit_top_ups t set turn = t.turn + 1, lease_until = null, due_at = case t.status when 'on' then now.at end,
      used_of_day = case when t.day = ${TODAY} then t.used_of_day else 0 end + 1, day = ${TODAY},
      used_of_month = case when t.month = ${THIS_MONTH} then t.used_of_month else 0 end + 1, month = ${THIS_MONTH}
    from (select db_clock() as at) now where ${IS_TURN} returning t.turn`,
}

async function reasonOf(query: Query, { organization_id }: Turn, orderId: string): Promise<string> {
  const [row] = await query(REASON, [organization_id, orderId])
  return row?.psp_reason_code || 'declined'
}

const REASON: Statement = {
  name: 'reason of decline',
  text: `select psp_reason_code from report_transactions
    where organization_id = $1 and order_id = $2 and status = 'failed' order by trx_created_at desc limit 1`,
}

async function switchOff(query: Query, turn: Turn, why: { reason: string; orderId: string | null }): Promise<void> {
  const [row] = await query<Record<'top_up_id' | 'project_id', string> & { profile_id: string | null }>(SWITCH_OFF, [
    ...paramsOf(turn),
    why.reason,
  ])
  if (!row) return
  const { organization_id: _, external_id, unit } = turn
  const about = { topUpId: row.top_up_id, projectId: row.project_id, profileId: row.profile_id }
  await writeAll(query, [topUpSwitchedOff({ ...about, externalId: external_id, unit, ...why })])
}

const SWITCH_OFF: Statement = {
  name: 'switch top-up off',
  text: `
    update credit_top_ups t set status = 'off', off_reason = $5, due_at = null, lease_until = null, updated_at = db_clock()
    from customers c
    where ${IS_TURN} and t.status = 'on' and c.organization_id = t.organization_id and c.external_id = t.external_id
    returning t.top_up_id, c.project_id, c.profile_id`,
}
