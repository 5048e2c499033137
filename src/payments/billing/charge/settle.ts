// Settles charges: the outcome and all that follows from it are written in one transaction, once, for several orders at a time.

import { joinRates } from '../../../core/records/exchange-rates.ts'
import { batched, type LockTimeout } from '../../../lib/batching.ts'
import { formatMinor } from '../../../lib/money.ts'
import type { Commit, Db } from '../../../lib/pg/db.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import { limitWaits } from '../../../lib/pg/lock-timeout.ts'
import { endWhenStalled } from '../../../lib/pg/stalled.ts'
import type { Query } from '../../../lib/pg/types.ts'
import type { Settled } from '../../providers/outcomes.ts'
import { compare, fromDatabase } from '../amount.ts'
import { grantForOrders, grantsOfOrder } from '../credits/grants.ts'
import { lockOutErasure } from '../lock-out-erasure.ts'
import type { Verdict } from '../movement/kind-of-movement.ts'
import type { Note } from '../movement/provider-calls.ts'
import { countMoneyBack } from './caps.ts'
import { type Done, type Locked, lockedFrom, type Outcome, writeOutcomes } from './effects.ts'
import { failedMessageForUser } from './response.ts'
import { chargeLanes, ORDER_COLUMNS, type Order } from './row.ts'

interface Asked {
  order: Order
  verdict: Verdict
  because: string | null
  /** The call to the provider that returned the verdict, if it is not logged yet. */
  note: Note | undefined
  /** The key was charged before this order was made, by one that a restored backup had forgotten. */
  isAdopted: boolean
}

/**
 * Settles an order in progress by the provider's verdict and returns it as it is then. An order that is settled already
 * does not change, whatever the verdict. `because` is the reason that an operator gave for the verdict. `note` is
 * the call to the provider that returned it.
 */
export function settle(
  db: Db,
  order: Order,
  verdict: Verdict,
  { because = null, note }: { because?: string | null; note?: Note } = {},
): Promise<Order> {
  return settleTogether(db, { order, verdict, because, note, isAdopted: false })
}

/** Settles an order by a charge that was made before it under its key; `more` follows in the same transaction. */
export function settleAdopted(
  db: Db,
  order: Order,
  verdict: Settled,
  note: Note | undefined,
  more: (query: Query, settled: Outcome) => Promise<void> = async () => {},
): Promise<Order> {
  return db.tx(async (query) => {
    const asked = { order, verdict, because: null, note, isAdopted: true }
    const { orders, done } = await settleAll(query, () => {}, [asked], null)
    for (const { order: settled } of done) await more(query, settled)
    return { ...orders[0]!, is_adopted: true }
  })
}

const settleTogether = batched<Asked, Order>({
  tenant: ({ order }) => order.organization_id,
  lanes: chargeLanes,
  work: (db, all, lockTimeout) =>
    db.tx(async (query, commit) => (await settleAll(query, commit, all, lockTimeout)).orders),
})

async function settleAll(
  query: Query,
  commit: Commit,
  all: Asked[],
  lockTimeout: LockTimeout,
): Promise<{ orders: Order[]; done: Done[] }> {
  // An event holds the caller's metadata.
  const personal = all
    .filter(({ order }) => order.has_metadata)
    .map(({ order }) => ({ organizationId: order.organization_id, externalId: order.external_id }))
  // First, because statements that are sent together run in this order.
  const stalled = endWhenStalled(query)
  const kept = personal.length > 0 && lockOutErasure(query, personal, lockTimeout)
  const [orders] = await Promise.all([lock(query, all, lockTimeout), kept, stalled])
  const done: Done[] = []
  for (const { order, verdict, because, isAdopted } of all) {
    const locked = orders.get(order.order_id)
    if (!locked) throw new Error('Bug: an order is gone')
    if (locked.status !== 'processing') continue
    const outcome = outcomeOf(locked, verdict, isAdopted)
    // A second request to settle the same order finds it settled.
    orders.set(order.order_id, outcome)
    done.push({ order: outcome, verdict, because, mismatch: mismatchOf(outcome, verdict) })
  }
  const bought = done.filter(({ order }) => order.status === 'succeeded')
  await grantForOrders(
    query,
    bought.map(({ order }) => ({ ...order, grants: order.all_grants })),
  )
  const untaken = done.filter(({ order }) => order.is_counted && order.status !== 'succeeded')
  const counted =
    untaken.length > 0 &&
    countMoneyBack(
      query,
      untaken.map(({ order }) => order),
    )
  const notes = all.flatMap(({ note }) => note ?? [])
  const written = writeOutcomes(query, done, notes)
  commit()
  await Promise.all([counted, written])
  return { orders: all.map(({ order }) => orders.get(order.order_id)!), done }
}

