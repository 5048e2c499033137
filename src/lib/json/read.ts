// Reads JSON strictly: nothing is repaired or dropped, and no digit of a number is lost silently.
import { JsonError, NumberRangeError, place, refuseDuplicateNames, type Survey, surveyJson } from './grammar.ts'

export { JsonError, NumberRangeError }

export type JsonValue = null | boolean | number | string | JsonNumber | JsonValue[] | JsonObject
export type JsonObject = { [name: string]: JsonValue }

/** A number that JavaScript would write differently: `10.50`, `1e2`, `19.999999999999999999`. */
export class JsonNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  /** Lets `JSON.stringify` write the number as it was received. */
  toJSON(): unknown {
    return rawJson(this.text)
  }
}

/**
 * Reads one JSON text (RFC 8259) or throws a `JsonError`, also for a name twice in an object, a byte order mark, invalid
 * UTF-8, U+0000 or an unpaired surrogate (escaped or not), more than 32 levels, and numbers that no double can hold.
 *
 * With `exact`, a number stays a `number` only if JavaScript writes it with the same text; every other one becomes a
 * `JsonNumber`, so that `JSON.stringify` writes what was received. Without, all are plain numbers, rounded as usual.
 *
 * `__proto__` becomes a property like any other. Names that look like array indexes move to the front of their object,
 * as in every JavaScript object.
 */
export function readJson(input: Uint8Array | string, options: { exact?: boolean } = {}): JsonValue {
  const text = typeof input === 'string' ? wellFormed(input) : decode(input)
  const { names, oddNumbers } = surveyJson(text)
  const keepText = options.exact === true && oddNumbers.length > 0
  // The text is valid, so the engine's own parser can build the value, several times faster.
  const value = JSON.parse(keepText ? markNumbers(text, oddNumbers) : text) as JsonValue
  // A name that appears twice in an object leaves one property, so the value has fewer names than the text.
  if (countNames(value) !== names) refuseDuplicateNames(text)
  return keepText ? unmarkNumbers(value) : value
}

/**
 * The path of a number (`amount`, `items[2].price`) in a text that was refused for it; undefined when the text has further
 * mistakes, or is nothing but the number.
 */
export function pathOfNumber(text: string, { start, end }: NumberRangeError): string | undefined {
  try {
    // U+0000 is not allowed in a text, so it can serve as a mark.
    return pathOfMark(JSON.parse(`${text.slice(0, start)}"\\u0000"${text.slice(end)}`) as JsonValue)
  } catch {
    return undefined
  }
}

function pathOfMark(value: JsonValue, path = ''): string | undefined {
  if (value === '\0') return path || undefined
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, inner] of Object.entries(value)) {
    const below = Array.isArray(value) ? `${path}[${name}]` : path === '' ? name : `${path}.${name}`
    const found = pathOfMark(inner as JsonValue, below)
    if (found !== undefined) return found
  }
  return undefined
}

/**
 * Reads JSON that this program wrote, without the checks and limits of `readJson`; numbers are read as with `exact`, so that
 * amounts keep their decimals.
 */
export function readOwnJson(text: string): JsonValue {
  return JSON.parse(text, keepText as never) as JsonValue
}

/** A reviver; the engine passes it the text of each number. */
function keepText(_name: string, value: JsonValue, { source }: { source?: string }): JsonValue {
  return typeof value === 'number' && String(value) !== source ? new JsonNumber(source!) : value
}

/** The value with every number as JavaScript's own, rounded as usual; the value itself if that changes nothing. */
export function roundNumbers(value: JsonValue): JsonValue {
  if (value instanceof JsonNumber) return Number(value.text)
  if (typeof value !== 'object' || value === null) return value
  const names = Object.keys(value)
  const items = Object.values(value) as JsonValue[]
  const rounded = items.map(roundNumbers)
  if (rounded.every((item, n) => item === items[n])) return value
  // Not by assignment, which would set the prototype for the name `__proto__`.
  return Array.isArray(value) ? rounded : Object.fromEntries(names.map((name, n) => [name, rounded[n]!]))
}

export function isJsonObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof JsonNumber)
}

/** The text of a number that was read with `exact`, or that was sent as a text, as it was received. */
export function numberText(value: string | number | JsonNumber): string {
  return value instanceof JsonNumber ? value.text : String(value)
}

const { rawJSON: rawJson } = JSON as unknown as { rawJSON: (text: string) => unknown }

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new JsonError(`byte ${invalidByte(bytes)}: invalid UTF-8`)
  }
}

/** The number of the first byte that cannot be UTF-8, counted from 1: by halving; only called for invalid text. */
function invalidByte(bytes: Uint8Array): number {
  let good = 0
  let bad = bytes.length + 1
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, middle), { stream: true })
      good = middle
    } catch {
      bad = middle
    }
  }
  return Math.min(bad, bytes.length)
}

function wellFormed(text: string): string {
  if (text.isWellFormed()) return text
  throw new JsonError(`${place(text, text.search(/\p{Surrogate}/u))}: unpaired surrogate`)
}

function countNames(value: JsonValue): number {
  if (typeof value !== 'object' || value === null) return 0
  const items = Object.values(value) as JsonValue[]
  let count = Array.isArray(value) ? 0 : items.length
  for (const item of items) if (typeof item === 'object' && item !== null) count += countNames(item)
  return count
}

/** Makes strings of these numbers, marked by U+0000, which the survey allows in no other string. */
function markNumbers(text: string, numbers: Survey['oddNumbers']): string {
  let marked = ''
  let from = 0
  for (const { start, end } of numbers) {
    marked += `${text.slice(from, start)}"\\u0000${text.slice(start, end)}"`
    from = end
  }
  return marked + text.slice(from)
}

/** Puts the numbers in place of the marked strings. (A reviver that looks at each source takes twice as long.) */
function unmarkNumbers(value: JsonValue): JsonValue {
  if (typeof value === 'string') return value.startsWith('\0') ? new JsonNumber(value.slice(1)) : value
  if (typeof value !== 'object' || value === null) return value
  const holder = value as JsonObject
  for (const name of Object.keys(holder)) {
    const item = holder[name]!
    if (typeof item === 'string' || typeof item === 'object') holder[name] = unmarkNumbers(item)
  }
  return value
}
