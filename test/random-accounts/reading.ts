// What an import of an account has to store, read from the objects without the adapter: sums, prices, and what is left out.
import type { Fields } from './random-object.ts'

export interface Reading {
  /** `kind month CURRENCY` → number of rows and their sum in minor units of ISO 4217. */
  sums: Map<string, { count: number; minor: bigint }>
  /** The subscriptions that can be stored, with `CURRENCY price status`, and of those that are over when they ended. */
  prices: Map<string, string>
  /** The ids of the objects that cannot be stored. */
  leftOut: Set<string>
  /** The card that each successful payment leaves to be charged, by the id of the payment. */
  cards: Map<string, string>
  /** Successful payments, guests' ones included. */
  transactions: number
}

type Ratio = [over: bigint, under: bigint]

/** Stripe's minor units in one minor unit of ISO 4217, for the currencies of random accounts that can be converted. */
const SCALES: Record<string, Ratio> = {
  usd: [1n, 1n],
  eur: [1n, 1n],
  jpy: [1n, 1n],
  kwd: [1n, 1n],
  bgn: [1n, 1n],
  hrk: [1n, 1n],
  isk: [100n, 1n],
  mga: [1n, 100n],
}
const LENGTHS: Record<string, bigint> = { day: 16n, week: 112n, month: 487n, year: 5844n }
const STATUSES = 'trialing active paused past_due unpaid canceled incomplete incomplete_expired'.split(' ')

class LeftOut extends Error {}
const leaveOut = (): never => {
  throw new LeftOut()
}

export function readAccount(objects: Fields[]): Reading {
  const byId = new Map(objects.map((one) => [String(one['id']), one]))
  const reading: Reading = { sums: new Map(), prices: new Map(), leftOut: new Set(), cards: new Map(), transactions: 0 }
  for (const object of objects) {
    try {
      readOne(reading, byId, object)
    } catch (error) {
      if (!(error instanceof LeftOut)) throw error
      reading.leftOut.add(String(object['id']))
    }
  }
  return reading
}

function readOne(reading: Reading, byId: Map<string, Fields>, object: Fields): void {
  const kind = object['object']
  if (kind === 'price' && byId.has(String(object['product']))) readPrice(object)
  if (kind === 'subscription') reading.prices.set(String(object['id']), readSubscription(byId, object))
  if (kind === 'charge') readCharge(reading, byId, object)
  if (kind === 'refund') readRefund(reading, byId, object)
  if (kind === 'dispute')
    for (const entry of object['balance_transactions'] as Fields[])
      move(
        reading,
        Number(entry['amount']) < 0 ? 'chargebacks' : 'reversed chargebacks',
        object,
        Number(entry['created']),
      )
  if (kind === 'balance_transaction') minorOf(object['currency'], [BigInt(Number(object['fee'])), 1n])
}

function readCharge(reading: Reading, byId: Map<string, Fields>, charge: Fields): void {
  const { status } = charge
  if (!['succeeded', 'failed', 'pending'].includes(String(status))) leaveOut()
  if (status === 'failed') move(reading, 'failed payments', charge)
  if (status !== 'succeeded' || charge['captured'] !== true) return
  move(reading, 'payments', charge)
  reading.transactions += 1
  const card = cardOf(byId, charge)
  if (card !== undefined) reading.cards.set(String(charge['id']), card)
}

/** The used card, else that of Stripe's older API, else the one with which the paid subscription goes on; each if it is still attached. */
function cardOf(byId: Map<string, Fields>, charge: Fields): string | undefined {
  const customer = byId.get(String(charge['customer']))
  if (!customer || customer['deleted']) return undefined
  const usable = (id: unknown) => {
    const method = byId.get(String(id))
    return method?.['type'] === 'card' && method['customer'] === customer['id'] ? String(id) : undefined
  }
  const intent = byId.get(String(charge['payment_intent']))
  const used = intent?.['setup_future_usage'] === 'on_session' ? undefined : usable(intent?.['payment_method'])
  const older = charge['payment_intent'] === null ? usable(charge['payment_method']) : undefined
  const isByCard = (charge['payment_method_details'] as Fields | null)?.['type'] === 'card'
  return used ?? older ?? (isByCard ? usable(subscriptionOf(byId, charge)?.['default_payment_method']) : undefined)
}

