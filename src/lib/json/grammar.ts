// Validates a JSON text by the grammar of RFC 8259 and further limits, without building values.
import { shorten } from '../text.ts'

/** The message has the position and the mistake, never a value, which may be personal. It may have names of properties. */
export class JsonError extends Error {}

/** A number that is well-formed, but beyond what a double can hold: `1e400`, `1e-400`. */
export class NumberRangeError extends JsonError {
  /** Where the number begins and ends in the text. */
  readonly start: number
  readonly end: number
  /** The rule that it breaks, as the phrase after the field's name. */
  readonly rule: string

  constructor(text: string, start: number, end: number) {
    super(`${place(text, start)}: a number out of range`)
    this.start = start
    this.end = end
    const hasExponent = /e/i.test(text.slice(start, end))
    this.rule = `must be ${hasExponent ? 'written without an exponent' : 'within the range of a double'}`
  }
}

/** The number of names in the text, and the positions of numbers that JavaScript would write differently. */
export type Survey = { names: number; oddNumbers: { start: number; end: number }[] }

const MAX_DEPTH = 32
const MAX_NUMBER_LENGTH = 1000
const MAX_QUOTED_NAME = 64

const TAB = 0x09
const LINE_FEED = 0x0a
const CARRIAGE_RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const MINUS = 0x2d
const POINT = 0x2e
const ZERO = 0x30
const NINE = 0x39
const COLON = 0x3a
const CAPITAL_E = 0x45
const OPEN_ARRAY = 0x5b
const BACKSLASH = 0x5c
const CLOSE_ARRAY = 0x5d
const SMALL_E = 0x65
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d
const BYTE_ORDER_MARK = 0xfeff

const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const LOW_SURROGATE = /\\u[dD][c-fC-F][0-9a-fA-F]{2}/y
const WORDS = ['true', 'false', 'null']

/** Throws a `JsonError` at the first thing that is wrong. Expects a well-formed string. */
export function surveyJson(text: string): Survey {
  return new Walk(text).run()
}

/** Throws a `JsonError` for a name that appears twice in one object; slower than the survey. */
export function refuseDuplicateNames(text: string): void {
  new Walk(text, true).run()
}

/** Where in the text an index is: `line 2, column 5`, counted in characters; without the line if there is only one. */
export function place(text: string, index: number): string {
  const before = text.slice(0, index)
  const lineStart = before.lastIndexOf('\n') + 1
  const column = `column ${[...before.slice(lineStart)].length + 1}`
  return text.includes('\n') ? `line ${before.split('\n').length}, ${column}` : column
}

class Walk {
  private readonly text: string
  private readonly compareNames: boolean
  private at = 0
  private depth = 0
  private names = 0
  private readonly oddNumbers: Survey['oddNumbers'] = []

  constructor(text: string, compareNames = false) {
    this.text = text
    this.compareNames = compareNames
  }

  run(): Survey {
    if (this.text.charCodeAt(0) === BYTE_ORDER_MARK) this.fail('a byte order mark is not allowed')
    this.value(this.skipSpace())
    this.skipSpace()
    if (this.at < this.text.length) this.fail('unexpected text after the value')
    return { names: this.names, oddNumbers: this.oddNumbers }
  }

  private value(code: number): void {
    if (code === QUOTE) this.string()
    else if (code === OPEN_OBJECT) this.object()
    else if (code === OPEN_ARRAY) this.array()
    else if ((code >= ZERO && code <= NINE) || code === MINUS) this.number()
    else this.word()
  }

  private object(): void {
    this.open()
    if (this.skipSpace() !== CLOSE_OBJECT) this.members()
    this.close()
  }

  /** Stops at the closing brace. */
  private members(): void {
    const seen = this.compareNames ? new Set<string>() : undefined
    for (;;) {
      const start = this.at
      if (this.text.charCodeAt(start) !== QUOTE) this.fail('expected a name in double quotes')
      this.string()
      this.names++
      if (seen) this.refuseSeen(seen, start)
      if (this.skipSpace() !== COLON) this.fail('expected ":"')
      this.at++
      this.value(this.skipSpace())
      const code = this.skipSpace()
      if (code === CLOSE_OBJECT) break
      if (code !== COMMA) this.fail('expected "," or "}"')
      this.at++
      this.skipSpace()
    }
  }

  private array(): void {
    this.open()
    if (this.skipSpace() !== CLOSE_ARRAY) this.items()
    this.close()
  }

