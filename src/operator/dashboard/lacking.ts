// What a tile lacks: amounts in currencies without a value in the reporting currency, said on the tile itself.
import { money } from './format.ts'
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
}

/**
 * What each of these metrics leaves out in the period of the page. Of the MRR it is known exactly; of others, the amounts of currencies that
 * have no value at all, while an amount of a currency that has some values is in `without_usd`.
 */
export async function lackingOf<Name extends string>(view: View, ...metrics: Name[]): Promise<Record<Name, Lacking>> {
  const others = metrics.filter((name) => name !== 'mrr')
  const [found, mrr] = await Promise.all([
    others.length > 0 ? withoutAnyValue(view, others) : new Map<string, Missing[]>(),
    others.length < metrics.length ? figures(view, 'mrr_unvalued', { by: 'currency', money: 'own' }) : [],
  ])
  found.set('mrr', missingOf(mrr, 'mrr_unvalued'))
  return Object.fromEntries(metrics.map((name) => [name, lacking(found.get(name)!)])) as Record<Name, Lacking>
}

const missingOf = (found: readonly Figure[], name: string): Missing[] =>
  found.flatMap(({ key, values }) => (values[name] ? [{ currency: key!, amount: values[name] }] : []))

async function withoutAnyValue(view: View, metrics: string[]): Promise<Map<string, Missing[]>> {
  const names = metrics.join(',')
  const [own, converted] = await Promise.all([
    figures(view, names, { by: 'currency', money: 'own' }),
    figures(view, names, { by: 'currency' }),
  ])
  return new Map(
    metrics.map((name) => {
      const valued = new Set(converted.filter(({ values }) => values[name]).map(({ key }) => key))
      return [name, missingOf(own, name).filter(({ currency }) => !valued.has(currency))]
    }),
  )
}

function lacking(missing: Missing[]): Lacking {
  const amounts = missing.slice(0, MAX_NAMED).map(({ currency, amount }) => html`${money(amount, currency)}`)
  const more = missing.length - amounts.length
  const shown =
    missing.length > 0 &&
    html`without ${amounts.map((amount, n) => html`${n > 0 && ', '}${amount}`)}${more > 0 && ` and ${more} more currencies`}`
  return { currencies: missing.map(({ currency }) => currency), shown: shown || '' }
}
