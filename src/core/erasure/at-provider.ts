// Erases customers at payment providers: detaches their cards, clears or deletes the customer there, and retries until done.
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import { repeat } from '../../lib/repeat.ts'
import { adapters } from '../../payments/providers/adapters.ts'
import type { Unknown } from '../../payments/providers/outcomes.ts'
import type { Provider, Providers } from '../../payments/providers/provider.ts'

interface Shared {
  db: Db
  providers: Providers
  clock: Clock
  log: { info(details: object, message: string): void; error(details: object, message: string): void }
}

// The interval at which an idle process looks for due erasures. Its workers take turns.
const POLL_MS = 1_000
// The most concurrent erasures of one process, and of one merchant account, so that one whose provider hangs delays no other.
const AT_ONCE = 4
const PER_ACCOUNT = 2
// Longer than all calls of one erasure, which detaches cards one after the other.
const LEASE_S = 10 * 60
const PAUSES_S = [5, 60, 10 * 60, 60 * 60, 6 * 60 * 60]

/** Starts to erase at providers; returns the function that stops it. */
export function eraseAtProviders(app: Shared): () => Promise<void> {
  // An erasure that was taken and not settled is due again when its lease ends.
  const failure = 'An erasure at a payment provider failed; it is tried again.'
  const pauseMs = AT_ONCE * POLL_MS
  const underWay = new Set<Due>()
  const stops = Array.from({ length: AT_ONCE }, (_, n) =>
    repeat(app, { delayMs: n * POLL_MS, pauseMs, failure }, async (signal) =>
      (await eraseNext(app, underWay, signal)) ? 0 : pauseMs,
    ),
  )
  return async () => {
    await Promise.all(stops.map((stop) => stop()))
  }
}

type Due = {
  organization_id: string
  psp: string
  psp_merchant_id: string
  target: string
  target_kind: 'customer' | 'card' | 'payment'
  project_id: string
  profile_id: string
  customer: string | null
  how: 'empty' | 'delete'
  attempts: string
}

const KEY = 'e.organization_id, e.psp, e.psp_merchant_id, e.target, e.project_id, e.profile_id'

// An erasure that was queued before kinds were stored has an id of Stripe, whose ids begin with their kind.
const TARGET_KIND = `coalesce(e.target_kind, case when e.target ~ '^cus_' then 'customer'
  when e.target ~ '^(ch|py|pi)_' then 'payment' else 'card' end)`

// Taking an erasure moves its next attempt past the lease. A time further in the future than any pause is due too: it was set
// before the clock was set back. Accounts with fewer erasures under way in this process come first.
const TAKE_DUE = {
  name: 'take erasure at provider',
  text: `
    with now as materialized (select db_clock() as at), due as (
      select ${KEY} from now, provider_erasures e
      left join (
        select u.*, count(*) as n from unnest($2::text[], $3::text[], $4::text[]) as u (organization_id, psp, psp_merchant_id)
        group by 1, 2, 3) busy using (organization_id, psp, psp_merchant_id)
      where (e.next_attempt_at <= now.at or e.next_attempt_at > now.at + interval '1 day')
        and coalesce(busy.n, 0) < ${PER_ACCOUNT}
      order by coalesce(busy.n, 0), e.next_attempt_at limit 1 for update of e skip locked)
    update provider_erasures e set attempts = e.attempts + 1, next_attempt_at = now.at + make_interval(secs => $1)
    from due, now
    where (${KEY}) = (due.organization_id, due.psp, due.psp_merchant_id, due.target, due.project_id, due.profile_id)
    returning ${KEY}, ${TARGET_KIND} as target_kind, e.customer, e.how, e.attempts`,
}

/** Makes one attempt at a due erasure; returns whether there was one. */
async function eraseNext(app: Shared, underWay: Set<Due>, signal: AbortSignal): Promise<boolean> {
  const busy = [...underWay]
  const accounts = [
    busy.map((one) => one.organization_id),
    busy.map((one) => one.psp),
    busy.map((one) => one.psp_merchant_id),
  ]
  const [due] = await app.db.query<Due>(TAKE_DUE, [LEASE_S, ...accounts])
  if (!due) return false
  underWay.add(due)
  await attempt(app, due, signal).finally(() => underWay.delete(due))
  return true
}

