// What a tile lacks: amounts in currencies without a value in the reporting currency, said on the tile itself.
import { addDays } from '../../lib/days.ts'
import { money, plural } from './format.ts'
import { html, type Piece } from './html.ts'
import { type Figure, figures } from './numbers.ts'
import type { View } from './view.ts'

const MAX_NAMED = 3

export interface Lacking {
  /** The currencies of the amounts that are left out. */
  currencies: string[]
  /** `without €12.00`; empty if nothing is left out. */
  shown: Piece
}

interface Missing {
  currency: string
  amount: number
  /** How many amounts are missing, of a currency of which others have a value. */
  count?: number
}

const SALES = ['new', 'renewal', 'trial', 'one_off']
const REFUNDS = ['refund', 'refund_failed']
const CHARGEBACKS = ['chargeback', 'chargeback_reversal']
/** The kinds of movements that a metric is the sum of. */
const KINDS: Record<string, string[]> = {
  revenue: SALES,
  refunds: REFUNDS,
  chargebacks: CHARGEBACKS,
  net_revenue: [...SALES, ...REFUNDS, ...CHARGEBACKS],
}

/**
 * What each of these metrics leaves out in the period of the page. Of the MRR it is known exactly; of others, the amounts of currencies that
 * have no value at all, and how many amounts of the other currencies.
 */
export async function lackingOf<Name extends string>(view: View, ...metrics: Name[]): Promise<Record<Name, Lacking>> {
  const others = metrics.filter((name) => name !== 'mrr')
  const [found, mrr] = await Promise.all([
    others.length > 0 ? withoutValue(view, others) : new Map<string, Missing[]>(),
    others.length < metrics.length ? figures(view, 'mrr_unvalued', { by: 'currency', money: 'own' }) : [],
  ])
  found.set('mrr', missingOf(mrr, 'mrr_unvalued'))
  return Object.fromEntries(metrics.map((name) => [name, lacking(found.get(name)!)])) as Record<Name, Lacking>
}

/** What each movement of the MRR in the period of the page leaves out; `''` is all of them. */
export async function movementsLacking(view: View): Promise<(movement: string) => Lacking> {
  const { from, to } = view.span
  const query = { by: 'movement', money: 'own' } as const
  const [after, before] = await Promise.all([
    figures(view, 'mrr_unvalued', { ...query, from, to }),
    figures(view, 'mrr_unvalued', { ...query, from: addDays(from, -1), to: from }),
  ])
  const at = (found: Figure[], movement: string, currency: string) =>
    found
      .filter((one) => one.currency === currency && (movement === '' || one.key === movement))
      .reduce((sum, { values }) => sum + (values.mrr_unvalued ?? 0), 0)
  const currencies = [...new Set(after.map(({ currency }) => currency!))]
  return (movement) =>
    lacking(
      currencies
        .map((currency) => ({ currency, amount: at(after, movement, currency) - at(before, movement, currency) }))
        .filter(({ amount }) => Math.abs(amount) > 0.00005),
    )
}

const missingOf = (found: readonly Figure[], name: string): Missing[] =>
  found.flatMap(({ key, values }) => (values[name] ? [{ currency: key!, amount: values[name] }] : []))

async function withoutValue(view: View, metrics: string[]): Promise<Map<string, Missing[]>> {
  const names = metrics.join(',')
  const [own, converted, counts] = await Promise.all([
    figures(view, names, { by: 'currency', money: 'own' }),
    figures(view, names, { by: 'currency' }),
    // Kinds are not stored by other dimensions. Only metrics of money have a currency each.
    view.filters.length === 0 ? figures(view, 'revenue,without_usd', { by: 'kind', money: 'own' }) : [],
  ])
  return new Map(
    metrics.map((name) => {
      const valued = new Set(converted.filter(({ values }) => values[name]).map(({ key }) => key))
      const whole = missingOf(own, name).filter(({ currency }) => !valued.has(currency))
      const others = counts.filter(
        ({ key, currency }) => KINDS[name]?.includes(key!) && !whole.some((one) => one.currency === currency),
      )
      const partly = [...Map.groupBy(others, ({ currency }) => currency!)].map(([currency, all]) => {
        const count = all.reduce((sum, { values }) => sum + (values.without_usd ?? 0), 0)
        return { currency, amount: 0, count }
      })
      return [name, [...whole, ...partly.filter(({ count }) => count > 0)]]
    }),
  )
}

function lacking(missing: Missing[]): Lacking {
  const amounts = missing
    .slice(0, MAX_NAMED)
    .map(({ currency, amount, count }) =>
      count === undefined ? money(amount, currency) : html`${plural(count, 'amount')} in ${currency}`,
    )
  const more = missing.length - amounts.length
  const shown =
    missing.length > 0 &&
    html`without ${amounts.map((amount, n) => html`${n > 0 && ', '}${amount}`)}${more > 0 && ` and ${more} more currencies`}`
  return { currencies: missing.map(({ currency }) => currency), shown: shown || '' }
}

/** What a quotient lacks: of the first of these sums that lacks something. */
export const firstLacking = (...all: Lacking[]): Lacking => all.find(({ shown }) => shown) ?? all[0]!

/** The same where only the number of amounts without a value is known. */
export const countLacking = (count = 0): Lacking => ({
  currencies: [],
  shown: count > 0 && html`without ${plural(count, 'amount')} that ${count === 1 ? 'has' : 'have'} no value`,
})