/** The orders by their ids, for this transaction alone. */
async function lock(query: Query, all: Asked[], lockTimeout: LockTimeout): Promise<Map<string, Locked>> {
  // The first to settle an order decides, so the rates of its currency count.
  const first = new Map([...all].reverse().map((asked) => [asked.order.order_id, asked]))
  const wanted = Array.from(first.values(), ({ order, verdict }) => ({
    organization_id: order.organization_id,
    order_id: order.order_id,
    currency_code: verdict.outcome === 'refused' ? order.currency_code : verdict.currencyCode,
  }))
  const projects = [...new Set(all.map(({ order }) => order.project_id))].sort()
  const rows = await query(...LOCK(wanted, lockTimeout, projects))
  return new Map(rows.map(lockedFrom).map((row) => [row.order_id, row]))
}

// Sorted, so that two processes that settle the same orders wait for each other without a deadlock.
const LOCK = onGivenRows(
  'lock orders',
  { organization_id: 'text', order_id: 'uuid', currency_code: 'text' },
  (rows) => `
    with ${limitWaits('$1')},
      writing as materialized (select p.id, begin_write(p.id) as stamp from limited, unnest($2::text[]) as p (id))
    select ${ORDER_COLUMNS}, o.client_metadata, c.profile_id, p.anonymized_at is not null as is_erased,
      coalesce(m.is_sandbox, o.psp = 'simulator') as is_sandbox,
      rates.currency_per_euro, rates.usd_per_euro, writing.stamp,
      ${grantsOfOrder('a.currency_code')} as all_grants
    from ${rows}
    join orders o on o.organization_id = a.organization_id and o.order_id = a.order_id
    join writing on writing.id = o.project_id
    join customers c on c.organization_id = o.organization_id and c.external_id = o.external_id
    left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    left join merchant_accounts m on m.organization_id = o.organization_id and m.psp = o.psp
      and m.psp_merchant_id = o.psp_merchant_id
    ${joinRates('o.organization_id', 'a.currency_code', 'o.created_at')}
    order by o.organization_id, o.order_id for no key update of o`,
  2,
)

/**
 * The settled order, with the amount that the provider charged, and the requested amount. If the key was charged before,
 * that is the amount which that charge requested, not this order.
 */
function outcomeOf(locked: Locked, verdict: Verdict, isAdopted: boolean): Outcome {
  const client_metadata = locked.is_erased ? null : locked.client_metadata
  if (verdict.outcome === 'refused') return { ...locked, client_metadata, status: 'cancelled' }
  const { outcome, details, amountMinor, currencyCode, askedMinor = amountMinor } = verdict
  const amount = formatMinor(amountMinor, currencyCode)
  const asked_amount = formatMinor(askedMinor, currencyCode)
  return {
    ...locked,
    client_metadata,
    status: outcome,
    amount,
    currency_code: currencyCode,
    ...(isAdopted && { asked_amount, asked_currency_code: currencyCode }),
    provider_customer: verdict.providerCustomer ?? locked.provider_customer,
    ...(isAdopted && verdict.token !== undefined && { payment_method_token: verdict.token }),
    failed_message_for_user: outcome === 'failed' ? failedMessageForUser(details.psp_reason_code) : '',
  }
}

/** How a success differs from the request: another amount, or another currency. */
function mismatchOf(order: Outcome, verdict: Verdict): Done['mismatch'] {
  if (verdict.outcome !== 'succeeded') return null
  if (order.asked_currency_code !== order.currency_code) return 'currency'
  return compare(fromDatabase(order.asked_amount), fromDatabase(order.amount)) === 0 ? null : 'amount'
}
