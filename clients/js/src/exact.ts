// JSON without losses: amounts of the billing API are read as text, and values that JSON cannot hold are refused.

// A quote within a JSON text is escaped, so that this matches names of properties only.
const AMOUNTS = /(?<!\\)"(amount|amount_usd|amount_refunded|balance|held|available|below|grants)":(-?[0-9.]+)/g

/** JSON whose amounts become text with every digit that was sent. */
export function parseExact(text: string): unknown {
  return JSON.parse(text.replace(AMOUNTS, '"$1":"$2"'))
}

/** The JSON of a body or a record; undefined for undefined. Throws for a value that would become null, which clears a field, or `{}`. */
export const jsonOf = (value: unknown): string | undefined => JSON.stringify(value, unaltered)

function unaltered(this: Record<string, unknown>, name: string, value: unknown): unknown {
  const given = this[name]
  const isLost = typeof value === 'number' ? !Number.isFinite(value) : value === null && given instanceof Date
  if (!isLost && !isHidden(value)) return value
  const what = name === '' ? 'What was given' : `The value of ${name}`
  throw new TypeError(`${what} is ${isLost ? given : value!.constructor.name}, which cannot be sent.`)
}

/** Whether the value becomes `{}` though it has content, as a Map, a Set or URLSearchParams. */
const isHidden = (value: unknown) =>
  typeof value === 'object' &&
  value !== null &&
  !Array.isArray(value) &&
  Symbol.iterator in value &&
  Object.keys(value).length === 0