async function attempt(app: Shared, due: Due, signal: AbortSignal): Promise<void> {
  const { organization_id, psp, psp_merchant_id } = due
  const provider = await app.providers.of(organization_id, psp, psp_merchant_id)
  const ending = provider ? await erase(app.db, provider, due, signal) : again('the merchant account is not connected')
  const pauseS = PAUSES_S[Math.min(Number(due.attempts), PAUSES_S.length) - 1]!
  await settle(app.db, due, ending, pauseS)
  if (ending.end === 'done')
    app.log.info({ organization_id, psp, psp_merchant_id }, 'A customer was erased at the provider.')
}

/** How an attempt ended. `unreachable`: the provider knows no customer for what is known here, and never will. */
type Ending = { end: 'done' } | { end: 'again' | 'unreachable'; why: string }

const again = (why: string): Ending => ({ end: 'again', why })

const keyOf = (due: Due) => [
  due.organization_id,
  due.psp,
  due.psp_merchant_id,
  due.target,
  due.project_id,
  due.profile_id,
]

async function settle(db: Db, due: Due, ending: Ending, pauseS: number): Promise<void> {
  await db.query(SETTLE, [...keyOf(due), ending.end, ending.end === 'done' ? null : ending.why, pauseS])
}

const OF_KEY = `organization_id = $1 and psp = $2 and psp_merchant_id = $3 and target = $4 and project_id = $5 and profile_id = $6`

const SETTLE = {
  name: 'settle erasure at provider',
  text: `
    update provider_erasures set why = $8, done_at = case when $7 = 'done' then db_clock() end,
      next_attempt_at = case when $7 = 'again' then db_clock() + make_interval(secs => $9) end
    where ${OF_KEY} and done_at is null`,
}

async function erase(db: Db, provider: Provider, due: Due, signal: AbortSignal): Promise<Ending> {
  if (!provider.eraseCustomer) return again('the provider has no such call')
  const { target, target_kind, how } = due
  const customer = due.customer ?? (await customerOf(db, provider, due, signal))
  if (customer === null && target_kind === 'card' && provider.eraseCard)
    return endingOf(await provider.eraseCard(target, signal))
  if (customer === null) return { end: 'unreachable', why: UNREACHABLE }
  if (typeof customer === 'object') return again(customer.why)
  // A card that has been detached since no longer names its customer.
  await db.query(`update provider_erasures set customer = $7 where ${OF_KEY}`, [...keyOf(due), customer])
  const card = target_kind === 'card' ? target : undefined
  return endingOf(await provider.eraseCustomer(customer, how, signal, card))
}

const endingOf = (result: { outcome: 'erased' } | Unknown): Ending =>
  result.outcome === 'unknown' ? again(result.why) : { end: 'done' }

const UNREACHABLE =
  'no customer is found there: the card belongs to none, and neither do the payments that were made with it; erase by hand what the account still has of the person'

/** The provider's customer behind a target: the owner of the card, else of one of its latest payments; null if there is none. */
async function customerOf(db: Db, provider: Provider, due: Due, signal: AbortSignal) {
  const { target, target_kind, organization_id, psp, psp_merchant_id } = due
  if (target_kind === 'customer') return target
  const card = target_kind === 'payment' ? undefined : await provider.savedCard?.(target, signal)
  if (card && 'outcome' in card) return card
  if (card?.customer) return card.customer
  const form = adapters[psp]!.ids.payment
  const known =
    target_kind === 'payment'
      ? [{ id: target }]
      : await db.query(PAYMENTS, [organization_id, target, psp, psp_merchant_id, form])
  for (const { id } of known) {
    const payer = await provider.payerOf?.(id!, signal)
    if (payer && 'outcome' in payer) return payer
    if (payer?.customer) return payer.customer
  }
  return null
}

const PAYMENTS = `
  select psp_transaction_id as id from report_transactions
  where organization_id = $1 and payment_method_token = $2 and psp = $3 and psp_merchant_id = $4
    and psp_transaction_id ~ $5
  order by trx_created_at desc limit 5`
