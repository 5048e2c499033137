// The products, prices and coupons of a random account, and the items and discounts that are made of them.
import type { Making } from './account.ts'
import { type Fields, randomObject } from './random-object.ts'

interface Catalogue {
  prices: Fields[]
  coupons: Fields[]
}

export function addCatalogue(making: Making): Catalogue {
  const { random, id, make, time } = making
  const prices: Fields[] = []
  for (let n = random.integer(1, 3); n > 0; n--) {
    const product = id('prod')
    make('Product', { id: product, object: 'product', created: time(), livemode: false, default_price: null })
    const count = random.chance(0.02) ? 120 : random.integer(1, 4)
    for (let m = count; m > 0; m--) prices.push(addPrice(making, product))
  }
  // Its product does not exist any more.
  if (random.chance(0.2)) prices.push(addPrice(making, id('prod')))
  const products = prices.map(({ product }) => product)
  const coupons = Array.from({ length: random.integer(1, 3) }, () => addCoupon(making, products))
  return { prices, coupons }
}

function addPrice(making: Making, product: string): Fields {
  const { random, flavor, id, time, make } = making
  const isTiered = random.chance(0.3)
  const isRecurring = random.chance(0.85)
  const unknown = (values: string[]) => (random.chance(flavor.unknowns) ? 'new_at_stripe' : random.pick(values))
  const options = () =>
    Object.fromEntries(
      Array.from({ length: random.integer(1, 3) }, () => [
        making.currency(),
        { custom_unit_amount: null, tax_behavior: null, ...amountsOf(making, isTiered) },
      ]),
    )
  return make('Price', {
    ...{ id: id('price'), object: 'price', created: time(), currency: making.currency(), livemode: false, product },
    ...amountsOf(making, isTiered),
    ...(random.chance(0.3) && { currency_options: options() }),
    billing_scheme: unknown([isTiered ? 'tiered' : 'per_unit']),
    tiers_mode: isTiered ? unknown(['graduated', 'volume']) : null,
    transform_quantity: random.chance(0.2) ? { divide_by: random.integer(1, 9), round: unknown(['up', 'down']) } : null,
    type: unknown([isRecurring ? 'recurring' : 'one_time']),
    custom_unit_amount: random.chance(0.9) ? null : { maximum: null, minimum: null, preset: null },
    recurring: isRecurring
      ? {
          interval: unknown(['day', 'week', 'month', 'month', 'year']),
          interval_count: random.chance(0.03) ? 0 : random.integer(1, 6),
          meter: null,
          trial_period_days: random.chance(0.7) ? null : random.integer(0, 30),
          usage_type: unknown(['licensed', 'licensed', 'licensed', 'licensed', 'metered']),
        }
      : null,
  })
}

function amountsOf({ random }: Making, isTiered: boolean): Fields {
  if (!isTiered) return amountOf(random, 'unit_amount')
  let up_to = 0
  const tiers = Array.from({ length: random.integer(1, 4) }, () => {
    up_to += random.integer(1, 20)
    return { ...amountOf(random, 'flat_amount'), ...amountOf(random, 'unit_amount'), up_to: up_to as number | null }
  })
  if (random.chance(0.9)) tiers.at(-1)!.up_to = null
  return { unit_amount: null, unit_amount_decimal: null, tiers }
}

/** An integer, a fraction, or none. */
function amountOf(random: Making['random'], name: string): Fields {
  const amount = random.integer(0, 20_000)
  if (random.chance(0.06)) return { [name]: null, [`${name}_decimal`]: null }
  if (random.chance(0.6)) return { [name]: amount, [`${name}_decimal`]: String(amount) }
  return { [name]: null, [`${name}_decimal`]: `${amount}.${random.pick(['5', '25', '125', '000000000001', '4'])}` }
}

function addCoupon({ random, flavor, id, time, make, currency: pick }: Making, products: unknown[]): Fields {
  const isPercent = random.chance(0.5)
  const currency = isPercent ? null : pick()
  const amounts = () => ({ [pick()]: { amount_off: random.integer(1, 3000) } })
  return make('Coupon', {
    ...{ id: id('coupon'), object: 'coupon', created: time(), livemode: false, currency },
    percent_off: isPercent ? random.pick([5, 12.5, 33.33, 60, 100]) : null,
    amount_off: isPercent || random.chance(0.05) ? null : random.integer(1, 3000),
    ...(!isPercent && random.chance(0.4) && { currency_options: amounts() }),
    ...(random.chance(0.3) && { applies_to: { products: [random.pick(products)] } }),
    duration: random.chance(flavor.unknowns) ? 'new_at_stripe' : random.pick(['forever', 'once', 'repeating']),
  })
}

/** Returns the ids of new discounts. */
export function addDiscounts(making: Making, coupons: Fields[], count: number): string[] {
  const { random, id, time, make } = making
  return Array.from({ length: count }, () => {
    const end = random.chance(0.5) ? null : time() + 700 * 86_400
    const coupon = random.chance(0.03) ? null : random.pick(coupons)['id']
    const made = make('Discount', {
      ...{ id: id('di'), object: 'discount', customer: null, end, start: time(), promotion_code: null },
      source: { coupon, type: 'coupon' },
    })
    return String(made['id'])
  })
}

/** An item of a random price, mostly of one that has an amount in the currency. */
export function chooseItem(
  making: Making,
  { prices, coupons }: Catalogue,
  subscription: string,
  currency?: string,
): Fields {
  const { random, id, time } = making
  const isSold = ({ currency: own, currency_options: options }: Fields) =>
    own === currency || (options !== undefined && currency! in (options as object))
  const fitting = prices.filter((price) => price['recurring'] !== null && (currency === undefined || isSold(price)))
  const price = random.pick(fitting.length > 0 && random.chance(0.95) ? fitting : prices)
  const start = time()
  return {
    ...randomObject(random, making.flavor, 'SubscriptionItem', {
      ...{ id: id('si'), object: 'subscription_item', created: start, subscription, price },
      discounts: addDiscounts(making, coupons, random.chance(0.15) ? 1 : 0),
      current_period_start: start,
      current_period_end: start + random.integer(1, 365) * 86_400,
    }),
    ...(random.chance(0.9) && { quantity: random.chance(0.9) ? random.integer(1, 5) : random.integer(0, 5000) }),
  }
}