  /** Stops at the closing bracket. */
  private items(): void {
    for (;;) {
      this.value(this.skipSpace())
      const code = this.skipSpace()
      if (code === CLOSE_ARRAY) break
      if (code !== COMMA) this.fail('expected "," or "]"')
      this.at++
    }
  }

  private string(): void {
    const { text } = this
    let at = this.at + 1
    for (;;) {
      const code = text.charCodeAt(at)
      if (code === QUOTE) break
      if (code === BACKSLASH) at = this.escape(at)
      else if (code >= SPACE) at++
      else this.fail(at < text.length ? 'control character in a string' : 'the text ends within a string', at)
    }
    this.at = at + 1
  }

  /** Returns the index behind the escape, or behind both halves of an escaped surrogate pair. */
  private escape(at: number): number {
    const { text } = this
    if (!matchAt(ESCAPE, text, at)) this.fail('invalid escape in a string', at)
    if (text[at + 1] !== 'u') return at + 2
    const unit = Number.parseInt(text.slice(at + 2, at + 6), 16)
    if (unit === 0) this.fail('the character U+0000 is not allowed', at)
    if (unit < 0xd800 || unit > 0xdfff) return at + 6
    if (unit > 0xdbff || !matchAt(LOW_SURROGATE, text, at + 6)) this.fail('unpaired surrogate', at)
    return at + 12
  }

  private number(): void {
    const { text } = this
    const start = this.at
    let at = start
    let code = text.charCodeAt(at)
    while (code >= ZERO && code <= NINE) code = text.charCodeAt(++at)
    // Nearly every number is a short integer, which cannot lose digits.
    const more = code === POINT || code === SMALL_E || code === CAPITAL_E
    const padded = text.charCodeAt(start) === ZERO && at - start > 1
    if (at === start || at - start > 15 || more || padded) this.unusualNumber()
    else this.at = at
  }

  private unusualNumber(): void {
    const digits = matchAt(NUMBER, this.text, this.at)
    if (!digits) this.fail('malformed number')
    if (digits.length > MAX_NUMBER_LENGTH) this.fail(`a number of more than ${MAX_NUMBER_LENGTH} characters`)
    const value = Number(digits)
    // A number beyond a double is beyond PostgreSQL's numeric, too, or nearly so; 0e99999 would pass as a zero.
    const vanished = value === 0 && /^[-0.]*[1-9]/.test(digits)
    if (!Number.isFinite(value) || vanished || /[eE][+-]?[0-9]{5}/.test(digits))
      throw new NumberRangeError(this.text, this.at, this.at + digits.length)
    const start = this.at
    this.at += digits.length
    if (String(value) !== digits) this.oddNumbers.push({ start, end: this.at })
    // A leading zero ends the number early.
    const code = this.text.charCodeAt(this.at)
    if ((code >= ZERO && code <= NINE) || code === POINT) this.fail('malformed number')
  }

  private word(): void {
    const word = WORDS.find((candidate) => this.text.startsWith(candidate, this.at))
    if (!word) this.fail(this.at < this.text.length ? 'expected a value' : 'the text ends where a value is expected')
    this.at += word.length
  }

  private open(): void {
    if (++this.depth > MAX_DEPTH) this.fail(`nested deeper than ${MAX_DEPTH} levels`)
    this.at++
  }

  private close(): void {
    this.depth--
    this.at++
  }

  /** Returns the code of the next character, not a number at the end. */
  private skipSpace(): number {
    let code = this.text.charCodeAt(this.at)
    while (code <= SPACE && (code === SPACE || code === LINE_FEED || code === CARRIAGE_RETURN || code === TAB)) {
      code = this.text.charCodeAt(++this.at)
    }
    return code
  }

  private refuseSeen(seen: Set<string>, start: number): void {
    const name = JSON.parse(this.text.slice(start, this.at)) as string
    if (seen.has(name))
      this.fail(`the name ${JSON.stringify(shorten(name, MAX_QUOTED_NAME))} appears twice in one object`, start)
    seen.add(name)
  }

  private fail(problem: string, at = this.at): never {
    throw new JsonError(`${place(this.text, at)}: ${problem}`)
  }
}

function matchAt(pattern: RegExp, text: string, index: number): string | undefined {
  pattern.lastIndex = index
  return pattern.exec(text)?.[0]
}
