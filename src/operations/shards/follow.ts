// Keeps the maps of HAProxy current while keys and organizations are created and moved.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { UsageError } from '../../lib/errors.ts'
import { causeOf } from '../../lib/pg/errors.ts'
import { type Connection, connectTo, NoTables } from './connection.ts'
import { type Directory, directoryOf, type Part, type Places, readPart, stateOf } from './directory.ts'
import { processAt, readMaps, whyNotLoaded, writeMaps } from './haproxy.ts'
import type { Shard } from './shard.ts'
import { askShard, breakable, withinLimit } from './time-limit.ts'

export interface Following {
  shards: readonly Shard[]
  /** Where the map files are. */
  folder: string
  /** The sockets of the HAProxy processes that use them. */
  sockets: readonly string[]
  log: Pick<Logger, 'info' | 'warn' | 'error'>
  signal: AbortSignal
}

// A mover waits longer than this for all directories.
const LOOK_MS = 500

/** The directory as it is now. A shard that cannot be reached keeps the entries of the maps in `folder`, and is named. */
export async function readDirectory(
  shards: readonly Shard[],
  folder: string,
): Promise<Directory & { unreachable: string[] }> {
  const parts = new Map<string, PartOfDatabase>()
  const unreachable: string[] = []
  const read = async (shard: Shard) => {
    try {
      parts.set(shard.name, await askShard(shard, partOf))
    } catch (error) {
      unreachable.push(`${cannotBeReached(shard, error)} ${STAYED}`)
    }
  }
  await Promise.all(shards.map(read))
  return { ...directoryWith(parts, shards, readMaps(folder)), unreachable: unreachable.sort() }
}

interface PartOfDatabase extends Part, Pick<Connection, 'database'> {}

const partOf = async ({ query, database }: Connection): Promise<PartOfDatabase> => ({
  ...(await readPart(query)),
  database,
})

const cannotBeReached = ({ name }: Shard, error: unknown) =>
  error instanceof NoTables
    ? error.message
    : `The shard ${name} cannot be reached (${error instanceof UsageError ? error.message : causeOf(error)}).`

/** The shards that have no part yet keep their places of before, and so do those with the database of another shard. */
function directoryWith(
  parts: ReadonlyMap<string, PartOfDatabase>,
  shards: readonly Shard[],
  before: Places,
): Directory {
  const mistaken = mistakenShards(parts, shards, before)
  // In the order of the shards, whichever responded first: the same conflict is always the same sentence.
  const ordered = shards.flatMap(({ name }) =>
    parts.has(name) && !mistaken.has(name) ? [[name, parts.get(name)!] as const] : [],
  )
  const known = new Map(ordered)
  const silent = new Set(shards.map(({ name }) => name).filter((name) => !known.has(name)))
  const directory = directoryOf(known, silent.size > 0 ? { ...before, silent } : undefined)
  return { ...directory, conflicts: [...mistaken.values(), ...directory.conflicts] }
}

/**
 * The shards whose settings lead to the database of another one, with a sentence for each. With their parts, every organization there would be
 * on two shards, and refused. The other one is the shard that had these organizations before.
 */
function mistakenShards(
  parts: ReadonlyMap<string, PartOfDatabase>,
  shards: readonly Shard[],
  before: Places,
): Map<string, string> {
  const had = ({ name }: Shard) => parts.get(name)?.organizations.some((id) => before.organizations.get(id) === name)
  const owners = new Map<string, string>()
  const mistaken = new Map<string, string>()
  for (const { name } of [...shards.filter(had), ...shards.filter((one) => !had(one))]) {
    const database = parts.get(name)?.database
    if (database === undefined) continue
    const owner = owners.get(database)
    if (owner === undefined) owners.set(database, name)
    else mistaken.set(name, `The shard ${name} has the database of ${owner}: correct its settings. ${STAYED}`)
  }
  return mistaken
}

