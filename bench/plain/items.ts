// Items of the plain server: declared once, selected as text, and written as JSON without intermediate objects.
export type Cells = (string | null)[]
type Write = (text: string) => string

interface Field {
  sql: string
  write: Write
}
/** An object within an item; null where its first field is. */
interface Inner {
  fields: Fields
  nullable: boolean
}
export interface Fields {
  [name: string]: Field | Inner
}

export interface Item {
  columns: string
  /** Writes the item of a row whose columns begin at `from`. */
  write(cells: Cells, from: number): string
}

const field =
  (write: Write) =>
  (sql: string): Field => ({ sql, write })

export const text = field((value) => JSON.stringify(value))
/** A number or JSON, written unchanged. */
export const raw = field((value) => value)
export const flag = field((value) => (value === 't' ? 'true' : 'false'))
/** With six digits of a second, as the API has it. */
export const time = field((value) => {
  const zone = value.length - 3
  return `"${value.slice(0, 10)}T${value.slice(11, 19)}.${value.slice(20, zone).padEnd(6, '0')}Z"`
})
export const inner = (fields: Fields, nullable = false): Inner => ({ fields, nullable })

/** Columns of the same table, by their names. */
export function columns(alias: string, of: (sql: string) => Field, names: string): Fields {
  return Object.fromEntries(names.split(' ').map((name) => [name, of(`${alias}.${name}`)]))
}

export function item(fields: Fields): Item {
  const selected: string[] = []
  const write = writer(fields, selected)
  return { columns: selected.join(', '), write }
}

function writer(fields: Fields, selected: string[]): Item['write'] {
  const steps = Object.entries(fields).map(([name, one], n) => {
    const before = `${n === 0 ? '{' : ','}${JSON.stringify(name)}:`
    const column = selected.length
    if ('sql' in one) {
      selected.push(one.sql)
      return (cells: Cells, from: number) => {
        const cell = cells[from + column]!
        return before + (cell === null ? 'null' : one.write(cell))
      }
    }
    const within = writer(one.fields, selected)
    return (cells: Cells, from: number) =>
      before + (one.nullable && cells[from + column] === null ? 'null' : within(cells, from))
  })
  return (cells, from) => {
    let json = ''
    for (const step of steps) json += step(cells, from)
    return `${json}}`
  }
}
