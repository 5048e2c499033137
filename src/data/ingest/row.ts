// Turns a line into a row: the kind of record it is, and the values of its columns.

import {
  BadLine,
  eachField,
  type Fields,
  mayBeAbsent,
  placed,
  quoted,
  type Reading,
  type Stored,
} from '../../core/records/import/fields.ts'
import type { Kind } from '../../core/records/record.ts'
import { KINDS } from '../../core/records/records.ts'
import {
  isJsonObject,
  JsonError,
  type JsonValue,
  NumberRangeError,
  pathOfNumber,
  readJson,
} from '../../lib/json/read.ts'
import { fold, shorten } from '../../lib/text.ts'

export interface Row {
  kind: Kind
  /** The values of the columns, as `columnsOf` names them. */
  values: Stored[]
  /** A `1` for each column that the line has, else `0`; null if the line replaces the record. */
  given: string | null
  /** Whether a required field is absent, so that the record must be stored already. */
  needsStored: boolean
}

/** Reads a line exactly, or throws a `BadLine` whose message is complete. */
export function readRow(line: string, reading: Reading): Row {
  return readRecord(parse(line), reading)
}

/** The same for a line that is parsed already. */
export function readRecord(value: JsonValue, reading: Reading): Row {
  if (!isJsonObject(value)) throw new BadLine('a line must be an object with "record" and "data"', 'invalid_record')
  const { record, data } = value
  const kind = typeof record === 'string' ? BY_NAME.get(record) : undefined
  if (kind === undefined) {
    const got = typeof record === 'string' ? `, got ${quoted(record)}` : ''
    throw new BadLine(`"record" must be one of ${[...BY_NAME.keys()].join(', ')}${got}`, 'unknown_record')
  }
  const unknown = Object.keys(value).find((name) => name !== 'record' && name !== 'data')
  if (unknown !== undefined)
    throw new BadLine(`unknown property ${quoted(unknown)} next to "record" and "data"`, 'invalid_record')
  if (data === undefined) throw new BadLine('"data" is missing', 'invalid_record')
  // The reference of a payment to its customer and order is checked before the stored row is read.
  const isMerged = reading.merge === true && kind.name !== 'payment'
  const row: Row = { kind, values: [], given: null, needsStored: false }
  const given: string[] = []
  placed(kind.name, () => readFields(isMerged ? mergedFields(kind) : kind.fields, data, reading, row.values, given))
  if (kind.derived) derive(kind, kind.derived, row.values, given)
  if (isMerged) {
    row.given = given.join('')
    row.needsStored = requiredColumns(kind).some(({ place }) => given[place] === '0')
  }
  return row
}

/** Fills columns that follow from others where the line has no value of them. */
function derive(kind: Kind, derived: NonNullable<Kind['derived']>, values: Stored[], given: string[]): void {
  const places = cached(PLACES, kind, () => new Map(columnsOf(kind).map(({ name }, place) => [name, place])))
  const found = derived((name) => values[places.get(name)!]!)
  for (const name in found) {
    const value = found[name]!
    const place = places.get(name)!
    if (value === null || given[place] === '1') continue
    values[place] = value
    given[place] = '1'
  }
}

/** The columns of a kind in the order of its rows. */
export function columnsOf(kind: Kind): Column[] {
  return cached(COLUMNS, kind, () => columns(kind.fields, '', ''))
}

export interface Column {
  name: string
  /** Its place in a line. */
  path: string
  json: boolean
  /** Whether it stores null as JSON. */
  nullAsJson: boolean
  required: boolean
}

/** The columns that a new record needs, with their places in a row. */
export function requiredColumns(kind: Kind): (Column & { place: number })[] {
  return cached(REQUIRED, kind, () =>
    columnsOf(kind).flatMap((column, place) => (column.required ? [{ ...column, place }] : [])),
  )
}

const COLUMNS = new Map<Kind, Column[]>()
const REQUIRED = new Map<Kind, (Column & { place: number })[]>()
const MERGED = new Map<Kind, Fields>()
const PLACES = new Map<Kind, Map<string, number>>()

/** The fields of a line that changes a record: only those that identify it are required. */
function mergedFields(kind: Kind): Fields {
  const relaxed = (fields: Fields, prefix: string): Fields =>
    fields.map(({ name, type }) => {
      if (type.fields) return { name, type: { ...type, fields: relaxed(type.fields, `${prefix}${name}_`) } }
      return { name, type: kind.key.includes(`${prefix}${name}`) ? type : mayBeAbsent(type) }
    })
  return cached(MERGED, kind, () => relaxed(kind.fields, ''))
}

function cached<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const value = map.get(key) ?? make()
  map.set(key, value)
  return value
}

const BY_NAME: ReadonlyMap<string, Kind> = new Map(KINDS.map((kind) => [kind.name, kind]))
const EXACT = { exact: true }

function parse(line: string): JsonValue {
  try {
    return readJson(line, EXACT)
  } catch (error) {
    if (!(error instanceof JsonError)) throw error
    if (!(error instanceof NumberRangeError)) throw new BadLine(`not JSON: ${error.message}`, 'invalid_json')
    const field = pathOfNumber(line, error)
    throw new BadLine(field ? `${shorten(field, 64)} ${error.rule}` : error.message)
  }
}

function readFields(fields: Fields, value: JsonValue, reading: Reading, values: Stored[], given: string[]): void {
  eachField(fields, value, (name, type, one, siblings) => {
    if (type.fields) return readFields(type.fields, one, reading, values, given)
    const stored = (one === null ? type.absent : type.read(one, reading, siblings)) ?? null
    const isGiven = siblings[name] === undefined ? '0' : '1'
    values.push(stored)
    given.push(isGiven)
    if (!type.folded) return
    values.push(stored && fold(stored as string))
    given.push(isGiven)
  })
}

function columns(fields: Fields, prefix: string, path: string): Column[] {
  return fields.flatMap(({ name, type }) => {
    if (type.fields) return columns(type.fields, `${prefix}${name}_`, `${path}${name}.`)
    const column = {
      name: type.column ?? `${prefix}${name}`,
      path: `${path}${name}`,
      json: type.json === true,
      nullAsJson: type.absent === 'null',
      required: type.required === true,
    }
    return type.folded ? [column, { ...column, name: `${column.name}_folded`, required: false }] : [column]
  })
}