function subscriptionOf(byId: Map<string, Fields>, { id, payment_intent }: Fields): Fields | undefined {
  const invoices = [...byId.values()].filter(({ object }) => object === 'invoice')
  const invoice = invoices.find((one) =>
    (one['payments'] as { data: Fields[] }).data.some(({ payment }) => {
      const paid = payment as Fields
      return paid['payment_intent'] === (payment_intent ?? '') || paid['charge'] === id
    }),
  )
  const parent = invoice?.['parent'] as { subscription_details: Fields } | undefined
  return byId.get(String(parent?.subscription_details['subscription']))
}

function readRefund(reading: Reading, byId: Map<string, Fields>, refund: Fields): void {
  const intent = byId.get(String(refund['payment_intent']))
  const charge = byId.get(String(refund['charge'])) ?? byId.get(String(intent?.['latest_charge'])) ?? leaveOut()
  const status = refund['status']
  if (![null, 'succeeded', 'failed', 'canceled', 'pending', 'requires_action'].includes(status as string)) leaveOut()
  // An authorization that was released.
  if (charge['status'] === 'succeeded' && charge['captured'] !== true) return
  const hasFailed = status === 'failed' || status === 'canceled'
  const isPaid = status === null || status === 'succeeded' || (hasFailed && !!refund['failure_balance_transaction'])
  if (isPaid) move(reading, 'refunds', refund)
  if (hasFailed) move(reading, 'failed refunds', refund)
}

function move({ sums }: Reading, kind: string, { amount, currency, created }: Fields, at = Number(created)): void {
  const month = new Date(at * 1000).toISOString().slice(0, 7)
  const key = `${kind} ${month} ${String(currency).toUpperCase()}`
  const minor = minorOf(currency, [BigInt(Number(amount)), 1n])
  const before = sums.get(key) ?? { count: 0, minor: 0n }
  sums.set(key, { count: before.count + 1, minor: before.minor + minor })
}

function minorOf(currency: unknown, [over, under]: Ratio): bigint {
  const [by, times] = SCALES[String(currency)] ?? leaveOut()
  const [dividend, divisor] = [over * times, under * by]
  const [whole, rest] = [dividend / divisor, (dividend % divisor) * 2n]
  return rest > divisor || (rest === divisor && whole % 2n === 1n) ? whole + 1n : whole
}

function readPrice(price: Fields): void {
  const recurring = price['recurring'] as Fields | null
  if (!['one_time', 'recurring'].includes(String(price['type']))) leaveOut()
  if (recurring) lengthOf(recurring)
  minorOf(price['currency'], costOf(price, 1n, price['currency']))
}

function lengthOf(recurring: Fields | null): bigint {
  const count = Number(recurring?.['interval_count'])
  return count > 0 ? (LENGTHS[String(recurring!['interval'])] ?? leaveOut()) * BigInt(count) : leaveOut()
}

function readSubscription(byId: Map<string, Fields>, subscription: Fields): string {
  const { currency } = subscription
  const items = (subscription['items'] as { data: Fields[] }).data
  if (!STATUSES.includes(String(subscription['status'])) || items.length === 0) leaveOut()
  const lengths = items.map((item) => lengthOf((item['price'] as Fields)['recurring'] as Fields | null))
  const shortest = lengths.toSorted((one, other) => Number(one - other))[0]!
  const start = Number(items[lengths.indexOf(shortest)]!['current_period_end'])
  let parts = items.map((item, n) => {
    const price = item['price'] as Fields
    const usage = (price['recurring'] as Fields)['usage_type']
    if (usage === 'metered') return { product: price['product'], cost: [0n, 1n] as Ratio }
    if (usage !== 'licensed') leaveOut()
    const cost = costOf(price, BigInt(Number(item['quantity'] ?? 1)), currency)
    const own = item['discounts'] as string[]
    const [reduced] = own.reduce<Part[]>(
      (all, id) => reduce(all, byId, byId.get(id)!, currency, start),
      [{ product: price['product'], cost }],
    )
    return { product: price['product'], cost: [reduced!.cost[0] * shortest, reduced!.cost[1] * lengths[n]!] as Ratio }
  })
  const given = (subscription['discounts'] as string[]).map((id) => byId.get(id)!)
  const ofCustomer = byId.get(String(subscription['customer']))?.['discount'] as Fields | null | undefined
  for (const discount of given.length > 0 ? given : ofCustomer ? [ofCustomer] : [])
    parts = reduce(parts, byId, discount, currency, start)
  return `${String(currency).toUpperCase()} ${minorOf(currency, sumOf(parts))} ${stateOf(subscription)}`
}

