// One declaration of a record → its select list, its JSON Schema, its type, and what turns a row into JSON or an object.
import { JsonBytes } from '../json/buffer.ts'
import { Json } from '../json/json.ts'
import { packRow, type Row, type TakeRow } from '../pg/row-bytes.ts'
import type { NamedRow } from '../pg/types.ts'
import type { FieldOptions, Fields, Leaf, LeafOf, Nested, OrNull, RecordOf } from './fields.ts'
import { objectSchema } from './record-schema.ts'
import { readRow } from './row-reader.ts'
import { type Kind, rowWriter, type Step, type WriteRow } from './row-writer.ts'
import type { Schema } from './schema.ts'

/** `T` is the object that a row is. */
export interface Shape<T = unknown> {
  name: string
  /** The select list, in the order that rows are written. */
  columns: string
  schema: Schema<T>
  /** The row as an object; its columns begin at `offset`. */
  read(row: Row, offset?: number): T
  /** The rows in two forms. */
  list(rows: readonly Row[], offset?: number): Json<T[]>
  /** A row in two forms. */
  one(row: Row): Json<T>
  /** The row's JSON; its columns begin at `offset`. */
  write(row: Row, offset?: number): Buffer
  /** The select list for named rows: each column has a unique name, so that other columns can be selected as well. */
  namedColumns: string
  /** The JSON of a row that was read with `namedColumns`. */
  writeNamed(row: NamedRow): Buffer
  /** The same as an object. */
  readNamed(row: NamedRow): T
  /** Writes the rows, separated by commas, between two texts: `[` and `]`, or more. */
  writeList(rows: readonly Row[], before: string, after: string, offset?: number): JsonBytes
  /** The same for rows that arrive one by one. */
  beginList(before: string, offset?: number): RowList
}

export interface RowList {
  add: TakeRow
  end(after: string): JsonBytes
}

const leaf =
  <K extends Kind>(kind: K) =>
  <const E extends string = never, N extends boolean = false, J = unknown>(
    description: string,
    options?: FieldOptions<E, N, J>,
  ): Leaf<LeafOf<K, NoInfer<E>, NoInfer<N>, NoInfer<J>>> => ({
    kind,
    description,
    ...options,
  })

export const text = leaf('text')
/** A date-time, written in UTC with six fraction digits. */
export const instant = leaf('instant')
export const integer = leaf('integer')
/** A number of arbitrary precision, written with all the digits the column has. */
export const decimal = leaf('decimal')
export const boolean = leaf('boolean')
/** A column that contains JSON. */
export const json = leaf('json')

/** A nested object. When `nullable`, it is null where its first field is null. Shapes that share it give it a `name`. */
export function object<F extends Fields, N extends boolean = false>(
  description: string,
  fields: F,
  { nullable, name }: { nullable?: N; name?: string } = {},
): Nested<RecordOf<F> | OrNull<NoInfer<N>>> {
  return { kind: 'object', description, fields, nullable: nullable === true, name }
}

/** Declares a record. `alias` is the table alias whose columns the fields are, unless they bring their own SQL. */
export function shape<F extends Fields>(name: string, alias: string, fields: F): Shape<RecordOf<F>> {
  const { columns, steps } = compile(fields, alias)
  const write = rowWriter(steps)
  const writeRow = (row: Row, offset = 0) => {
    const json = new JsonBytes()
    write(json, row, offset)
    const written = Buffer.from(json.written())
    json.free()
    return written
  }
  const read = (row: Row, offset = 0) => readRow(fields, row.texts().slice(offset)) as RecordOf<F>
  const writeList = (rows: readonly Row[], before: string, after: string, offset = 0) => {
    const list = beginList(write, before, offset)
    for (const row of rows) list.add(row)
    return list.end(after)
  }
  return {
    name,
    columns: columns.join(', '),
    schema: { title: name, ...objectSchema(fields) },
    read,
    list: (rows, offset = 0) =>
      new Json(
        () => textOf(writeList(rows, '[', ']', offset)),
        () => rows.map((row) => read(row, offset)),
      ),
    one: (row) =>
      new Json(
        () => writeRow(row).toString(),
        () => read(row),
      ),
    write: writeRow,
    namedColumns: columns.map((column, n) => `${column} as ${nameOf(n)}`).join(', '),
    writeNamed: (row) => writeRow(packRow(columns.map((_, n) => row[nameOf(n)] ?? null))),
    readNamed: (row) =>
      readRow(
        fields,
        columns.map((_, n) => row[nameOf(n)] ?? null),
      ) as RecordOf<F>,
    writeList,
    beginList: (before, offset = 0) => beginList(write, before, offset),
  }
}

const nameOf = (column: number) => `c${column}`

function textOf(json: JsonBytes): string {
  const text = json.toString()
  json.free()
  return text
}

function beginList(write: WriteRow, before: string, offset: number): RowList {
  const json = new JsonBytes().raw(before)
  let comma = ''
  return {
    add(row) {
      json.raw(comma)
      comma = ','
      write(json, row, offset)
    },
    end: (after) => json.raw(after),
  }
}

/** The columns of these fields, and the steps that write them. */
function compile(fields: Fields, alias: string): { columns: string[]; steps: Step[] } {
  const columns: string[] = []
  const steps: Step[] = []
  // Consecutive names and braces are joined into one piece.
  let pending = ''
  const prefix = () => {
    const piece = Buffer.from(pending)
    pending = ''
    return piece
  }

  function addObject(inner: Fields): void {
    let mark = '{'
    for (const [name, field] of Object.entries(inner)) {
      pending += `${mark}${JSON.stringify(name)}:`
      mark = ','
      if (field.kind !== 'object') {
        steps.push({ kind: field.kind, prefix: prefix() })
        columns.push(field.sql ?? `${alias}.${name}`)
      } else if (field.nullable) addNullable(field.fields)
      else addObject(field.fields)
    }
    pending += '}'
  }

  function addNullable(inner: Fields): void {
    const opening = { kind: 'object' as const, prefix: prefix(), columns: 0, steps: 0 }
    steps.push(opening)
    const columnsBefore = columns.length
    const stepsBefore = steps.length
    addObject(inner)
    steps.push({ kind: 'end', prefix: prefix() })
    opening.columns = columns.length - columnsBefore
    opening.steps = steps.length - stepsBefore
  }

  addObject(fields)
  steps.push({ kind: 'end', prefix: prefix() })
  return { columns, steps }
}
