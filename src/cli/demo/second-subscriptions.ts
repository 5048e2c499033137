// People of the demo who came back after their subscription was over, and people who took a second one, some of whom gave it up again.
import { DAY_MS } from '../../lib/days.ts'
import { openRandom } from '../../lib/seeded-random.ts'
import { PLANS } from './catalogue.ts'
import { iso, type Line } from './people.ts'
import { recordId } from './random.ts'
import { after } from './subscriptions.ts'

const SEED = 20_261_101
// Of people whose subscription is over, and of those who pay, each so many gets a second one.
const COMES_BACK = 4
const TAKES_SECOND = 6
const AWAY_DAYS = 45
const SECOND_AFTER_DAYS = 75
const SECOND_PERIODS = 2

interface First extends Record<string, unknown> {
  status: string
  product_id: string
  created_at: string
  period_ends_at: string
  price: number
  price_usd: number
}

/** The lines of the second subscription of the person of these lines. The other records stay the same, because it takes no random number of theirs. */
export function secondSubscription(lines: Line[], n: number, now: number): Line[] {
  const first = lines.find(({ record }) => record === 'subscription')?.data as First | undefined
  const isBack = first?.status === 'expired' && n % COMES_BACK === 0
  const isSecond = first?.status === 'active' && n % TAKES_SECOND === 0
  if (!first || (!isBack && !isSecond)) return []
  const from = isBack
    ? Date.parse(first.period_ends_at) + AWAY_DAYS * DAY_MS
    : Date.parse(first.created_at) + SECOND_AFTER_DAYS * DAY_MS
  const plan = PLANS.find(({ id }) => id === first.product_id)!
  if (from >= now) return []
  const periods = [[from, after(from, plan)]] as [[number, number]]
  // Half of those who took a second one gave it up again.
  const most = isSecond && n % (2 * TAKES_SECOND) === 0 ? SECOND_PERIODS : Number.POSITIVE_INFINITY
  while (periods.at(-1)![1] <= now && periods.length < most)
    periods.push([periods.at(-1)![1], after(periods.at(-1)![1], plan)])
  const [starts, ends] = periods.at(-1)!
  const random = openRandom(SEED + n)
  const id = recordId(random, 'sub', from)
  const isOver = ends <= now
  const { price, price_usd } = first
  const subscription = {
    ...first,
    id,
    psp_id: `pay_${900_000 + n}`,
    status: isOver ? 'expired' : 'active',
    renews: !isOver,
    created_at: iso(from),
    updated_at: iso(isOver ? ends : starts),
    payment_provider: 'paypal',
    period_starts_at: iso(starts),
    period_ends_at: iso(ends),
    trial_offer: null,
    trial_transaction_id: null,
    paused_at: null,
    cancelled_at: isOver ? iso(starts) : null,
    cancellation_reason: isOver ? 'too_expensive' : null,
    renewed_at: periods.length > 1 ? iso(starts) : null,
  }
  const { profile_id, session_id, funnel_id, funnel_version, funnel_locale, experiment_id, currency, sandbox } = first
  const shared = { profile_id, session_id, funnel_id, funnel_version, funnel_locale, experiment_id, currency, sandbox }
  return [
    { record: 'subscription', data: subscription },
    ...periods.map(([ms]) => ({
      record: 'transaction',
      data: {
        ...shared,
        id: recordId(random, 'trn', ms),
        price,
        price_usd,
        created_at: iso(ms),
        updated_at: iso(ms),
        subscription_id: id,
      },
    })),
  ]
}
