// Checks that both ports are free before anything is created, and turns errors of listening into sentences.
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Config } from '../../config.ts'
import { UsageError } from '../../lib/errors.ts'

const SETTINGS = { public: ['HOST', 'PORT'], operator: ['ADMIN_HOST', 'ADMIN_PORT'] } as const

export type Side = keyof typeof SETTINGS

export const addressOf = (side: Side, { host, port, adminHost, adminPort }: Config) =>
  side === 'public' ? { host, port } : { host: adminHost, port: adminPort }

/** Throws one `UsageError` that names every port that cannot be used. */
export async function checkPorts(config: Config): Promise<void> {
  const sides = Object.keys(SETTINGS) as Side[]
  const sentences = await Promise.all(sides.map((side) => tryPort(side, config)))
  const mistakes = sentences.filter((sentence) => sentence !== undefined)
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
}

/** Listens on the port for a moment; returns the problem as a sentence. */
async function tryPort(side: Side, config: Config): Promise<string | undefined> {
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(addressOf(side, config))
    await once(server, 'listening')
    server.close()
    await once(server, 'close')
    return undefined
  } catch (error) {
    return listenProblem(error, side, config)
  }
}

/** A sentence that says why a listener cannot listen; undefined if the error has another cause. */
export function listenProblem(error: unknown, side: Side, config: Config): string | undefined {
  const { host, port } = addressOf(side, config)
  const [hostSetting, portSetting] = SETTINGS[side]
  const notHere = `This machine has no address ${host}: set ${hostSetting} to one that it has, or to 0.0.0.0.`
  const sentences: Record<string, string> = {
    EADDRINUSE: `Port ${port} is taken on ${host}: stop the program that uses it, or set ${portSetting} to another.`,
    EACCES: `Port ${port} needs more rights than this user has: set ${portSetting} to one above 1023.`,
    EADDRNOTAVAIL: notHere,
    // An IPv6 address on a machine without IPv6, or one of a link without its interface.
    EAFNOSUPPORT: notHere,
    EINVAL: notHere,
    ENOTFOUND: `The host name ${host} is unknown: set ${hostSetting} to an address of this machine.`,
  }
  return sentences[(error as NodeJS.ErrnoException).code ?? '']
}
