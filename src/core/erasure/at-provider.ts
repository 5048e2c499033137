// Erases customers at payment providers: detaches their cards, clears or deletes the customer there, and retries until done.
import type { Clock } from '../../lib/clock.ts'
import type { Db } from '../../lib/pg/db.ts'
import { repeat } from '../../lib/repeat.ts'
import { adapters } from '../../payments/providers/adapters.ts'
import type { Provider, Providers } from '../../payments/providers/provider.ts'

interface Shared {
  db: Db
  providers: Providers
  clock: Clock
  log: { info(details: object, message: string): void; error(details: object, message: string): void }
}

const PSPS = Object.keys(adapters)
  .map((psp) => `'${psp}'`)
  .join(', ')

/**
 * Statements of an erasure, with the project as $1 and the profiles as $2. If the organization has switched it on, they
 * stop charges to the cards of the customers and queue the erasure at the providers. Repeating them changes nothing.
 */
export const QUEUE_AT_PROVIDER = [
  `update customers c set cards_erased_at = db_clock() from organizations o
   where c.project_id = $1 and c.profile_id = any($2) and c.cards_erased_at is null
     and o.id = c.organization_id and o.erase_at_provider <> 'off'`,
  `insert into provider_erasures (organization_id, psp, psp_merchant_id, target, project_id, profile_id, how, created_at,
     next_attempt_at)
   select distinct on (c.organization_id, t.psp, t.psp_merchant_id, t.target)
     c.organization_id, t.psp, t.psp_merchant_id, t.target, c.project_id, c.profile_id,
     case o.erase_at_provider when 'delete' then 'delete' else 'empty' end, now.at, now.at
   from (select db_clock() as at) now, customers c
   join organizations o on o.id = c.organization_id and o.erase_at_provider <> 'off'
   cross join lateral (
     select r.psp, r.psp_merchant_id, coalesce(r.psp_customer_id, r.payment_method_token) as target
     from report_transactions r where r.organization_id = c.organization_id and r.external_id = c.external_id
     union select d.psp, d.psp_merchant_id, coalesce(d.provider_customer, d.payment_method_token)
     from orders d where d.organization_id = c.organization_id and d.external_id = c.external_id
     -- An imported customer without payments is known by the provider's own id.
     union select m.psp, m.psp_merchant_id, c.external_id
     from merchant_accounts m where m.organization_id = c.organization_id and c.external_id like 'cus\\_%') t
   where c.project_id = $1 and c.profile_id = any($2)
     and t.psp in (${PSPS}) and t.psp_merchant_id is not null and t.target is not null
   on conflict do nothing`,
]

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
  how: 'empty' | 'delete'
  attempts: string
}

// Taking an erasure moves its next attempt past the lease. A time further in the future than any pause is due too: it was set
// before the clock was set back. Accounts with fewer erasures under way in this process come first.
const TAKE_DUE = {
  name: 'take erasure at provider',
  text: `
    with now as materialized (select db_clock() as at), due as (
      select e.organization_id, e.psp, e.psp_merchant_id, e.target from now, provider_erasures e
      left join (
        select u.*, count(*) as n from unnest($2::text[], $3::text[], $4::text[]) as u (organization_id, psp, psp_merchant_id)
        group by 1, 2, 3) busy using (organization_id, psp, psp_merchant_id)
      where (e.next_attempt_at <= now.at or e.next_attempt_at > now.at + interval '1 day')
        and coalesce(busy.n, 0) < ${PER_ACCOUNT}
      order by coalesce(busy.n, 0), e.next_attempt_at limit 1 for update of e skip locked)
    update provider_erasures e set attempts = e.attempts + 1, next_attempt_at = now.at + make_interval(secs => $1)
    from due, now
    where (e.organization_id, e.psp, e.psp_merchant_id, e.target) =
      (due.organization_id, due.psp, due.psp_merchant_id, due.target)
    returning e.organization_id, e.psp, e.psp_merchant_id, e.target, e.how, e.attempts`,
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

async function attempt({ db, providers, log }: Shared, due: Due, signal: AbortSignal): Promise<void> {
  const { organization_id, psp, psp_merchant_id, target } = due
  const provider = await providers.of(organization_id, psp, psp_merchant_id)
  const why = provider ? await erase(provider, due, signal) : 'the merchant account is not connected'
  const pause = PAUSES_S[Math.min(Number(due.attempts), PAUSES_S.length) - 1]!
  await db.query(SETTLE, [organization_id, psp, psp_merchant_id, target, why ?? null, pause])
  if (why === undefined) log.info({ organization_id, psp, psp_merchant_id }, 'A customer was erased at the provider.')
}

const SETTLE = {
  name: 'settle erasure at provider',
  text: `
    update provider_erasures set why = $5, done_at = case when $5::text is null then db_clock() end,
      next_attempt_at = case when $5::text is not null then db_clock() + make_interval(secs => $6) end
    where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and target = $4 and done_at is null`,
}

/** Returns why the erasure has to be tried again; undefined if it is done. */
async function erase(provider: Provider, { target, how }: Due, signal: AbortSignal): Promise<string | undefined> {
  if (!provider.eraseCustomer) return 'the provider has no such call'
  const isCustomer = target.startsWith('cus_')
  const customer = isCustomer ? target : await customerOf(provider, target, signal)
  if (customer === null) return undefined
  if (typeof customer === 'object') return customer.why
  const outcome = await provider.eraseCustomer(customer, how, signal, isCustomer ? undefined : target)
  return outcome.outcome === 'unknown' ? outcome.why : undefined
}

/** The customer of a saved card; null if the card is attached to none. */
async function customerOf(provider: Provider, token: string, signal: AbortSignal) {
  const card = await provider.savedCard?.(token, signal)
  if (card && 'outcome' in card) return card
  return card?.customer ?? null
}
