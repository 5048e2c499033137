// Reads JSON strictly: nothing is repaired, nothing is dropped, and no digit of a number is lost unnoticed.

export type JsonValue = null | boolean | number | string | JsonNumber | JsonValue[] | JsonObject
export type JsonObject = { [name: string]: JsonValue }

/** A number whose text says more than a JavaScript number would write: `10.50`, `1e2`, `19.999999999999999999`. */
export class JsonNumber {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }

  /** Lets `JSON.stringify` write the number as it came. */
  toJSON(): unknown {
    return rawJson(this.text)
  }
}

/** The message says where and what, never the values: they may be personal. Names of properties may appear. */
export class JsonError extends Error {}

const MAX_DEPTH = 32
// Longer ones are no measurement of anything, and would only cost time wherever they are computed with.
const MAX_NUMBER_LENGTH = 1000
const MAX_QUOTED_NAME = 64

/**
 * Reads one JSON text (RFC 8259), or throws a `JsonError`: also for a name twice in an object, a byte order mark, invalid
 * UTF-8, U+0000 or an unpaired surrogate (escaped or not), more than 32 levels, and numbers that no double can hold.
 *
 * With `exact`, a number stays a `number` only where JavaScript would write it back with the same text; every other one
 * is a `JsonNumber`. Without, all are plain numbers, rounded as JavaScript does.
 *
 * `__proto__` becomes a property like any other. Names that look like array indexes move to the front of their object,
 * as in every JavaScript object.
 */
export function readJson(input: Uint8Array | string, { exact = false } = {}): JsonValue {
  const text = typeof input === 'string' ? wellFormed(input) : decode(input)
  const { names, rounded } = new Checker(text).check()
  // The text is known to be good: the engine's own parser builds the value several times faster than we could.
  const value = (exact && rounded ? JSON.parse(text, keepText) : JSON.parse(text)) as JsonValue
  // A name that comes twice in an object leaves one property: then fewer are in the value than in the text.
  if (countNames(value) !== names) new Checker(text, true).check()
  return value
}

/** The digits of a number that was read with `exact`. */
export function numberText(value: number | JsonNumber): string {
  return typeof value === 'number' ? String(value) : value.text
}

type RawJson = { rawJSON(text: string): unknown }
const rawJson = (JSON as unknown as RawJson).rawJSON

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

function decode(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new JsonError(`byte ${firstInvalidByte(bytes)}: invalid UTF-8`)
  }
}

/** Counts from 1; the last byte when the text ends within a character. */
function firstInvalidByte(bytes: Uint8Array): number {
  let good = 0
  let bad = bytes.length
  while (bad - good > 1) {
    const middle = (good + bad) >> 1
    try {
      new TextDecoder('utf-8', { fatal: true }).decode(bytes.subarray(0, middle), { stream: true })
      good = middle
    } catch {
      bad = middle
    }
  }
  return bad
}

function wellFormed(text: string): string {
  if (!text.isWellFormed()) throw new JsonError(`${place(text, text.search(/\p{Surrogate}/u))}: unpaired surrogate`)
  return text
}

function keepText(_name: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === 'number' && String(value) !== context!.source! ? new JsonNumber(context!.source!) : value
}

function countNames(value: JsonValue): number {
  if (typeof value !== 'object' || value === null || value instanceof JsonNumber) return 0
  let count = 0
  if (Array.isArray(value)) {
    for (const item of value) count += countNames(item)
    return count
  }
  for (const name in value) {
    count++
    const item = value[name]!
    if (typeof item === 'object' && item !== null) count += countNames(item)
  }
  return count
}

const END = Number.NaN // What `charCodeAt` answers behind the end of the text.
const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const LOW_SURROGATE_ESCAPE = /\\u[dD][c-fC-F][0-9a-fA-F]{2}/y

/** Walks through the text by the grammar without building anything. */
class Checker {
  private readonly text: string
  private readonly compareNames: boolean
  private at = 0
  private depth = 0
  private names = 0
  private rounded = false

  /** `compareNames` makes it find the name that comes twice, which is slow. */
  constructor(text: string, compareNames = false) {
    this.text = text
    this.compareNames = compareNames
  }

  check(): { names: number; rounded: boolean } {
    if (this.text.charCodeAt(0) === 0xfeff) this.fail('a byte order mark is not allowed')
    this.value(this.skipSpace())
    if (!Number.isNaN(this.skipSpace())) this.fail('unexpected text after the value')
    return { names: this.names, rounded: this.rounded }
  }

  private value(code: number): void {
    if (code === QUOTE) this.string()
    else if (code === OPEN_OBJECT) this.object()
    else if (code === OPEN_ARRAY) this.array()
    else if (code === MINUS || (code >= ZERO && code <= NINE)) this.number()
    else this.word()
  }

  private object(): void {
    this.enter()
    const seen = this.compareNames ? new Set<string>() : undefined
    let code = this.skipSpace()
    if (code !== CLOSE_OBJECT) {
      for (;;) {
        if (code !== QUOTE) this.fail('expected a name in double quotes')
        const start = this.at
        this.string()
        this.names++
        if (seen) this.unseen(seen, start)
        this.expect(COLON, 'expected ":"')
        this.value(this.skipSpace())
        if (this.skipSpace() !== COMMA) break
        this.at++
        code = this.skipSpace()
      }
      this.expect(CLOSE_OBJECT, 'expected "," or "}"')
    } else this.at++
    this.depth--
  }

  private array(): void {
    this.enter()
    let code = this.skipSpace()
    if (code !== CLOSE_ARRAY) {
      for (;;) {
        this.value(code)
        if (this.skipSpace() !== COMMA) break
        this.at++
        code = this.skipSpace()
      }
      this.expect(CLOSE_ARRAY, 'expected "," or "]"')
    } else this.at++
    this.depth--
  }

  private enter(): void {
    if (++this.depth > MAX_DEPTH) this.fail(`nested deeper than ${MAX_DEPTH} levels`)
    this.at++
  }
}
