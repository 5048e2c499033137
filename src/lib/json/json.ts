// A response in two forms: JSON text with every digit of its numbers, and objects for code of the same process.
import { JsonNumber } from './read.ts'

/** The text is written, or the objects are made, only when one of them is wanted. */
export class Json<T> {
  readonly #text: () => string
  readonly #value: () => T

  constructor(text: () => string, value: () => T) {
    this.#text = text
    this.#value = value
  }

  text(): string {
    return this.#text()
  }

  /** What `JSON.parse` would make of the text. */
  value(): T {
    return this.#value()
  }
}

/** An object whose fields, at any depth, may be exact numbers; those of itself may be other `Json`. */
export function jsonOf(fields: object): Json<object> {
  return new Json(
    () => {
      const texts = givenOf(fields).map(([name, value]) => [
        name,
        value instanceof Json ? value.text() : JSON.stringify(value),
      ])
      return `{${texts.map(([name, text]) => `${JSON.stringify(name)}:${text}`).join(',')}}`
    },
    () => plain(fields) as object,
  )
}

/** The value with `number`s in place of exact numbers. */
function plain(value: unknown): unknown {
  if (value instanceof Json) return value.value()
  if (value instanceof JsonNumber) return Number(value.text)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(givenOf(value).map(([name, inner]) => [name, plain(inner)]))
}

const givenOf = (value: object) => Object.entries(value).filter(([, inner]) => inner !== undefined)
