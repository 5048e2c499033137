// Completes lines with the records that they refer to and that were not read: each is read by its id.
import type { App } from '../../../app.ts'
import type { Line } from '../line-import.ts'
import { idIn } from '../stripe/convert.ts'
import { type Converted, convert, type ItemKind, isObject, type Json, lineOf, NAMES, textOf } from './convert.ts'
import { findOne, hasNoReplies, readReplies } from './details.ts'
import type { Ledger } from './ledger.ts'
import type { ApiSource } from './source.ts'

export interface Completing {
  source: ApiSource
  ledger: Ledger
  /** The records here, for what the service no longer has. */
  stored(table: string, ids: string[]): Promise<Set<string>>
  /** Whether a record that an earlier pass has read is read again: only lists show what changed. */
  again: boolean
  /** Called for a reference that leads nowhere. */
  reject(id: string, reason: string): void
}

/** Fields that refer to a record: the kind of it, and whether the line cannot be without. */
const REFERENCES: Record<string, [field: string, kind: ItemKind, required: boolean][]> = {
  profile: [['funnel_id', 'funnel', false]],
  session: [
    ['profile_id', 'profile', true],
    ['funnel_id', 'funnel', false],
    ['experiment_id', 'experiment', false],
  ],
  reply: [['session_id', 'session', true]],
  subscription: [
    ['profile_id', 'profile', true],
    ['product_id', 'product', true],
    ['funnel_id', 'funnel', false],
    ['session_id', 'session', false],
    ['experiment_id', 'experiment', false],
  ],
  transaction: [
    ['profile_id', 'profile', true],
    ['session_id', 'session', false],
    ['funnel_id', 'funnel', false],
    ['experiment_id', 'experiment', false],
    ['subscription_id', 'subscription', false],
  ],
}

// Records whose lists are read before anything that refers to them.
const LISTED = new Set<ItemKind>(['funnel', 'product', 'experiment', 'subscription'])
const AT_ONCE = 4

/** The objects that these refer to, and so on. References that lead nowhere are removed from the lines where they may be. */
export async function complete(completing: Completing, converted: Converted[]): Promise<Converted[]> {
  const all = [...converted]
  const gone = new Map<ItemKind, Set<string>>()
  for (let added = converted; added.length > 0; ) {
    const wanted = await wantedBy(completing, all, added, gone)
    added = []
    for (let at = 0; at < wanted.length; at += AT_ONCE) {
      const group = wanted.slice(at, at + AT_ONCE)
      const found = await Promise.all(group.map((one) => read(completing, one)))
      found.forEach((one, n) => {
        if (one) added.push(...one)
        else setOf(gone, group[n]!.kind).add(group[n]!.id)
      })
    }
    all.push(...added)
  }
  if (gone.size > 0) await removeGone(completing, all, gone)
  return all
}

interface Wanted {
  kind: ItemKind
  id: string
  /** The line that refers to it. */
  by: Line
}

async function wantedBy(
  { ledger, again }: Completing,
  all: Converted[],
  added: Converted[],
  gone: Map<ItemKind, Set<string>>,
): Promise<Wanted[]> {
  const coming = new Set(all.map(({ noted }) => `${noted?.kind} ${noted?.id}`))
  const wanted = new Map<string, Wanted>()
  for (const { lines } of added)
    for (const line of lines)
      for (const [field, kind] of REFERENCES[line.record] ?? []) {
        const id = textOf(line.data[field])
        const name = `${kind} ${id}`
        if (id === undefined || coming.has(name) || gone.get(kind)?.has(id)) continue
        wanted.set(name, { kind, id, by: line })
      }
  const fresh: Wanted[] = []
  for (const kind of Object.keys(NAMES) as ItemKind[]) {
    const ids = [...wanted.values()].filter((one) => one.kind === kind).map(({ id }) => id)
    if (ids.length === 0) continue
    const known = await ledger.known(kind, ids, again && !LISTED.has(kind))
    fresh.push(...[...wanted.values()].filter((one) => one.kind === kind && !known.has(one.id)))
  }
  return fresh
}

/** The record, and of a session its replies; undefined if the service does not have it. */
async function read({ source }: Completing, { kind, id, by }: Wanted): Promise<Converted[] | undefined> {
  // The specification has no list of experiments: what is known of one is in the detail of a subscription.
  if (kind === 'experiment') {
    const { created_at } = by.data
    return [convert('experiment', { id, created_at }, id)]
  }
  const found = await findOne(source, `/${NAMES[kind]}`, id)
  if (!found) return undefined
  const record = convert(kind, found, id)
  if (kind !== 'session' || hasNoReplies(found)) return [record]
  return [record, convert('replies', await readReplies(source, id), id)]
}

/** A record that the service does not have, and that is not here: what can be without it is imported without it. */
async function removeGone({ stored, reject }: Completing, all: Converted[], gone: Map<ItemKind, Set<string>>) {
  for (const [kind, ids] of gone) for (const id of await stored(NAMES[kind], [...ids])) ids.delete(id)
  for (const { noted, lines } of all)
    for (const { record, data } of lines)
      for (const [field, kind, required] of REFERENCES[record] ?? []) {
        const id = data[field]
        if (required || typeof id !== 'string' || !gone.get(kind)?.has(id)) continue
        data[field] = null
        reject(
          noted?.id ?? idIn({ record, data }),
          `${record}.${field} was left out: the service does not have "${id}"`,
        )
      }
}

/** What a subscription's detail says of its experiment. */
export function experimentIn(item: Json): Converted[] {
  const { experiment, created_at } = item
  const id = isObject(experiment) ? textOf(experiment.id) : undefined
  if (id === undefined) return []
  const line = lineOf('experiment', { created_at, ...(experiment as Json) })
  return [{ noted: { kind: 'experiment', id, label: '', amount: '0' }, lines: [line] }]
}

/** Those of these ids that are stored here. */
export const storedHere =
  ({ db }: Pick<App, 'db'>, projectId: string): Completing['stored'] =>
  async (table, ids) => {
    const rows = await db.query(`select id from ${table} where project_id = $1 and id = any($2)`, [projectId, ids])
    return new Set(rows.map(({ id }) => id!))
  }

function setOf(map: Map<ItemKind, Set<string>>, kind: ItemKind): Set<string> {
  const set = map.get(kind) ?? new Set()
  map.set(kind, set)
  return set
}
