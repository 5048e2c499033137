// What a tile lacks: amounts in currencies without a value in the reporting currency, said on the tile itself.
import type { MetricName } from '../../data/figures/metrics.ts'
import { addDays } from '../../lib/days.ts'
import { money, plural } from './format.ts'
import { html, type Piece } from './html.ts'
import { type Figure, figures, withComparison } from './numbers.ts'
import type { View } from './view.ts'

const MAX_NAMED = 3

/** The metrics whose amounts without a value are the metric `…_unvalued`. */
type Lackable = { [M in MetricName]: M extends `${infer Name}_unvalued` ? Name : never }[MetricName]

export interface Lacking {
  /** The currencies of the amounts that are left out. */
  currencies: string[]
  /** `without €12.00`; empty if nothing is left out. */
  shown: Piece
  /** The same of the figure that it is compared with. */
  before?: Piece
}

interface Missing {
  currency: string
  amount: number
}

/** What each of these metrics leaves out in the period of the page, and in the days that it is compared with. */
export async function lackingOf<Name extends Lackable>(view: View, ...metrics: Name[]): Promise<Record<Name, Lacking>> {
  const names = metrics.map((name) => `${name}_unvalued` as const)
  const [found, compared] = await withComparison(view, names.join(','), { by: 'currency', money: 'own' })
  const missingOf = (all: Figure[], of: 'values' | 'previous', name: string) =>
    all.flatMap((one) => (one[of]?.[name] ? [{ currency: one.key!, amount: one[of][name] }] : []))
  const lackingIn = (name: string): Lacking => ({
    ...lacking(missingOf(found, 'values', name)),
    before: lacking(missingOf(compared, 'previous', name)).shown,
  })
  return Object.fromEntries(metrics.map((name, n) => [name, lackingIn(names[n]!)])) as Record<Name, Lacking>
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
      currencies.map((currency) => ({
        currency,
        amount: at(after, movement, currency) - at(before, movement, currency),
      })),
    )
}

function lacking(all: Missing[]): Lacking {
  // What floating point leaves of a sum of 0 is nothing.
  const missing = all.filter(({ amount }) => Math.abs(amount) > 0.00005)
  const amounts = missing.slice(0, MAX_NAMED).map(({ currency, amount }) => money(amount, currency))
  const more = missing.length - amounts.length
  const shown =
    missing.length > 0 &&
    html`without ${amounts.map((amount, n) => html`${n > 0 && ', '}${amount}`)}${more > 0 && html` and ${plural(more, 'more currency', 'more currencies')}`}`
  return { currencies: missing.map(({ currency }) => currency), shown: shown || '' }
}

/** What a quotient lacks: of the first of these sums that lacks something. */
export const firstLacking = (...all: Lacking[]): Lacking => ({
  ...(all.find(({ shown }) => shown) ?? all[0]!),
  before: all.find(({ before }) => before)?.before ?? '',
})

/** What the revenue of these days or hours leaves out, of those that `isIn` chooses. */
export async function revenueLacking(
  view: View,
  query: { by: 'day' | 'hour'; from: string; to: string },
): Promise<(isIn: (one: Figure) => boolean) => Lacking> {
  const found = await figures(view, 'revenue_unvalued', { ...query, money: 'own' })
  return (isIn) =>
    sumLacking(
      found.filter(isIn).map(({ currency, values }) => ({ currency: currency!, amount: values.revenue_unvalued ?? 0 })),
    )
}

/** The same of amounts of which several may have one currency. */
export const sumLacking = (all: readonly Missing[] = []): Lacking =>
  lacking(
    [...Map.groupBy(all, ({ currency }) => currency)].map(([currency, own]) => ({
      currency,
      amount: own.reduce((sum, { amount }) => sum + amount, 0),
    })),
  )
