// The demo's sales: subscriptions in every state with the payments that led there, and customers whose card is saved.
import { DAY_MS } from '../../lib/days.ts'
import { openRandom, type Random } from '../../lib/seeded-random.ts'
import { inCents, PLANS, type Plan, priceIn } from './catalogue.ts'
import { DECLINED, DECLINES, declineOf, payment } from './payments.ts'
import { iso, type Line, type Person, type Visit } from './people.ts'
import { recordId, uuid } from './random.ts'

// Of a hundred subscriptions.
const STATUSES = { created: 2, trialing: 6, active: 40, paused: 4, cancelled: 14, expired: 29, unpaid: 5 } as const
type Status = keyof typeof STATUSES

const PROVIDERS = { simulator: 70, stripe: 20, paypal: 10 } as const
const REASONS = ['too_expensive', 'not_used', 'goal_reached', 'technical_problems', null]

interface Charge {
  ms: number
  price: number
}

// How long ago the archived plan was last sold.
const ARCHIVED_MS = 400 * DAY_MS
const ON_SALE = PLANS.filter(({ status }) => status === 'active')

// How long a failed payment is retried.
const RETRY_MS = 21 * DAY_MS

/** The history of one subscription, all before `now`. */
interface Timeline {
  plan: Plan
  status: Status
  made: number
  charges: Charge[]
  period?: [starts: number, ends: number]
  paused?: number
  cancelled?: number
}

/** The records of one person's subscription, or nothing when they did not buy. */
export function subscriptionLines(random: Random, person: Person, n: number, now: number): Line[] {
  const visit = person.visits.at(-1)!
  if (person.email === null || !random.chance(0.55)) return []
  const made = visit.ms + random.integer(30_000, 600_000)
  const timeline = makeTimeline(random, made, person.place.currency, now)
  if (!timeline) return []
  const provider = random.weighted(PROVIDERS)
  const id = recordId(random, 'sub', made)
  const charges = timeline.charges.map((charge) => ({ ...charge, id: recordId(random, 'trn', charge.ms) }))
  const isTrialPaid = (timeline.plan.trial?.dollars ?? 0) > 0
  const trial_transaction_id = isTrialPaid ? (charges[0]?.id ?? null) : null
  const shared = sharedFields(person, visit)
  const lines: Line[] = [
    {
      record: 'subscription',
      data: { id, ...shared, ...subscriptionFields(random, timeline, shared, provider, n), trial_transaction_id },
    },
    ...charges.map((charge) => ({ record: 'transaction', data: transaction(charge, shared, id) })),
  ]
  if (provider === 'simulator') lines.push(...customerLines(random, person, n, shared.currency, timeline, now))
  return lines
}

function sharedFields(person: Person, { id, funnel, experiment }: Visit) {
  const { place } = person
  return {
    profile_id: person.id,
    session_id: id,
    funnel_id: funnel.id,
    funnel_version: funnel.version,
    funnel_locale: place.locale,
    experiment_id: experiment,
    currency: place.currency,
    sandbox: false,
  }
}

/**
 * Ends in a random state, or in the nearest one that is possible in the time since `made`; undefined if it would be in the
 * future.
 */
function makeTimeline(random: Random, made: number, currency: string, now: number): Timeline | undefined {
  const plan = random.pick(now - made > ARCHIVED_MS ? PLANS : ON_SALE)
  const wanted = random.weighted(STATUSES)
  if (made >= now) return undefined
  if (wanted === 'created') return { plan, status: 'created', made, charges: [] }
  const paidFrom = made + (plan.trial?.days ?? 0) * DAY_MS
  const charges =
    plan.trial && plan.trial.dollars > 0 ? [{ ms: made, price: priceIn(currency, plan.trial.dollars) }] : []
  if (paidFrom > now) return { plan, status: 'trialing', made, charges, period: [made, paidFrom] }
  const periods = [[paidFrom, after(paidFrom, plan)]] as [[number, number]]
  const maxPeriods = wanted === 'paused' || wanted === 'expired' ? random.integer(1, 9) : Number.POSITIVE_INFINITY
  while (periods.at(-1)![1] <= now && periods.length < maxPeriods) {
    const ends = periods.at(-1)![1]
    periods.push([ends, after(ends, plan)])
  }
  // The payment of the last period failed.
  const isUnpaid = wanted === 'unpaid' && periods.length > 1 && now - periods.at(-1)![0] < RETRY_MS
  if (isUnpaid) periods.pop()
  for (const [starts] of periods) charges.push({ ms: starts, price: priceIn(currency, plan.dollars) })
  const period = periods.at(-1)!
  const state = isUnpaid ? { status: 'unpaid' as const } : outcome(random, wanted, period, now)
  return { plan, made, charges, period, ...state }
}

/** Its state in its last period, which may be over. */
function outcome(random: Random, wanted: Status, [starts, ends]: [number, number], now: number) {
  const within = Math.floor(starts + (Math.min(ends, now) - starts) * random.next())
  if (wanted === 'paused') return { status: 'paused' as const, paused: within }
  if (ends <= now) return { status: 'expired' as const, cancelled: within }
  return wanted === 'cancelled' || wanted === 'expired'
    ? { status: 'cancelled' as const, cancelled: within }
    : { status: 'active' as const }
}