function stateOf({ status, pause_collection, ended_at, canceled_at }: Fields): string {
  if (status === 'canceled') return `expired ${ended_at ?? canceled_at ?? '-'}`
  if (status === 'active') return pause_collection ? 'paused -' : 'active -'
  const states: Record<string, string> = { past_due: 'unpaid', incomplete: 'created', incomplete_expired: 'expired' }
  return `${states[String(status)] ?? status} -`
}

interface Part {
  product: unknown
  cost: Ratio
}

const sumOf = (parts: Part[]): Ratio =>
  parts.reduce<Ratio>(([over, under], { cost }) => [over * cost[1] + cost[0] * under, under * cost[1]], [0n, 1n])

function reduce(parts: Part[], byId: Map<string, Fields>, discount: Fields, currency: unknown, start: number): Part[] {
  const coupon = byId.get(String((discount['source'] as Fields)['coupon'])) ?? leaveOut()
  const { duration, percent_off, amount_off } = coupon
  if (!['forever', 'once', 'repeating'].includes(String(duration))) leaveOut()
  const end = discount['end'] as number | null
  if (duration === 'once' || (duration === 'repeating' && end !== null && end <= start)) return parts
  const products = (coupon['applies_to'] as { products: unknown[] } | undefined)?.products
  // An empty list limits nothing.
  const isMeant = ({ product }: Part) => !products?.length || products.includes(product)
  const change = (factor: Ratio) =>
    parts.map((part) =>
      isMeant(part) ? { ...part, cost: [part.cost[0] * factor[0], part.cost[1] * factor[1]] as Ratio } : part,
    )
  if (percent_off !== null) return change([BigInt(Math.round((100 - Number(percent_off)) * 1000)), 100_000n])
  const options = coupon['currency_options'] as Record<string, { amount_off: number }> | undefined
  const off = coupon['currency'] === currency ? amount_off : options?.[String(currency)]?.amount_off
  if (off === null || off === undefined) return leaveOut()
  const [over, under] = sumOf(parts.filter(isMeant))
  const rest = over - BigInt(Number(off)) * under
  return over === 0n ? parts : change([rest < 0n ? 0n : rest, over])
}

function costOf(price: Fields, quantity: bigint, currency: unknown): Ratio {
  const options = price['currency_options'] as Record<string, Fields> | undefined
  const amounts = price['currency'] === currency ? price : (options?.[String(currency)] ?? leaveOut())
  const transform = price['transform_quantity'] as { divide_by: number; round: string } | null
  const units = transform ? packagesOf(quantity, transform) : quantity
  if (price['billing_scheme'] === 'per_unit') {
    const each = decimal(amounts['unit_amount_decimal'])
    if (!each) return amounts['custom_unit_amount'] ? [0n, 1n] : leaveOut()
    return [each[0] * units, each[1]]
  }
  const tiers = amounts['tiers'] as Fields[] | undefined
  const mode = price['tiers_mode']
  if (price['billing_scheme'] !== 'tiered' || !tiers || !['graduated', 'volume'].includes(String(mode))) leaveOut()
  const last = tiers!.findIndex(({ up_to }) => up_to === null || units <= BigInt(Number(up_to)))
  if (last < 0) leaveOut()
  const counted = mode === 'volume' ? [tiers![last]!] : tiers!.slice(0, last + 1)
  const ends = tiers!.map(({ up_to }) => BigInt(Number(up_to ?? 0)))
  const costs = counted.map((tier, n) => {
    const below = n === 0 ? 0n : ends[n - 1]!
    const inTier = mode === 'volume' ? units : (n === last ? units : ends[n]!) - below
    const [flat, each] = [decimal(tier['flat_amount_decimal']), decimal(tier['unit_amount_decimal'])]
    const [f, e] = [flat ?? ([0n, 1n] as Ratio), each ?? ([0n, 1n] as Ratio)]
    return { product: null, cost: [f[0] * e[1] + e[0] * inTier * f[1], f[1] * e[1]] as Ratio }
  })
  return sumOf(costs)
}

function packagesOf(quantity: bigint, { divide_by, round }: { divide_by: number; round: string }): bigint {
  const by = BigInt(divide_by)
  if (round === 'down') return quantity / by
  return round === 'up' ? quantity / by + (quantity % by === 0n ? 0n : 1n) : leaveOut()
}

function decimal(text: unknown): Ratio | undefined {
  if (typeof text !== 'string') return undefined
  const [whole, fraction = ''] = text.split('.')
  return [BigInt(`${whole}${fraction}`), 10n ** BigInt(fraction.length)]
}
