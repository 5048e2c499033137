// Compares the provider's movements of money with our orders and refunds, one by one.
import { keysOfLostTopUps } from './credit-rules.ts'
import type { Ledger, Movement } from './ledger.ts'
import { type Broken, first } from './rules.ts'
import type { State } from './state.ts'

/** Every movement of money belongs to one of our charges or refunds, in progress or succeeded, and none exists twice. */
export function moneyRules({ orders, refunds }: State, ledger: Ledger): (() => Broken)[] {
  const purchases = new Map(orders.map((order) => [order.provider_key, order]))
  const ours = new Set(refunds.map(({ provider_key }) => provider_key))
  const movements = ledger.movements.filter(
    ({ key, charge }) => purchases.has(key) || ours.has(key) || charge !== undefined,
  )
  const charges = ledger.movements.filter(({ type, key }) => type === 'charge' && purchases.has(key))
  const keys = charges.map(({ key }) => key)
  const backs = movements.filter(({ type, key }) => type === 'refund' && ours.has(key)).map(({ key }) => key)
  return [
    () => new Set(keys).size < keys.length && 'a key of a customer was charged twice',
    () => new Set(backs).size < backs.length && 'a key of a refund was paid back twice',
    ...charges.map((charge) => () => {
      const order = purchases.get(charge.key)!
      const paidBack = movements.filter((one) => one.charge === charge.transactionId)
      const back = paidBack.reduce((total, { amountMinor }) => total + amountMinor, 0n)
      return first([
        () => back > charge.amountMinor && `${back} was paid back of ${charge.amountMinor}`,
        () => charge.merchantId !== order.merchant && `a charge of ${order.merchant} was made at ${charge.merchantId}`,
        () =>
          order.status === 'succeeded' &&
          BigInt(order.minor) !== charge.amountMinor &&
          `an order of ${order.minor} took ${charge.amountMinor}`,
      ])
    }),
  ]
}

/** Movements without an order in any organization. Reconcile reports a refund of more than the remaining amount to an operator. */
export function strayMoney(states: State[], ledger: Ledger): Broken {
  const orders = states.flatMap((state) => state.orders)
  const keys = new Set([...orders, ...states.flatMap(({ refunds }) => refunds)].map((one) => one.provider_key))
  const lost = new Set(states.flatMap(({ credits }) => keysOfLostTopUps(credits)))
  const fits = ({ charge, amountMinor }: Movement) => {
    const paid = ledger.movements.find((one) => one.type === 'charge' && one.transactionId === charge)
    const order = orders.find((one) => one.provider_key === paid?.key)
    return order === undefined || BigInt(order.refunded_hard) + amountMinor <= BigInt(order.minor)
  }
  const stray = ledger.movements.find(
    (one) => !keys.has(one.key) && !lost.has(one.key) && (one.type === 'charge' || fits(one)),
  )
  return stray && `money moved for no ${stray.type === 'charge' ? 'order' : 'refund'}`
}
