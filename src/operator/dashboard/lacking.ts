// What a tile lacks: amounts in currencies without a value in the reporting currency, said on the tile itself.
import { money } from './format.ts'
import { html, type Piece } from './html.ts'
import { figures } from './numbers.ts'
import type { View } from './view.ts'

const MAX_NAMED = 3

export interface Lacking {
  /** The currencies that have an amount and none of it in the reporting currency. */
  currencies: string[]
  /** `without €12.00`; empty if nothing is left out. */
  shown: Piece
}

/** What each of these metrics leaves out in the period of the page; an amount of a currency that has some values is in `without_usd`. */
export async function lackingOf<Name extends string>(view: View, ...metrics: Name[]): Promise<Record<Name, Lacking>> {
  const names = metrics.join(',')
  const [own, converted] = await Promise.all([
    figures(view, names, { by: 'currency', money: 'own' }),
    figures(view, names, { by: 'currency' }),
  ])
  const each = metrics.map((name) => {
    const valued = new Set(converted.filter(({ values }) => values[name]).map(({ key }) => key))
    const missing = own.filter(({ key, values }) => values[name] && !valued.has(key))
    const amounts = missing.slice(0, MAX_NAMED).map(({ key, values }) => html`${money(values[name], key!)}`)
    const more = missing.length - amounts.length
    const shown =
      missing.length > 0 &&
      html`without ${amounts.map((amount, n) => html`${n > 0 && ', '}${amount}`)}${more > 0 && ` and ${more} more currencies`}`
    return [name, { currencies: missing.map(({ key }) => key!), shown: shown || '' }] as const
  })
  return Object.fromEntries(each) as Record<Name, Lacking>
}
