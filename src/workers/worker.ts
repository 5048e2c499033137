// A worker: serves like a single process, on sockets of its supervisor, until that says leave or stop, or has gone.
import cluster from 'node:cluster'
import { type App, openApp } from '../app.ts'
import type { Config } from '../config.ts'
import { Refusal, UsageError } from '../lib/errors.ts'
import { openLog } from '../lib/log.ts'
import { startServer } from '../server/server.ts'
import { type Channel, openChannel } from './channel.ts'

/** Serves until the supervisor says leave or stop, or has gone. The reason why it cannot serve goes to the supervisor. */
export async function serveAsWorker(config: Config, simulator: 'embedded' | 'always'): Promise<void> {
  // Signals are for the supervisor, though a terminal or systemd sends them to all.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  // Without this a worker that has lost its supervisor would end at once, in the middle of its requests.
  cluster.worker!.on('disconnect', () => {
    cluster.worker!.exitedAfterDisconnect = true
  })
  let app: App | undefined
  let isInterrupted = false
  const channel = openChannel(async () => (await app?.metrics.counted()) ?? [])
  const stopping = new AbortController()
  void channel.stop.then(() => stopping.abort())
  try {
    const { number, share } = await begin(channel, stopping.signal)
    app = await openApp(config, {
      simulator,
      connections: share,
      log: openLog(config.logLevel, 1, { worker: number }),
      among: { number, all: channel.all },
      signal: stopping.signal,
    })
    await serve(app, channel, stopping.signal)
  } catch (error) {
    isInterrupted = error === stopping.signal.reason
    if (isInterrupted) return
    if (!(error instanceof UsageError || error instanceof Refusal)) throw error
    await channel.tell({ is: 'failed', sentence: error.message, usage: error instanceof UsageError })
  } finally {
    await app?.close()
    if (process.connected) process.disconnect()
    // A listener that has only begun to listen cannot be closed.
    if (isInterrupted) process.exit()
  }
}

/** The supervisor's first message. */
async function begin(channel: Channel, signal: AbortSignal): Promise<Awaited<Channel['begin']>> {
  const message = await Promise.race([channel.begin, channel.stop])
  if (message) return message
  throw signal.reason
}

async function serve(app: App, channel: Channel, signal: AbortSignal): Promise<void> {
  // Listening takes an answer of the supervisor, which never comes when that has gone.
  const server = await Promise.race([startServer(app, { worker: false }), channel.stop])
  if (!server) throw signal.reason
  const { url, adminUrl } = server
  await channel.tell({ is: 'ready', url, adminUrl })
  void channel.work.then(() => server.work())
  await Promise.race([channel.leave.then(() => server.leave()), channel.stop.then(() => server.stop())])
  // The last message: what it has counted is kept.
  await channel.tell({ is: 'counted', counted: await app.metrics.counted() })
}