const STAYED = 'Its entries stay as they were.'

/**
 * Writes the maps whenever something has changed, until `signal`. A shard that cannot be reached keeps its entries, those of
 * the files at first. Begins when every shard has responded or has not within its time.
 */
export async function follow({ shards, folder, sockets, log, signal }: Following): Promise<void> {
  const before = readMaps(folder)
  const parts = new Map<string, PartOfDatabase>()
  const tried = new Set<string>()
  let changed = false
  let wake = () => {}
  const watching = shards.map((shard) =>
    watch(shard, log, signal, (part) => {
      tried.add(shard.name)
      wake()
      if (!part) return
      parts.set(shard.name, part)
      changed = true
    }),
  )
  let stale: readonly string[] = []
  let said = ''
  const processes = new Map<string, string | undefined>()
  while (!signal.aborted) {
    if (!changed && stale.length === 0) stale = await restarted(sockets, processes)
    if (tried.size === shards.length && (changed || stale.length > 0)) {
      const directory = directoryWith(parts, shards, before)
      const isNew = changed
      changed = false
      if (isNew) writeMaps(folder, directory)
      stale = await loadAll(isNew ? sockets : stale, folder, directory, log, processes)
      if (directory.conflicts.join() !== said) for (const conflict of directory.conflicts) log.error(conflict)
      said = directory.conflicts.join()
      const { organizations, projects, keys } = directory
      const sizes = { organizations: organizations.size, projects: projects.size, keys: keys.size }
      if (isNew) log.info(sizes, 'The maps are current.')
    }
    const woken = new Promise<void>((resolve) => {
      wake = resolve
    })
    await Promise.race([woken, pause(signal)])
  }
  await Promise.all(watching)
}

const pause = (signal: AbortSignal) => sleep(LOOK_MS, undefined, { signal }).catch(() => {})

/** The sockets of HAProxy processes that were started since: they have read the files, perhaps before the last change. */
async function restarted(
  sockets: readonly string[],
  processes: ReadonlyMap<string, string | undefined>,
): Promise<string[]> {
  const now = await Promise.all(sockets.map(processAt))
  return sockets.filter((socket, n) => now[n] !== undefined && now[n] !== processes.get(socket))
}

/** Returns the sockets that could not be loaded. Notes the process of each one that was. */
async function loadAll(
  sockets: readonly string[],
  folder: string,
  directory: Directory,
  log: Following['log'],
  processes: Map<string, string | undefined>,
): Promise<string[]> {
  const failed = await Promise.all(
    sockets.map(async (socket) => {
      const process = await processAt(socket)
      const why = await whyNotLoaded(socket, folder, directory)
      if (why === undefined) processes.set(socket, process)
      else log.warn(why)
      return why === undefined ? [] : [socket]
    }),
  )
  return failed.flat()
}

/**
 * Passes on what the shard has at first and after each change, until `signal`; undefined when it cannot be reached. Connects
 * again after a failure.
 */
async function watch(
  shard: Shard,
  log: Following['log'],
  signal: AbortSignal,
  found: (part: PartOfDatabase | undefined) => void,
): Promise<void> {
  let connection: Connection | undefined
  let state: string | undefined
  let isUnreachable = false
  const look = async (limit: AbortSignal) => {
    connection ??= await connectTo(shard, limit)
    const current = connection
    const now = await breakable(current, limit, () => stateOf(current.query))
    if (now === state) return
    const part = await breakable(current, limit, () => partOf(current))
    state = now
    found(part)
  }
  while (!signal.aborted) {
    try {
      await withinLimit(look, signal)
      isUnreachable = false
    } catch (error) {
      connection?.destroy()
      connection = undefined
      if (!isUnreachable && !signal.aborted) log.warn(cannotBeReached(shard, error))
      isUnreachable = true
      found(undefined)
    }
    await pause(signal)
  }
  connection?.destroy()
}
