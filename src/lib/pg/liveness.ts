// Notices a database that has stopped breathing (a frozen machine, a cut cable that nobody reports) and lets nobody wait for it.
import pg from 'pg'
import { wireOf } from './protocol.ts'

/** Runs what a connection is asked; while nothing at all comes back, the watch asks whether anybody is there. */
export type Over = <T>(client: pg.ClientBase, ask: () => Promise<T>) => Promise<T>

export interface Watch {
  over: Over
  stop(): void
}

/** A connection: how many answers it owes, and since when nothing has come. */
interface Watched {
  asked: number
  silentSinceMs: number
}

const LOOK_MS = 1000
// Most statements are done by then; a long one is no reason for alarm, only for a question.
const SILENCE_MS = 4000
const PATIENCE_MS = 3000

/**
 * When a connection has been silent for some seconds, a fresh one is opened. PostgreSQL answers it, if only that it is
 * full or starting: then the silent one is at work. If nothing answers, the silent ones are broken, and whoever waits
 * hears so.
 */
export function watchFor(config: pg.ClientConfig): Watch {
  const connections = new Map<pg.ClientBase, Watched>()
  let asking = false

  const silent = () => {
    const nowMs = performance.now()
    return [...connections].filter(([, { asked, silentSinceMs }]) => asked > 0 && nowMs - silentSinceMs > SILENCE_MS)
  }
  const timer = setInterval(async () => {
    const suspects = asking ? [] : silent()
    if (suspects.length === 0) return
    asking = true
    const alive = await answers(config)
    asking = false
    if (!alive) for (const [client] of silent()) wireOf(client).stream.destroy()
  }, LOOK_MS).unref()

  function watchOver(client: pg.ClientBase): Watched {
    const watched = { asked: 0, silentSinceMs: 0 }
    connections.set(client, watched)
    client.once('end', () => connections.delete(client))
    return watched
  }

  return {
    async over(client, ask) {
      const watched = connections.get(client) ?? watchOver(client)
      if (watched.asked === 0) watched.silentSinceMs = performance.now()
      watched.asked += 1
      try {
        return await ask()
      } finally {
        watched.asked -= 1
        watched.silentSinceMs = performance.now()
      }
    },
    stop: () => clearInterval(timer),
  }
}

/** Whether there is a PostgreSQL that says anything, if only that it will not let us in. */
async function answers(config: pg.ClientConfig): Promise<boolean> {
  const client = new pg.Client({ ...config, connectionTimeoutMillis: PATIENCE_MS })
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
