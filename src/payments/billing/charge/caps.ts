// Caps of charges: how many, and how much money, for each customer and the organization in a day, week or month.
import type { LockTimeout } from '../../../lib/batching.ts'
import { formatMinor } from '../../../lib/money.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import { limitWaits } from '../../../lib/pg/lock-timeout.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { minorFromDatabase } from '../amount.ts'

/** A charge that is about to be claimed. */
export interface Capped {
  organizationId: string
  externalId: string
  currencyCode: string
  /** Major units; null when no charge can have the amount. */
  amount: string | null
}

/** Organizations that have caps, as far as this process knows. A claim that finds caps without the lock is repeated with it. */
const known = new WeakMap<Db, Set<string>>()

export const hasCaps = (db: Db, organizationId: string): boolean => known.get(db)?.has(organizationId) ?? false

export function noteCaps(db: Db, organizationId: string): void {
  const set = known.get(db) ?? new Set()
  known.set(db, set.add(organizationId))
}

/** Locks the counters of these charges until commit. Send it before the claim, which is a later statement and sees what is committed. */
export async function lockCounters(query: Query, charges: readonly Capped[], lockTimeout: LockTimeout): Promise<void> {
  const rows = charges.map(({ organizationId, externalId, currencyCode }) => ({
    organization_id: organizationId,
    external_id: externalId,
    currency_code: currencyCode,
  }))
  await Promise.all([query(...MAKE(rows, lockTimeout)), query(...LOCK(rows, lockTimeout))])
}

const CHARGE = { organization_id: 'text', external_id: 'text', currency_code: 'text' }
/** SQL: the customer whose charges the cap `k` limits; '' if it limits those of all customers together. */
const WHOSE = `case k.scope when 'customer' then a.external_id else '' end`
/** SQL: the beginning of the period that contains an instant. */
const startOf = (per: string, at: string) => `date_trunc(${per}, ${at} at time zone 'UTC') at time zone 'UTC'`

/**
 * SQL: whether the counter `u` counts the period that begins at `start`. After the clock was set back it may be that of the next one. One
 * that is later still was begun by a clock that was far ahead, and must not refuse charges until then.
 */
const isPresent = (start: string) =>
  `(u.since between (${start}) and (${start} at time zone 'UTC' + ('1 ' || u.per)::interval) at time zone 'UTC')`

const MAKE = onGivenRows(
  'make counters of charges',
  CHARGE,
  (rows) => `
    with ${limitWaits('$1')}
    insert into charge_counters (organization_id, external_id, per, currency_code, since, used)
    select distinct k.organization_id, ${WHOSE} as external_id, k.per, k.currency_code, ${startOf('k.per', 'db_clock()')}, 0
    from limited, ${rows}
    join charge_caps k on k.organization_id = a.organization_id and k.currency_code in ('', a.currency_code)
    join customers c on c.organization_id = a.organization_id and c.external_id = a.external_id
    where not exists (select from charge_counters u where u.organization_id = k.organization_id
      and u.external_id = ${WHOSE} and u.per = k.per and u.currency_code = k.currency_code)
    order by 1, 2, 3, 4
    on conflict do nothing`,
  1,
)

// In sorted order, so that two processes wait for each other without a deadlock.
const LOCK = onGivenRows(
  'lock counters of charges',
  CHARGE,
  (rows) => `
    with ${limitWaits('$1')}, wanted as materialized (
      select distinct k.organization_id, ${WHOSE} as external_id, k.per, k.currency_code
      from ${rows} join charge_caps k on k.organization_id = a.organization_id and k.currency_code in ('', a.currency_code))
    select from limited, wanted w join charge_counters u on u.organization_id = w.organization_id
      and u.external_id = w.external_id and u.per = w.per and u.currency_code = w.currency_code
    order by u.organization_id, u.external_id, u.per, u.currency_code for no key update of u`,
  1,
)

/**
 * Counts what was charged in the current period before a cap is set, in the transaction that sets it. Orders in progress count, and are
 * counted back if they take no money. Charges that are claimed at this very moment are missed.
 */
export async function countBefore(
  query: Query,
  cap: readonly [organizationId: string, scope: string, per: string, currencyCode: string],
): Promise<void> {
  await query(
    `with in_progress as materialized (
       select order_id from orders where organization_id = $1 and status = 'processing' and not is_counted
       order by order_id for no key update)
     update orders o set is_counted = true from in_progress p where o.organization_id = $1 and o.order_id = p.order_id`,
    [cap[0]],
  )
  await query(
    `insert into charge_counters as u (organization_id, external_id, per, currency_code, since, used)
     select $1, case $2 when 'customer' then o.external_id else '' end, $3, $4, s.since,
       case $4 when '' then count(*) else sum(coalesce(o.asked_amount, o.amount)) end
     from (select ${startOf('$3', 'db_clock()')} as since) s
     join orders o on o.organization_id = $1 and o.created_at >= s.since
     where $4 = '' or o.status in ('processing', 'succeeded') and coalesce(o.asked_currency_code, o.currency_code) = $4
     group by 2, s.since
     on conflict (organization_id, external_id, per, currency_code) do update set since = excluded.since, used = excluded.used`,
    cap,
  )
}

