// Reads a row as an object with the values that the JSON of `row-writer.ts` has.
import { instantFromPg } from '../time.ts'
import type { Fields } from './fields.ts'

type Text = string | null

/** The object of these fields, whose columns are the first of `columns`, in their order. */
export function readRow(fields: Fields, columns: readonly Text[]): object {
  let next = 0
  const readObject = (inner: Fields): object =>
    Object.fromEntries(Object.entries(inner).map(([name, field]) => [name, readField(field)]))
  function readField(field: Fields[string]): unknown {
    if (field.kind !== 'object') return readText(field.kind, columns[next++]!)
    const isNull = field.nullable && columns[next] === null
    const value = readObject(field.fields)
    return isNull ? null : value
  }
  return readObject(fields)
}

function readText(kind: Exclude<Fields[string]['kind'], 'object'>, text: Text): unknown {
  if (text === null || kind === 'text') return text
  if (kind === 'instant') return instantFromPg(text)
  if (kind === 'boolean') return text === 't'
  if (kind === 'json') return JSON.parse(text)
  return Number(text)
}
