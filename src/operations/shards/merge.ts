// Merges what a command printed as JSON on every shard into one list, each row with its shard.
import { Refusal } from '../../lib/errors.ts'
import type { Ran } from './on-each.ts'

export type Row = Record<string, unknown>

export interface Merged {
  rows: Row[]
  /** The shards that have more pages, each with the cursor of the next one. */
  further: Map<string, string>
}

/** The rows of all shards, in their order. A document without a list is one row. */
export function merge(ran: readonly Ran[]): Merged {
  const merged: Merged = { rows: [], further: new Map() }
  for (const one of ran) {
    const document = documentOf(one)
    if (document === undefined) continue
    for (const row of rowsOf(document)) merged.rows.push({ shard: one.shard, ...row })
    const { pagination } = document as { pagination?: { next_cursor?: string } }
    if (pagination?.next_cursor !== undefined) merged.further.set(one.shard, pagination.next_cursor)
  }
  return merged
}

/** The document that a command printed with `--json`; undefined if it was refused. */
export function documentOf({ shard, output }: Ran): Row | Row[] | undefined {
  if (output.trim() === '') return undefined
  try {
    return JSON.parse(output)
  } catch {
    throw new Refusal(`The command prints more than one JSON document on ${shard}: run it without --json and --merge.`)
  }
}

function rowsOf(document: Row | Row[]): Row[] {
  const lists = [document, ...Object.values(document)].filter(isList)
  // A document with several lists is not one of rows.
  return lists.length === 1 ? lists[0]! : [document as Row]
}

const isList = (value: unknown): value is Row[] =>
  Array.isArray(value) && value.every((one) => typeof one === 'object' && one !== null)