/** The end of a period of the plan. */
export function after(ms: number, { interval, count }: Plan): number {
  const days = { day: count, week: 7 * count }[interval as 'day' | 'week']
  if (days) return ms + days * DAY_MS
  const date = new Date(ms)
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() + (interval === 'year' ? 12 * count : count))
  // The 31st becomes the month's last day.
  date.setUTCDate(Math.min(day, new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()))
  return date.getTime()
}

function subscriptionFields(
  random: Random,
  { plan, status, made, charges, period, paused, cancelled }: Timeline,
  { currency }: { currency: string },
  provider: string,
  n: number,
) {
  const over = status === 'expired' || status === 'unpaid' ? period![1] : 0
  const renewed = charges.length > 1 ? charges.at(-1)!.ms : null
  const orNull = (ms: number | null | undefined) => (ms ? iso(ms) : null)
  return {
    psp_id: `${provider.slice(0, 3)}_${100_000 + n}`,
    status,
    renews: cancelled === undefined && status !== 'expired',
    created_at: iso(made),
    updated_at: iso(Math.max(made, over, renewed ?? 0, paused ?? 0, cancelled ?? 0)),
    billing_interval: plan.interval,
    billing_interval_count: plan.count,
    price: priceIn(currency, plan.dollars),
    price_usd: inCents(priceIn(currency, plan.dollars), currency),
    payment_provider: provider,
    product_id: plan.id,
    period_starts_at: orNull(period?.[0]),
    period_ends_at: orNull(period?.[1]),
    trial_offer: plan.trial ? { days: plan.trial.days, price: priceIn(currency, plan.trial.dollars), currency } : null,
    paused_at: orNull(paused),
    cancelled_at: orNull(cancelled),
    cancellation_reason: cancelled ? random.pick(REASONS) : null,
    renewed_at: orNull(renewed),
  }
}

function transaction({ id, ms, price }: Charge & { id: string }, shared: { currency: string }, subscriptionId: string) {
  const stamp = iso(ms)
  const price_usd = inCents(price, shared.currency)
  return { id, ...shared, price, price_usd, created_at: stamp, updated_at: stamp, subscription_id: subscriptionId }
}

/** The billing customer with the payments of the subscription; the card of the last payment is saved. */
function* customerLines(
  random: Random,
  person: Person,
  n: number,
  currency: string,
  { plan, status, made, charges, period }: Timeline,
  now: number,
): Iterable<Line> {
  const external_id = `user_${n}`
  const token = random.pick(['pm_card_visa', 'pm_card_mastercard'])
  const subs = uuid(random, made)
  const withoutCard = (ms: number, price: number) => ({ external_id, ms, price, currency, token: null })
  yield { record: 'customer', data: { external_id, email: person.email, profile_id: person.id } }
  for (const [iteration, { ms, price }] of charges.entries()) {
    const meta = { meta_subs_id: subs, meta_subs_iteration: String(iteration), is_cit: iteration === 0 }
    const session = { meta_client_svc_session_id: person.visits.at(-1)!.id, meta_client_svc_price_id: plan.id }
    if (random.chance(DECLINED_FIRST)) {
      const declined = declineOf(random.weighted(DECLINES))
      yield payment(random, withoutCard(ms - RETRY_AFTER_MS, price), { ...meta, ...declined })
      // Of some, the first retry is declined too. It takes no random number of the other records.
      if ((n + iteration) % 3 === 0)
        yield payment(openRandom(n * 1000 + iteration), withoutCard(ms - FIRST_BEFORE_MS, price), {
          ...meta,
          ...declineOf((n + iteration) % 2 === 0 ? 'insufficient_funds' : 'do_not_honor'),
        })
    }
    const line = payment(random, { external_id, ms, price, currency, token }, { ...meta, ...session })
    yield line
    const days = random.integer(1, 20)
    if (price > 0 && ms + days * DAY_MS < now && random.chance(PAID_BACK)) {
      const back = random.weighted({ refund: 9, chargeback: 1 })
      const { order_id } = line.data as { order_id: string }
      const reasons = BACK_REASONS[back as keyof typeof BACK_REASONS]
      const psp_reason_code = reasons[days % reasons.length]
      const returned = { order_id, psp_transaction_type: back, status: 'refunded', psp_reason_code }
      yield payment(random, withoutCard(ms + days * DAY_MS, price), { ...meta, ...returned })
    }
  }
  if (status === 'unpaid') {
    const price = priceIn(currency, plan.dollars)
    const meta = { meta_subs_id: subs, meta_subs_iteration: String(charges.length), meta_retry_step: '1', ...DECLINED }
    yield payment(random, withoutCard(period![1], price), meta)
  }
}

// Shares of the payments.
const DECLINED_FIRST = 0.08
const PAID_BACK = 0.03
const RETRY_AFTER_MS = 3_600_000
const FIRST_BEFORE_MS = 26 * 3_600_000
const BACK_REASONS = {
  refund: ['requested_by_customer', 'requested_by_customer', 'duplicate'],
  chargeback: ['fraudulent', 'subscription_canceled', 'product_not_received'],
}
