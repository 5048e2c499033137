// The types of import fields.
import { isCardNumber } from '../../../lib/card-data.ts'
import { isUuid } from '../../../lib/ids.ts'
import { isJsonObject, type JsonValue } from '../../../lib/json/read.ts'
import { bytesText, countCharacters, fitsBytes, hasControlCharacters, isId, shorten } from '../../../lib/text.ts'
import { readInstant, TimeError } from '../../../lib/time.ts'
import { BadLine, eachItem, type Type } from './fields.ts'

/**
 * An indexed text, or a dimension of figures: a code, an address, the name of something at another service. PostgreSQL limits
 * the size of an index entry, and an entry may have several of these.
 */
export const label = textOf(256)

/** A label that names something, such as a payment provider: a blank text would name nothing. */
export const filledLabel: Type = {
  ...label,
  read(value, reading, siblings) {
    const given = label.read(value, reading, siblings) as string
    if (given.trim() === '') throw new BadLine(' must not be empty')
    return given
  },
}

/**
 * An e-mail address, without the blanks around it that forms send: with them it would match no search and no other profile of
 * the person. Blanks alone, of a form that was left empty, are no address.
 */
export const email: Type = {
  ...label,
  read(value, reading, siblings) {
    const given = label.read(value, reading, siblings) as string
    return given.trim() || null
  },
}

/** A country: its code in capitals, so that `de` of one program and `DE` of another are one country in filters and figures. */
export const country: Type = {
  ...label,
  read(value, reading, siblings) {
    const given = label.read(value, reading, siblings) as string
    const code = given.trim()
    return /^[a-z]{2}$/i.test(code) ? code.toUpperCase() : given
  },
}

/** The name of something, for people. */
export const name: Type = { ...textOf(500), cut: true }

/** What people or programs wrote. */
export const freeText: Type = { ...textOf(4000), cut: true }

/** The client's id of its user, by the rules of charges: a customer with another id could not be charged. */
export const externalId: Type = {
  read(value) {
    const given = readText(value)
    if (!isExternalId(given)) throw new BadLine(` must have ${EXTERNAL_ID_RULE}`)
    return given
  },
}

export const EXTERNAL_ID_RULE = '1 to 256 characters and no control characters'
export const isExternalId = (text: string): boolean =>
  text !== '' && countCharacters(text) <= 256 && !hasControlCharacters(text)

/** The provider's token of a saved card. */
export const cardToken: Type = {
  maxBytes: label.maxBytes!,
  read(value, reading, siblings) {
    const given = label.read(value, reading, siblings) as string
    // Programs that write files from tables write an empty text for none. As a token it would be charged, and end in `cancelled`.
    if (given.trim() === '') throw new BadLine(' must not be empty: it is null if the card is not saved')
    if (isCardNumber(given)) throw new BadLine(" must be the payment provider's token, not a card number")
    return given
  },
}

export const id: Type = {
  maxBytes: 64,
  read(value) {
    if (typeof value !== 'string' || !isId(value)) throw new BadLine(' must be 1 to 64 visible ASCII characters')
    return value
  },
}

export const uuid: Type = {
  read(value) {
    if (typeof value !== 'string' || !isUuid(value)) throw new BadLine(' must be a UUID')
    return value.toLowerCase()
  },
}

/** A string of exactly `count` digits. */
export function digits(count: number): Type {
  const pattern = new RegExp(`^[0-9]{${count}}$`)
  return {
    read(value) {
      if (typeof value !== 'string' || !pattern.test(value)) throw new BadLine(` must be a string of ${count} digits`)
      return value
    },
  }
}

export function oneOf(...values: string[]): Type {
  return {
    read(value) {
      if (typeof value === 'string' && values.includes(value)) return value
      const given = typeof value === 'string' ? `, got ${JSON.stringify(shorten(value, 32))}` : ''
      throw new BadLine(` must be one of ${values.join(', ')}${given}`)
    },
  }
}

export const boolean: Type = {
  absent: false,
  read(value) {
    if (typeof value !== 'boolean') throw new BadLine(' must be true or false')
    return value
  },
}

const MAX_INT = 2_147_483_647

/** A whole number, written without point and exponent (`1.0` and `1e3` are refused); at most `MAX_INT`. */
export function integer(min: number): Type {
  return {
    read(value) {
      // The exact reader returns a plain number only if JavaScript writes it with the same text.
      if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > MAX_INT)
        throw new BadLine(` must be a whole number from ${min} to ${MAX_INT}`)
      return value
    },
  }
}

export const instant: Type = { read: readTime }

/** A time in the past; up to 5 minutes ahead are allowed because clocks differ. */
export const past: Type = {
  read(value, { latest }) {
    const time = readTime(value)
    if (time > latest) throw new BadLine(" is more than 5 minutes ahead of the database's clock")
    return time
  },
}

// The most bytes of an object, a list, or the value of a reply, as compact JSON.
const MAX_JSON_BYTES = 64 * 1024

/** Any object, stored unchanged down to the digits of its numbers. */
export const object: Type = {
  json: true,
  maxBytes: MAX_JSON_BYTES,
  read(value) {
    if (!isJsonObject(value)) throw new BadLine(' must be an object')
    return json(value)
  },
}

/** An array of strings, each as `item` returns it. */
export function texts(item: (text: string) => string = (given) => within(given, label.maxBytes!)): Type {
  return {
    json: true,
    absent: '[]',
    maxBytes: MAX_JSON_BYTES,
    read: (value) => json(eachItem(value, (given) => item(readText(given)))),
  }
}

/** The answer to a form element: a string, an array of strings, or null. */
export const answer: Type = {
  json: true,
  absent: 'null',
  maxBytes: MAX_JSON_BYTES,
  read(value) {
    if (typeof value === 'string') return JSON.stringify(within(value, MAX_JSON_BYTES))
    if (!Array.isArray(value)) throw new BadLine(' must be a string, an array of strings or null')
    return json(eachItem(value, readText))
  },
}

const json = (value: unknown) => within(JSON.stringify(value), MAX_JSON_BYTES, ' as JSON')

/** A text of at most so many bytes of UTF-8. */
function textOf(maxBytes: number): Type {
  return { maxBytes, read: (value) => within(readText(value), maxBytes) }
}

function within(text: string, maxBytes: number, form = ''): string {
  if (!fitsBytes(text, maxBytes)) throw new BadLine(` must have at most ${bytesText(maxBytes)}${form}`)
  return text
}

export function readText(value: JsonValue): string {
  if (typeof value !== 'string') throw new BadLine(' must be a string')
  return value
}

// A cache of one: many lines contain the same time twice or more.
let lastGiven: string | undefined
let lastTime = ''

function readTime(value: JsonValue): string {
  const given = readText(value)
  if (given === lastGiven) return lastTime
  try {
    lastTime = readInstant(given)
    lastGiven = given
    return lastTime
  } catch (error) {
    throw error instanceof TimeError ? new BadLine(` ${error.message}`) : error
  }
}
