// Shows an answer of the operator's API to a person: lists as tables, the rest as lines of names and values.

const WIDEST = 48

/** The answer as text; nested objects are told in JSON. */
export function describeAnswer(answer: Record<string, unknown>): string {
  const parts: string[] = []
  const plain = Object.entries(answer).filter(([name, value]) => !isTable(name, value) && !isObject(value))
  if (plain.length > 0) parts.push(lines(Object.fromEntries(plain)))
  for (const [name, value] of Object.entries(answer)) {
    if (isTable(name, value)) parts.push(value.length > 0 ? table(value) : 'There is nothing.')
    else if (isObject(value) && name === 'pagination') parts.push(...further(value))
    else if (isObject(value)) parts.push(lines(value))
  }
  return parts.join('\n\n')
}

function further({ next_cursor }: Record<string, unknown>): string[] {
  return next_cursor === undefined ? [] : [`There are more: --cursor ${String(next_cursor)}`]
}

function lines(object: Record<string, unknown>): string {
  const width = Math.max(...Object.keys(object).map((name) => name.length))
  return Object.entries(object)
    .map(([name, value]) => `${name.padEnd(width)}  ${show(value)}`)
    .join('\n')
}

function table(rows: Record<string, unknown>[]): string {
  const names = Object.keys(rows[0]!)
  const cells = [names, ...rows.map((row) => names.map((name) => cut(show(row[name]))))]
  const widths = names.map((_name, n) => Math.max(...cells.map((row) => row[n]!.length)))
  return cells
    .map((row) =>
      row
        .map((cell, n) => cell.padEnd(widths[n]!))
        .join('  ')
        .trimEnd(),
    )
    .join('\n')
}

function show(value: unknown): string {
  if (value === null || value === undefined || value === '') return '-'
  return typeof value === 'object' ? JSON.stringify(value) : String(value)
}

const cut = (text: string) => (text.length > WIDEST ? `${text.slice(0, WIDEST - 1)}…` : text)
const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
// What a list of none is a list of can be told by its name alone: an endpoint's kinds are no rows.
const LISTS = ['data', 'results', 'timeline']
const isTable = (name: string, value: unknown): value is Record<string, unknown>[] =>
  Array.isArray(value) && (value.length > 0 ? value.every(isObject) : LISTS.includes(name))
