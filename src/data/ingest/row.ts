// Turns a line into a row for COPY: the kind of record it is, and the text of its columns.

import {
  BadLine,
  eachField,
  type Fields,
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
import { COPY_NULL, copyText } from '../../lib/pg/copy-text.ts'
import { fold, shorten } from '../../lib/text.ts'

export interface Row {
  kind: Kind
  /** The columns as `columnsOf` names them, each followed by a tab. */
  text: string
}

/** Reads a line exactly, or throws a `BadLine` whose message is complete. */
export function readRow(line: string, reading: Reading): Row {
  const value = parse(line)
  if (!isJsonObject(value)) throw new BadLine('a line must be an object with "record" and "data"', 'invalid_record')
  const { record, data } = value
  const kind = typeof record === 'string' ? BY_NAME.get(record) : undefined
  if (kind === undefined) {
    const got = typeof record === 'string' ? `, got ${quoted(record)}` : ''
    throw new BadLine(`"record" must be one of ${[...BY_NAME.keys()].join(', ')}${got}`, 'unknown_record')
  }
  const unknown = Object.keys(value).find((name) => name !== 'record' && name !== 'data')
  if (unknown !== undefined)
    throw new BadLine(`unknown property ${quoted(unknown)} beside "record" and "data"`, 'invalid_record')
  if (data === undefined) throw new BadLine('"data" is missing', 'invalid_record')
  return { kind, text: placed(kind.name, () => copyFields(kind.fields, data, reading)) }
}

/** The columns of a kind in the order of its rows. */
export function columnsOf({ fields }: Kind): { name: string; json: boolean }[] {
  return columns(fields, '')
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

function copyFields(fields: Fields, value: JsonValue, reading: Reading): string {
  let row = ''
  eachField(fields, value, (_, type, given, siblings) => {
    if (type.fields) {
      row += copyFields(type.fields, given, reading)
      return
    }
    const stored = given === null ? type.absent : type.read(given, reading, siblings)
    row += copyValue(stored)
    if (type.folded) row += copyValue(stored && fold(stored as string))
  })
  return row
}

function copyValue(stored: Stored | undefined): string {
  if (typeof stored === 'string') return `${copyText(stored)}\t`
  return stored === null || stored === undefined ? `${COPY_NULL}\t` : `${stored}\t`
}

function columns(fields: Fields, prefix: string): { name: string; json: boolean }[] {
  return fields.flatMap(({ name, type }) => {
    if (type.fields) return columns(type.fields, `${prefix}${name}_`)
    const column = { name: `${prefix}${name}`, json: type.json === true }
    return type.folded ? [column, { name: `${prefix}${name}_folded`, json: false }] : [column]
  })
}
