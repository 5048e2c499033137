// Which connections wait for locks, and for which others.
import type pg from 'pg'

/** The process ids of the connections that wait, each with those that hold its lock or are before it in the queue. */
export type Waits = Map<number, number[]>

const WAITS = `
  select pid, pids from (select pid, pg_catalog.pg_blocking_pids(pid) as pids from unnest($1::int[]) pid) each
  where pids <> '{}'`

/** Of these connections, by a client that leaves values as text. */
export async function readWaits(client: pg.Client, pids: number[]): Promise<Waits> {
  if (pids.length === 0) return new Map()
  const { rows } = await client.query<{ pid: string; pids: string }>({ name: 'waits', text: WAITS, values: [pids] })
  return new Map(rows.map(({ pid, pids }) => [Number(pid), pids.slice(1, -1).split(',').map(Number)]))
}

/** Whether two connections wait for the same one: PostgreSQL decides which of them continues first. */
export function hasTie(waits: Waits): boolean {
  const holders = [...waits.values()].flatMap((pids) => [...new Set(pids)])
  return new Set(holders).size < holders.length
}

/** Whether a connection waits, through others, for itself. */
export const isInCircle = (waits: Waits, pid: number): boolean => reaches(waits, pid, pid)

function reaches(waits: Waits, from: number, to: number, seen = new Set<number>()): boolean {
  for (const next of waits.get(from) ?? []) {
    if (next === to) return true
    if (seen.has(next)) continue
    seen.add(next)
    if (reaches(waits, next, to, seen)) return true
  }
  return false
}
