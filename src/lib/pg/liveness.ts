// Detects a database that no longer responds (a frozen machine, a cut cable) and breaks the connections that wait for it.
import pg from 'pg'
import { Client } from './client.ts'
import { wireOf } from './protocol.ts'

/** Runs `send` on a supervised connection. If the server stops responding altogether, the connection is destroyed. */
export type Guarded = <T>(client: pg.ClientBase, send: () => Promise<T>) => Promise<T>

export interface Liveness {
  guarded: Guarded
  stop(): void
}

/** The state of a connection: the number of outstanding responses, and when the last one arrived. */
interface Watched {
  outstanding: number
  silentSinceMs: number
}

const CHECK_MS = 1000
// Most statements end sooner. A longer silence only causes a probe.
const SILENCE_MS = 4000
const PROBE_TIMEOUT_MS = 3000

/**
 * When a connection has been silent for some seconds, a second one is opened as a probe. If PostgreSQL responds, even
 * with "too many connections" or "starting up", the silent one is still working. If not, the silent ones are destroyed,
 * and their callers get an error.
 */
export function openLiveness(config: pg.ClientConfig): Liveness {
  const connections = new Map<pg.ClientBase, Watched>()
  let probing = false

  const silent = () => {
    const nowMs = performance.now()
    return [...connections].filter(
      ([, { outstanding, silentSinceMs }]) => outstanding > 0 && nowMs - silentSinceMs > SILENCE_MS,
    )
  }
  const timer = setInterval(async () => {
    const suspects = probing ? [] : silent()
    if (suspects.length === 0) return
    probing = true
    const alive = await responds(config)
    probing = false
    if (!alive) for (const [client] of silent()) wireOf(client).stream.destroy()
  }, CHECK_MS).unref()

  function supervise(client: pg.ClientBase): Watched {
    const watched = { outstanding: 0, silentSinceMs: 0 }
    connections.set(client, watched)
    client.once('end', () => connections.delete(client))
    return watched
  }

  return {
    async guarded(client, send) {
      const watched = connections.get(client) ?? supervise(client)
      if (watched.outstanding === 0) watched.silentSinceMs = performance.now()
      watched.outstanding += 1
      try {
        return await send()
      } finally {
        watched.outstanding -= 1
        watched.silentSinceMs = performance.now()
      }
    },
    stop: () => clearInterval(timer),
  }
}

/** Whether a PostgreSQL responds, even if only to refuse the connection. */
async function responds(config: pg.ClientConfig): Promise<boolean> {
  const client = new Client({ ...config, connectionTimeoutMillis: PROBE_TIMEOUT_MS })
  client.on('error', () => {})
  try {
    await client.connect()
    return true
  } catch (error) {
    return error instanceof pg.DatabaseError
  } finally {
    void client.end().catch(() => {})
  }
}
