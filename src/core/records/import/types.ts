// The types of import fields.
import { isCardNumber } from '../../../lib/card-data.ts'
import { isUuid } from '../../../lib/ids.ts'
import { isJsonObject, type JsonValue } from '../../../lib/json/read.ts'
import { countCharacters, hasControlCharacters, isId, shorten } from '../../../lib/text.ts'
import { readInstant, TimeError } from '../../../lib/time.ts'
import { BadLine, eachItem, type Type } from './fields.ts'

/** Any text; only the length of a line limits it. */
export const text: Type = { read: readText }

/** An indexed text of at most `max` Unicode characters, because PostgreSQL limits the size of an index entry. */
export function label(max = 256): Type {
  return {
    read(value) {
      const given = readText(value)
      if (countCharacters(given) > max) throw new BadLine(` must have at most ${max} characters`)
      return given
    },
  }
}

/** The client's id of its user, by the rules of charges: a customer with another id could not be charged. */
export const externalId: Type = {
  read(value) {
    const given = readText(value)
    if (given === '' || countCharacters(given) > 256 || hasControlCharacters(given))
      throw new BadLine(' must have 1 to 256 characters and no control characters')
    return given
  },
}

/** The provider's token of a saved card. */
export const cardToken: Type = {
  read(value) {
    const given = readText(value)
    if (isCardNumber(given)) throw new BadLine(" must be the payment provider's token, not a card number")
    return given
  },
}

export const id: Type = {
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

/** A whole number, written without point and exponent (`1.0` and `1e3` are refused); at most `MAX_INT` by default. */
export function integer(min: number, max = MAX_INT): Type {
  return {
    read(value) {
      // The exact reader returns a plain number only if JavaScript writes it with the same text.
      if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max)
        throw new BadLine(` must be a whole number from ${min} to ${max}`)
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

/** Any object, stored unchanged down to the digits of its numbers. */
export const object: Type = {
  json: true,
  read(value) {
    if (!isJsonObject(value)) throw new BadLine(' must be an object')
    return JSON.stringify(value)
  },
}

/** An array of strings, each as `item` returns it. */
export function texts(item: (text: string) => string = (given) => given): Type {
  return {
    json: true,
    absent: '[]',
    read: (value) => JSON.stringify(eachItem(value, (given) => item(readText(given)))),
  }
}

/** The answer to a form element: a string, an array of strings, or null. */
export const answer: Type = {
  json: true,
  absent: 'null',
  read(value) {
    if (typeof value === 'string') return JSON.stringify(value)
    if (!Array.isArray(value)) throw new BadLine(' must be a string, an array of strings or null')
    return JSON.stringify(eachItem(value, readText))
  },
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