/**
 * SQL, for the claim of `a` at `now`: the first cap that it would pass, as `cap`. `cap_alone` is whether it passes it without the charges
 * before it in the same statement; if not, these may still be refused, so it is claimed again.
 */
export const CAP = `
  left join lateral (
    select k.scope as cap_scope, k.per as cap_per, k.currency_code as cap_currency, k.most as cap_most,
      coalesce(u.used, 0) + n.own > k.most as cap_alone
    from charge_caps k
    cross join lateral (select case k.currency_code when '' then 1 else a.amount end as own,
      case when k.scope = 'customer' then 0 when k.currency_code = '' then a.charges_before else a.money_before end as before) n
    left join charge_counters u on u.organization_id = k.organization_id and u.external_id = ${WHOSE}
      and u.per = k.per and u.currency_code = k.currency_code
      and ${isPresent(startOf('k.per', '(select at from now)'))}
    where a.is_locked and k.organization_id = a.organization_id and k.currency_code in ('', a.currency_code)
      and coalesce(u.used, 0) + n.own + n.before > k.most
    order by cap_alone desc, k.scope, k.per, k.currency_code limit 1) cap on true`

/** SQL: whether the organization of `a` has caps. */
export const HAS_CAPS = `(select true from charge_caps k where k.organization_id = a.organization_id limit 1) is not null`

/** SQL: a common table expression that counts the orders of `made`, by what was `judged` of them at `now`. */
export const COUNTED = `counted as (
  update charge_counters u set
    used = case when ${isPresent('s.since')} then u.used else 0 end + s.n,
    since = case when ${isPresent('s.since')} then u.since else s.since end
  from (
    select k.organization_id, ${WHOSE} as external_id, k.per, k.currency_code,
      ${startOf('k.per', 'now.at')} as since, sum(case k.currency_code when '' then 1 else a.amount end) as n
    from made m join judged a on a.asked_id = m.order_id
    join charge_caps k on k.organization_id = a.organization_id and k.currency_code in ('', a.currency_code), now
    where a.is_locked and a.lost_id is null
    group by 1, 2, 3, 4, 5) s
  where u.organization_id = s.organization_id and u.external_id = s.external_id and u.per = s.per
    and u.currency_code = s.currency_code)`

/** The number and the sum of the charges before each in the same statement, of its organization and currency. */
export function sumsBefore(charges: readonly Capped[]): { charges_before: string; money_before: string }[] {
  const counts = new Map<string, number>()
  const sums = new Map<string, bigint>()
  return charges.map(({ organizationId, currencyCode, amount }) => {
    const name = `${organizationId} ${currencyCode}`
    const count = counts.get(organizationId) ?? 0
    const sum = sums.get(name) ?? 0n
    counts.set(organizationId, count + 1)
    if (amount !== null) sums.set(name, sum + minorFromDatabase(amount, currencyCode))
    return { charges_before: String(count), money_before: sum === 0n ? '0' : formatMinor(sum, currencyCode) }
  })
}

/** SQL: counts an order of the rows `from` back: its money, and with `alsoCharge` the charge too. It is named `o` there. */
const countBack = (from: string, { alsoCharge }: { alsoCharge: boolean }) => `
  locked as materialized (
    select u.organization_id, u.external_id, u.per, u.currency_code, ${startOf('u.per', 'o.created_at')} as since,
      case u.currency_code when '' then 1 else coalesce(o.asked_amount, o.amount) end as n
    from ${from}
    join charge_counters u on u.organization_id = o.organization_id and u.external_id in (o.external_id, '')
      and u.currency_code in (coalesce(o.asked_currency_code, o.currency_code)${alsoCharge ? ", ''" : ''})
    where o.is_counted
    order by u.organization_id, u.external_id, u.per, u.currency_code for no key update of u)
  update charge_counters u set used = greatest(u.used - l.n, 0)
  from (select organization_id, external_id, per, currency_code, since, sum(n) as n from locked group by 1, 2, 3, 4, 5) l
  where u.organization_id = l.organization_id and u.external_id = l.external_id and u.per = l.per
    and u.currency_code = l.currency_code and u.since = l.since`

/** SQL: deletes the order that never began, and counts it back. */
export const deleteCounted = (condition: string) => `
  with o as (delete from orders where ${condition} returning *), ${countBack('o', { alsoCharge: true })}`

/** Counts back the money of orders that were counted and took none. The charge still counts: a loop of declines ends at the cap. */
export async function countMoneyBack(
  query: Query,
  orders: readonly { organization_id: string; order_id: string }[],
): Promise<void> {
  await query(...COUNT_BACK(orders.map(({ organization_id, order_id }) => ({ organization_id, order_id }))))
}

const COUNT_BACK = onGivenRows(
  'count money of charges back',
  { organization_id: 'text', order_id: 'uuid' },
  (rows) =>
    `with ${countBack(`${rows} join orders o on o.organization_id = a.organization_id and o.order_id = a.order_id`, {
      alsoCharge: false,
    })}`,
)
