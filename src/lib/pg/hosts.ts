// Supports several hosts in the address of a database, as libpq does: each new connection goes to the first suitable host.
import { Socket, type SocketConstructorOpts } from 'node:net'
import { Client } from './client.ts'

export const TARGETS = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const
export type Target = (typeof TARGETS)[number]

export interface Host {
  /** A name, an address, or the folder of a Unix socket. */
  host: string
  port: number
}

export interface HostList {
  hosts: Host[]
  target: Target
  /** The address with only this host. */
  at(host: Host): string
}

const ADDRESS = /^([a-z]+:\/\/)([^/?#]*@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?$/
const DEFAULT_PORT = 5432
// How long the found host is used for further connections, so that a burst of them probes once.
const CACHED_MS = 1000
const PROBE_TIMEOUT_MS = 2000

/**
 * The hosts of `postgres://user:password@one:5432,two:5432/name?target_session_attrs=read-write`, or of lists in the
 * parameters `host` and `port`; undefined for an address with one host and no target, which needs no choice.
 */
export function readHosts(address: string): HostList | undefined {
  const [, scheme, user = '', authority = '', path = '', query = ''] = ADDRESS.exec(address) ?? []
  if (scheme === undefined) return undefined
  const parameters = new URLSearchParams(query)
  const ports = parameters.get('port')?.split(',') ?? []
  const named = parameters.get('host')?.split(',')
  const hosts = named
    ? named.map((host, n) => ({ host, port: Number(ports[n] ?? ports[0] ?? DEFAULT_PORT) }))
    : authority.split(',').map(hostIn)
  const target = parameters.get('target_session_attrs')
  if (hosts.length < 2 && target === null) return undefined
  for (const name of ['host', 'port', 'target_session_attrs']) parameters.delete(name)
  return {
    hosts,
    target: (target ?? 'any') as Target,
    at({ host, port }) {
      if (!host.startsWith('/')) return `${scheme}${user}${host}:${port}${path}?${parameters}`
      const withSocket = new URLSearchParams(parameters)
      withSocket.set('host', host)
      withSocket.set('port', String(port))
      return `${scheme}${user}localhost${path}?${withSocket}`
    },
  }
}

function hostIn(text: string): Host {
  const [, host = text, port] = /^(\[[^\]]*\]|[^:]*)(?::([0-9]+))?$/.exec(text) ?? []
  return { host, port: Number(port ?? DEFAULT_PORT) }
}

/** The address with the mode that its `sslmode` means: `pg` warns of the weaker names, because they are to mean less once. */
export function withMeantMode(address: string): string {
  if (address.includes('uselibpqcompat=')) return address
  return address.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|#|$)/, '$1verify-full')
}

/** Creates the socket of a connection. `pg` calls it with its settings as the only argument. */
export type MakeSocket = (config?: unknown, options?: SocketConstructorOpts) => Socket

/** The configuration for this address: its only host, or a socket that finds the host for each connection. */
export function connectionOf(given: string): { connectionString: string; stream?: MakeSocket } {
  const address = withMeantMode(given)
  const list = readHosts(address)
  if (!list) return { connectionString: address }
  const choose = cachedFor(CACHED_MS, () => findHost(list))
  return {
    connectionString: list.at(list.hosts[0]!),
    stream: (_config, options) => new ChoosingSocket(choose, options),
  }
}

/** A socket that ignores the address passed by `pg` and connects to the chosen host. */
class ChoosingSocket extends Socket {
  readonly #choose: () => Promise<Host>

  constructor(choose: () => Promise<Host>, options?: SocketConstructorOpts) {
    super(options)
    this.#choose = choose
  }

  override connect(): this {
    this.#choose().then(
      ({ host, port }) => {
        if (this.destroyed) return
        if (host.startsWith('/')) super.connect(`${host}/.s.PGSQL.${port}`)
        else super.connect(port, host.replace(/^\[(.*)\]$/, '$1'))
      },
      (error) => this.destroy(error),
    )
    return this
  }
}

function cachedFor<T>(ms: number, find: () => Promise<T>): () => Promise<T> {
  let found: Promise<T> | undefined
  let sinceMs = 0
  return () => {
    if (found && performance.now() - sinceMs < ms) return found
    sinceMs = performance.now()
    found = find()
    found.catch(() => {
      found = undefined
    })
    return found
  }
}

/** The first host whose server fits the target. Throws if there is none at the moment. */
async function findHost(list: HostList): Promise<Host> {
  let failure: unknown
  let fallback: Host | undefined
  for (const host of list.hosts) {
    try {
      const state = await probe(list.at(host))
      if (fits(list.target, state)) return host
      if (list.target === 'prefer-standby') fallback ??= host
    } catch (error) {
      failure ??= error
    }
  }
  if (fallback) return fallback
  if (failure) throw failure
  // PostgreSQL's code of a server that is starting: retry later.
  throw Object.assign(new Error(`No host of the database is ${list.target} at the moment.`), { code: '57P03' })
}

interface State {
  is_standby: boolean
  is_read_only: boolean
}

function fits(target: Target, { is_standby, is_read_only }: State): boolean {
  if (target === 'any') return true
  if (target === 'read-write') return !is_read_only
  if (target === 'read-only') return is_read_only
  return target === 'primary' ? !is_standby : is_standby
}

async function probe(address: string): Promise<State> {
  const client = new Client({
    connectionString: address,
    application_name: 'tundish host probe',
    connectionTimeoutMillis: PROBE_TIMEOUT_MS,
    query_timeout: PROBE_TIMEOUT_MS,
  })
  client.on('error', () => {})
  try {
    await client.connect()
    const { rows } = await client.query<State>(
      `select pg_is_in_recovery() as is_standby, current_setting('transaction_read_only') = 'on' as is_read_only`,
    )
    return rows[0]!
  } finally {
    void client.end().catch(() => {})
  }
}
