// How records are declared: fields by name, each with a type that checks its value and says what is stored of it.
import { isJsonObject, type JsonObject, type JsonValue } from '../lib/json/read.ts'
import { shorten } from '../lib/text.ts'

/**
 * What is wrong with a line. While it travels up to its line, each field and list item on its way puts its place in front
 * of the message, which therefore begins with a space. It repeats ids and words of a fixed list, nothing personal.
 */
export class BadLine extends Error {}

export interface Reading {
  /** The canonical date-time after which nothing can have happened yet. */
  latest: string
}

/** What goes into the database. JSON is a text by now, compact. */
export type Stored = string | number | boolean | null

export interface Type {
  /** Checks a value that is neither absent nor null, or throws a `BadLine`; `siblings` is the object it stands in. */
  read(value: JsonValue, reading: Reading, siblings: JsonObject): Stored
  /** What is stored when the value is absent or null; by default null. */
  absent?: Stored
  required?: boolean
  /** Whether its column is JSON. */
  json?: boolean
  /** Whether a second column, `<name>_folded`, holds the text without the difference of upper and lower case. */
  folded?: boolean
  /** Of a group: its fields, each with a column of its own, `<group>_<field>`. */
  fields?: Fields
}

export type Fields = readonly { readonly name: string; readonly type: Type }[]

/** The fields of a record or of an object in it, read and stored in this order. */
export function fieldsOf(types: { readonly [name: string]: Type }): Fields {
  return Object.entries(types).map(([name, type]) => ({ name, type }))
}

export const required = (type: Type): Type => ({ ...type, required: true })
export const folded = (type: Type): Type => ({ ...type, folded: true })
export const orElse = (absent: Stored, type: Type): Type => ({ ...type, absent })

/** An object whose fields stand beside those of the record. */
export const group = (types: { readonly [name: string]: Type }): Type => ({ fields: fieldsOf(types), read: () => null })

/** Calls `take` for each declared field of an object; what came under no declared name is an error. */
export function eachField(
  fields: Fields,
  value: JsonValue,
  take: (name: string, type: Type, given: JsonValue, siblings: JsonObject) => void,
): void {
  if (!isJsonObject(value)) throw new BadLine(' must be an object')
  let known = 0
  let at = ''
  try {
    for (const { name, type } of fields) {
      const given = value[name]
      at = name
      if (given !== undefined) known++
      if (type.required && (given === undefined || given === null))
        throw new BadLine(given === null ? ' must not be null' : ' is missing')
      take(name, type, given ?? null, value)
    }
  } catch (error) {
    if (error instanceof BadLine) error.message = `.${at}${error.message}`
    throw error
  }
  if (known < Object.keys(value).length) throw new BadLine(` has no field ${quoted(unknownName(fields, value))}`)
}

/** Reads the items of a list; what is wrong with one tells which. */
export function eachItem<T>(value: JsonValue, read: (item: JsonValue) => T): T[] {
  if (!Array.isArray(value)) throw new BadLine(' must be a list')
  return value.map((item, n) => placed(`[${n}]`, () => read(item)))
}

/** Puts a place in front of what is wrong there. */
export function placed<T>(place: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (error instanceof BadLine) error.message = place + error.message
    throw error
  }
}

function unknownName(fields: Fields, value: JsonObject): string {
  return Object.keys(value).find((name) => !fields.some((field) => field.name === name))!
}

/** The name of a property as a message repeats it. */
export function quoted(name: string): string {
  return JSON.stringify(shorten(name, LONGEST_NAME))
}

const LONGEST_NAME = 64
