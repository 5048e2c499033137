// Keeps the maps of HAProxy current while keys and organizations are created and moved.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Logger } from 'pino'
import { type Connection, connectTo } from './connection.ts'
import { type Directory, directoryOf, type Part, readPart, stateOf } from './directory.ts'
import { loadMaps, writeMaps } from './haproxy.ts'
import type { Shard } from './shard.ts'

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

/** The directory as it is now. Throws when a shard cannot be reached. */
export async function readDirectory(shards: readonly Shard[]): Promise<Directory> {
  const parts = await Promise.all(
    shards.map(async (shard) => {
      const connection = await connectTo(shard)
      try {
        return [shard.name, await readPart(connection.query)] as const
      } finally {
        await connection.close()
      }
    }),
  )
  return directoryOf(new Map(parts))
}

/**
 * Writes the maps whenever something has changed, until `signal`. A shard that cannot be reached keeps its entries. Begins
 * when every shard was reached once.
 */
export async function follow({ shards, folder, sockets, log, signal }: Following): Promise<void> {
  const looks = shards.map((shard) => ({ shard, look: watch(shard, log) }))
  const parts = new Map<string, Part>()
  let stale = new Set<string>()
  let said = ''
  while (!signal.aborted) {
    const found = await Promise.all(looks.map(async ({ shard, look }) => ({ shard, part: await look() })))
    const changed = found.filter(({ part }) => part !== undefined)
    for (const { shard, part } of changed) parts.set(shard.name, part!)
    if (parts.size === shards.length && (changed.length > 0 || stale.size > 0)) {
      const directory = directoryOf(parts)
      if (changed.length > 0) writeMaps(folder, directory)
      stale = await loadAll(changed.length > 0 ? sockets : [...stale], folder, directory, log)
      if (directory.conflicts.join() !== said) for (const conflict of directory.conflicts) log.error(conflict)
      said = directory.conflicts.join()
      const { organizations, keys } = directory
      if (changed.length > 0) log.info({ organizations: organizations.size, keys: keys.size }, 'The maps are current.')
    }
    await sleep(LOOK_MS, undefined, { signal }).catch(() => {})
  }
  await Promise.all(looks.map(({ look }) => look('close')))
}

/** Returns the sockets that could not be loaded. */
async function loadAll(sockets: readonly string[], folder: string, directory: Directory, log: Following['log']) {
  const failed = new Set<string>()
  for (const socket of sockets) {
    await loadMaps(socket, folder, directory).catch((error: Error) => {
      failed.add(socket)
      log.warn(`The maps could not be loaded: ${error.message}`)
    })
  }
  return failed
}

/** Returns what the shard has when that has changed, else undefined. Connects again after a failure. */
function watch(shard: Shard, log: Following['log']): (close?: 'close') => Promise<Part | undefined> {
  let connection: Connection | undefined
  let state: string | undefined
  let isAway = false
  return async (close) => {
    if (close) return void (await connection?.close())
    try {
      connection ??= await connectTo(shard)
      const now = await stateOf(connection.query)
      isAway = false
      if (now === state) return undefined
      const part = await readPart(connection.query)
      state = now
      return part
    } catch (error) {
      await connection?.close()
      connection = undefined
      if (!isAway) log.warn(`The shard ${shard.name} cannot be reached: ${(error as Error).message}`)
      isAway = true
      return undefined
    }
  }
}
