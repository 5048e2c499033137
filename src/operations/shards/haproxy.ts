// HAProxy's maps: the directory as three files, and the same in the memory of a HAProxy that runs.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { makeFolder } from '../../lib/files.ts'
import type { Directory, Places } from './directory.ts'

/** The names of the files, as in `haproxy.cfg`. */
const MAPS = { organizations: 'organizations.map', projects: 'projects.map', keys: 'keys.map' } as const

type MapName = keyof typeof MAPS

const NAMES = Object.keys(MAPS) as MapName[]
// What is sent to HAProxy's socket at one go must fit one of its buffers, 16 KiB.
const COMMAND_BYTES = 8 * 1024
const PATIENCE_MS = 5000

/** Writes all files, each at once: HAProxy reads them when it starts. */
export function writeMaps(folder: string, directory: Directory): void {
  makeFolder(folder)
  for (const name of NAMES) {
    const file = join(folder, MAPS[name])
    writeFileSync(`${file}.new`, linesOf(directory, name).join(''), { flush: true, mode: 0o644 })
    renameSync(`${file}.new`, file)
  }
}

/** What the files say now. Without a file: nothing. */
export function readMaps(folder: string): Places {
  const read = (name: MapName) => {
    const file = join(folder, MAPS[name])
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []
    return new Map(lines.filter((line) => line !== '').map((line) => line.split(' ') as [string, string]))
  }
  return { organizations: read('organizations'), projects: read('projects'), keys: read('keys') }
}

/**
 * Brings the maps of a HAProxy that runs up to date, entry by entry: while a whole map is replaced (`commit map`), requests
 * miss their entry for a moment, and 2.6 sent some to the wrong shard. `socket` is the path of its socket of level admin,
 * or `host:port`.
 */
export async function loadMaps(socket: string, folder: string, directory: Places): Promise<void> {
  for (const name of NAMES) {
    const file = join(folder, MAPS[name])
    const shown = await command(socket, `show map ${file}`)
    if (/^Unknown map/.test(shown)) throw new Error(`HAProxy at ${socket} does not have the map ${file}.`)
    for (const commands of inParts(changes(file, readMap(shown), directory[name]))) {
      const response = await command(socket, commands)
      if (response.trim() !== '')
        throw new Error(`HAProxy at ${socket} refused a change of ${file}: ${response.trim()}`)
    }
  }
}

/** Loads the maps for a caller that goes on after a failure; returns a sentence that says why it failed. */
export const whyNotLoaded = (socket: string, folder: string, directory: Places): Promise<string | undefined> =>
  loadMaps(socket, folder, directory).then(
    () => undefined,
    (error: Error) => `The maps could not be loaded: ${error.message}`,
  )

/** The process that listens at a HAProxy's socket now; undefined when none does. */
export async function processAt(socket: string): Promise<string | undefined> {
  const shown = await command(socket, 'show info').catch(() => '')
  return /^Pid: (\d+)$/m.exec(shown)?.[1]
}

/** The lines of `show map` are an address, the key and the value. */
function readMap(shown: string): Map<string, string> {
  const lines = shown.split('\n').map((line) => line.split(' '))
  return new Map(lines.flatMap(([, key, value]) => (value === undefined ? [] : [[key!, value]])))
}

function changes(file: string, from: ReadonlyMap<string, string>, to: ReadonlyMap<string, string>): string[] {
  const written = [...to].flatMap(([key, shard]) => {
    if (from.get(key) === shard) return []
    return [`${from.has(key) ? 'set' : 'add'} map ${file} ${key} ${shard}`]
  })
  const removed = [...from.keys()].filter((key) => !to.has(key)).map((key) => `del map ${file} ${key}`)
  return [...written, ...removed]
}

const linesOf = (directory: Directory, name: MapName) =>
  [...directory[name]].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, shard]) => `${key} ${shard}\n`)

function* inParts(commands: readonly string[]): Generator<string> {
  let part = ''
  for (const one of commands) {
    if (part.length + one.length > COMMAND_BYTES) {
      yield part
      part = ''
    }
    part += part === '' ? one : `;${one}`
  }
  if (part !== '') yield part
}

/** Commands, separated by `;`, on a separate connection; HAProxy ends its response by closing. */
function command(address: string, text: string): Promise<string> {
  const [, host, port] = /^([^/]+):(\d+)$/.exec(address) ?? []
  const socket = port === undefined ? connect(address) : connect(Number(port), host)
  return new Promise((resolve, reject) => {
    let response = ''
    socket.setTimeout(PATIENCE_MS, () => socket.destroy(new Error(`HAProxy at ${address} does not respond.`)))
    socket.setEncoding('utf8').on('data', (piece) => (response += piece))
    socket.on('end', () => resolve(response))
    socket.on('error', reject)
    socket.write(`${text}\n`)
  })
}
