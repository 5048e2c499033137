// JSON of the billing API, whose amounts are read as text.

// A quote within a JSON text is escaped, so that this matches names of properties only.
const AMOUNTS = /(?<!\\)"(amount|amount_usd|amount_refunded|balance|held|available|below|grants)":(-?[0-9.]+)/g

/** JSON whose amounts become text with every digit that was sent. */
export function parseExact(text: string): unknown {
  return JSON.parse(text.replace(AMOUNTS, '"$1":"$2"'))
}
