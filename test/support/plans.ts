// Records the statements that the program sends to the database, and explains their plans.
import type { Db } from '../../src/lib/pg/db.ts'
import type { Param, Query, Statement } from '../../src/lib/pg/types.ts'

export interface Caught {
  text: string
  params: readonly Param[]
  /** The name under which it is prepared, if it is. */
  name: string | undefined
}

/** A node of a plan from EXPLAIN; the actual values are present after it was executed. */
export interface Node {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'CTE Name'?: string
  'Index Cond'?: string
  'Rows Removed by Filter'?: number
  'Actual Rows'?: number
  'Actual Loops'?: number
  Plans?: Node[]
}

/** The same database, which reports every statement. */
export function watched(db: Db, tell: (caught: Caught) => void): Db {
  const note = (statement: string | Statement, params: readonly Param[] = []) =>
    tell({ name: undefined, ...(typeof statement === 'string' ? { text: statement } : statement), params })
  const watch =
    (query: Query): Query =>
    (statement, params) => {
      note(statement, params)
      return query(statement, params)
    }
  const read =
    (ask: Db['read']): Db['read'] =>
    (statement, params, take) => {
      note(statement, params)
      return ask(statement, params, take)
    }
  return {
    ...db,
    read: read(db.read),
    readLong: read(db.readLong),
    query: watch(db.query),
    tx: (work) => db.tx((query, commit) => work(watch(query), commit)),
  }
}

/** All nodes of the statement's plan; with `analyze` the statement is executed and rolled back. */
export async function explain(
  db: Db,
  { text, params }: Pick<Caught, 'text' | 'params'>,
  analyze = false,
): Promise<Node[]> {
  const { query, release } = await db.connect()
  try {
    await query('begin')
    await query(`prepare explained as ${text}`)
    const values = params.length > 0 ? `(${params.map(literal).join(', ')})` : ''
    const options = analyze ? 'analyze, timing off, format json' : 'format json'
    const [row] = await query(`explain (${options}) execute explained${values}`)
    const [{ Plan }] = JSON.parse(row!['QUERY PLAN']!) as [{ Plan: Node }]
    return all(Plan)
  } finally {
    await query('rollback')
    await query('deallocate explained')
    release()
  }
}

const all = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(all)]

function literal(value: Param): string {
  if (value === null) return 'null'
  if (Buffer.isBuffer(value)) return `'\\x${value.toString('hex')}'`
  if (Array.isArray(value)) return quote(`{${value.map((one) => JSON.stringify(one)).join(',')}}`)
  return quote(String(value))
}

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`
