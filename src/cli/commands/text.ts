// Formats a response of the operator's API for a person: lists as tables, everything else as lines of names and values.
import { isJsonObject, JsonNumber, type JsonValue } from '../../lib/json/read.ts'
import { printable } from '../../lib/text.ts'

type Row = Record<string, unknown>

export const NOTHING = 'Nothing found.'

/**
 * The response as text. A list shows `columns`, by default all of its fields; where a table is wider than the terminal, each
 * row becomes lines of names and values. No value is cut; many currencies are a count. Several lists and objects have their names
 * above them.
 */
export function describeResponse(response: Row, columns?: readonly string[], width = terminalWidth()): string {
  const { pagination, ...rest } = response
  const fields = Object.entries(rest)
  if (!fields.some(([name, value]) => isTable(name, value) || isLarge(value))) return lines(response)
  const inside = fields.filter(([name, value]) => isTable(name, value) || isObject(value) || isEmptyList(value))
  const simple = fields.filter((field) => !inside.includes(field) || isSmall(field[1]))
  const parts = simple.length > 0 ? [lines(Object.fromEntries(simple))] : []
  const large = inside.filter((field) => !simple.includes(field))
  for (const [name, value] of large) {
    const text = isObject(value) ? lines(value) : rowsAsText(value as Row[], columns, width)
    parts.push(large.length === 1 && !isObject(value) ? text : `${name}:\n${text}`)
  }
  return [...parts, ...(isObject(pagination) ? further(pagination) : [])].join('\n\n')
}

const rowsAsText = (rows: Row[], columns: readonly string[] | undefined, width: number) =>
  rows.length > 0 ? table(rows, columns, width) : NOTHING

/** An object that fits into one line, such as a period. */
const isSmall = (value: unknown) => isObject(value) && Object.values(value).every(isScalar) && cell(value).length <= 40
const isLarge = (value: unknown) => isObject(value) && !isSmall(value)
const isScalar = (value: unknown) => value === null || typeof value !== 'object' || value instanceof JsonNumber
const isEmptyList = (value: unknown) => Array.isArray(value) && value.length === 0

/** Unlimited in a pipe or a file. */
const terminalWidth = () => process.stdout.columns ?? Number.POSITIVE_INFINITY

function further({ next_cursor }: Row): string[] {
  return next_cursor === undefined ? [] : [`There are more: --cursor ${String(next_cursor)}`]
}

function lines(object: Row): string {
  const width = Math.max(0, ...Object.keys(object).map((name) => name.length))
  return Object.entries(object)
    .map(([name, value]) => `${name.padEnd(width)}  ${showField(name, value, width)}`)
    .join('\n')
}

function showField(name: string, value: unknown, width: number): string {
  if (isSmall(value)) return cell(value) || '-'
  return counted(name, value) ?? showLong(value, width)
}

/** All currencies of a provider would fill the terminal; --json lists them. */
const counted = (name: string, value: unknown) =>
  name === 'currencies' && isTexts(value) && value.length > MAX_SHOWN ? `${value.length} currencies` : undefined
// As on the dashboard's page of merchant accounts.
const MAX_SHOWN = 8

/** A table, or blocks of lines where it does not fit into `width`. */
export function table(rows: Row[], columns: readonly string[] = Object.keys(rows[0]!), width = terminalWidth()) {
  const cells = [[...columns], ...rows.map((row) => columns.map((name) => counted(name, row[name]) ?? cell(row[name])))]
  const widths = columns.map((_name, n) => Math.max(...cells.map((row) => row[n]!.length)))
  // Details at the end of a line may be wrapped by the terminal.
  const measured = rows.some((row) => isObject(row[columns.at(-1)!])) ? widths.slice(0, -1) : widths
  if (measured.reduce((sum, one) => sum + one + GAP.length, 0) - GAP.length > width)
    return rows.map((row) => lines(Object.fromEntries(columns.map((name) => [name, row[name]])))).join('\n\n')
  const line = (row: string[]) => row.map((text, n) => text.padEnd(widths[n]!)).join(GAP)
  return cells.map((row) => line(row).trimEnd()).join('\n')
}

const GAP = '  '

/** Of an object, the fields that are known. */
function cell(value: unknown): string {
  if (isObject(value)) {
    const known = Object.entries(value).filter(([, one]) => one !== null && one !== '')
    return known.map(([name, one]) => `${name}=${show(one)}`).join(' ')
  }
  return show(value)
}

function show(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  if (value instanceof JsonNumber) return value.text
  if (isTexts(value)) return oneLine(value.join(', '))
  return oneLine(typeof value === 'object' ? JSON.stringify(value) : String(value))
}

/** A line break in a value would look like the end of its row. */
const oneLine = (text: string) => printable(text).replaceAll('\n', '\\n').replaceAll('\t', '\\t')

/** Sentences in a list have a line each, below one another. */
function showLong(value: unknown, indent: number): string {
  return isTexts(value) && value.some((text) => text.includes(' '))
    ? value.map(oneLine).join(`\n${' '.repeat(indent)}${GAP}`)
    : show(value)
}

const isTexts = (value: unknown): value is string[] =>
  Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string')

const isObject = (value: unknown): value is Row => isJsonObject(value as JsonValue)
// An empty list is shown as a list of rows only under these names; an endpoint's kinds are not rows.
const LISTS = ['data', 'results', 'timeline']
const isTable = (name: string, value: unknown): value is Row[] =>
  Array.isArray(value) && (value.length > 0 ? value.every(isObject) : LISTS.includes(name))
