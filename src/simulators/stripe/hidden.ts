// What responses leave out, as at Stripe: fields that only `expand` shows, and all but the first ten objects of an inner list.
import type { Call } from './call.ts'

/** By the field `object` of the object that has them. */
const HIDDEN: Record<string, readonly string[]> = {
  coupon: ['applies_to', 'currency_options'],
  invoice: ['payments'],
  price: ['currency_options', 'tiers'],
}
const INNER_LISTS: Record<string, readonly string[]> = { invoice: ['payments', 'lines'], subscription: ['items'] }
const INNER_PAGE = 10

/** @returns a copy without the fields that the call does not expand */
export function hide(call: Call, response: object): object {
  const asked = call.params['expand']
  return hideIn(response, [], Array.isArray(asked) ? asked.map(String) : []) as object
}

function hideIn(value: unknown, at: string[], asked: string[]): unknown {
  if (Array.isArray(value)) return value.map((item) => hideIn(item, at, asked))
  if (typeof value !== 'object' || value === null) return value
  const kind = String((value as { object?: unknown }).object)
  const fields = Object.entries(value).flatMap(([name, inner]): [string, unknown][] => {
    const path = [...at, name]
    if (HIDDEN[kind]?.includes(name) && !isAsked(path, asked)) return []
    if (kind === 'price' && name === 'currency_options') return [[name, options(inner as object, path, asked)]]
    return [[name, hideIn(INNER_LISTS[kind]?.includes(name) ? firstOf(inner) : inner, path, asked)]]
  })
  return Object.fromEntries(fields)
}

/** The tiers in another currency are expanded by themselves. */
function options(all: object, at: string[], asked: string[]): object {
  const shown = Object.entries(all).map(([currency, option]) => {
    const { tiers, ...rest } = option
    return [currency, tiers && isAsked([...at, currency, 'tiers'], asked) ? option : rest]
  })
  return Object.fromEntries(shown)
}

function firstOf(list: unknown): unknown {
  const { data } = list as { data: unknown[] }
  return data.length > INNER_PAGE ? { ...(list as object), data: data.slice(0, INNER_PAGE), has_more: true } : list
}

function isAsked(path: string[], asked: string[]): boolean {
  const name = path.join('.')
  return asked.some((one) => one === name || one.startsWith(`${name}.`))
}
