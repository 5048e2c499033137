// Import fields: by name, each with a type that checks its value and returns what is stored.
import { isJsonObject, type JsonObject, type JsonValue } from '../../../lib/json/read.ts'
import { bytesText, cutToBytes, fitsBytes, shorten } from '../../../lib/text.ts'

/** Why a line is rejected, as a word for programs. A code never changes its meaning. */
export const REJECT_CODES = {
  invalid_json: 'The line is not JSON in UTF-8, or repeats a key.',
  line_too_long: 'The line is longer than 1 MiB.',
  invalid_record: 'The line is not an object with `record` and `data` alone.',
  unknown_record: '`record` is not a kind of record.',
  unknown_field: 'The record has no such field.',
  missing_field: 'A required field is missing or null.',
  invalid_field: 'The value of a field breaks its rule.',
  unknown_reference: 'The record refers to one that does not exist.',
  not_allowed: 'Records of this kind are not accepted here.',
  conflicting_record: 'The record belongs to another project, or contradicts what is stored.',
  refused_by_database: 'The line passes every check, and the database refuses it.',
} as const
export type RejectCode = keyof typeof REJECT_CODES

/**
 * What is wrong with a line. Each field and list item on the way up prefixes its place to the message, which therefore
 * begins with a space. The message repeats ids and words of a fixed list, never personal data.
 */
export class BadLine extends Error {
  readonly code: RejectCode

  constructor(message: string, code: RejectCode = 'invalid_field') {
    super(message)
    this.code = code
  }
}

export interface Reading {
  /** The canonical date-time after which nothing can have happened yet. */
  latest: string
  /** Whether lines have only the fields that change; a field that is absent keeps its value. */
  merge?: boolean
}

/** What goes into the database. JSON values are compact JSON text. */
export type Stored = string | number | boolean | null

export interface Type {
  /** Checks a value that is neither absent nor null, or throws a `BadLine`; `siblings` is the object that contains it. */
  read(value: JsonValue, reading: Reading, siblings: JsonObject): Stored
  /** What is stored when the value is absent or null; by default null. */
  absent?: Stored
  required?: boolean
  /** Whether null is an error, though the field may be absent. */
  notNull?: boolean
  /** The most bytes of UTF-8; missing for values whose form limits them. */
  maxBytes?: number
  /** Whether a text from another service that is too long may be cut; the value of any other field is left out. */
  cut?: true
  /** Whether its column is JSON. */
  json?: boolean
  /** The column, if it does not have the name of the field. */
  column?: string
  /** Whether a second column, `<name>_folded`, holds the case-folded text. */
  folded?: boolean
  /** Of a group: its fields, each with its column, `<group>_<field>`. */
  fields?: Fields
}

export type Fields = readonly { readonly name: string; readonly type: Type }[]

/** The fields of a record or of an object in it, read and stored in this order. */
export function fieldsOf(types: { readonly [name: string]: Type }): Fields {
  return Object.entries(types).map(([name, type]) => ({ name, type }))
}

export const required = (type: Type): Type => ({ ...type, required: true })
/** A field that may be absent from a line that changes a stored record. */
export const mayBeAbsent = ({ required, ...type }: Type): Type => (required ? { ...type, notNull: true } : type)
export const folded = (type: Type): Type => ({ ...type, folded: true })
export const orElse = (absent: Stored, type: Type): Type => ({ ...type, absent })

/** An object whose fields have separate columns in the record's row. */
export const group = (types: { readonly [name: string]: Type }): Type => ({ fields: fieldsOf(types), read: () => null })

/** The description of a field together with the limit of its length. */
export function limited<S extends { description?: string }>(shown: S, { maxBytes, json, fields }: Type): S {
  const inner = (shown as { fields?: Record<string, object> }).fields
  if (fields && inner) {
    const types = new Map(fields.map(({ name, type }) => [name, type]))
    const limitedInner = Object.entries(inner).map(([name, one]) => [name, limited(one, types.get(name)!)])
    return { ...shown, fields: Object.fromEntries(limitedInner) }
  }
  if (maxBytes === undefined) return shown
  return { ...shown, description: `${shown.description} At most ${bytesText(maxBytes)}${json ? ' as JSON' : ''}.` }
}

/**
 * A text of another service in the form that its field takes: unchanged if it fits, cut if the field allows it, else null. What a
 * service once returned does not get shorter, so that rejecting it would leave out the record for good.
 */
export function fitted(text: string, { maxBytes, cut }: Type): string | null {
  if (maxBytes === undefined || fitsBytes(text, maxBytes)) return text
  return cut ? cutToBytes(text, maxBytes) : null
}

/** Calls `take` for each declared field of an object; an undeclared name in the object is an error. */
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
      if (given === null ? type.required || type.notNull : type.required && given === undefined)
        throw new BadLine(given === null ? ' must not be null' : ' is missing', 'missing_field')
      take(name, type, given ?? null, value)
    }
  } catch (error) {
    if (error instanceof BadLine) error.message = `.${at}${error.message}`
    throw error
  }
  if (known < Object.keys(value).length) {
    throw new BadLine(` has no field ${quoted(unknownName(fields, value))}`, 'unknown_field')
  }
}

/** Reads the items of a list; an error names the index. */
export function eachItem<T>(value: JsonValue, read: (item: JsonValue) => T): T[] {
  if (!Array.isArray(value)) throw new BadLine(' must be an array')
  return value.map((item, n) => placed(`[${n}]`, () => read(item)))
}

/** Prefixes a place to the message of a `BadLine`. */
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

/** The name of a property as messages show it. */
export function quoted(name: string): string {
  return JSON.stringify(shorten(name, LONGEST_NAME))
}

const LONGEST_NAME = 64
