// A worker: serves like a process alone, on sockets that its supervisor holds, and leaves when it is told to or left alone.
import cluster from 'node:cluster'
import { type App, openApp } from '../app.ts'
import type { Config } from '../config.ts'
import { Refusal, UsageError } from '../lib/errors.ts'
import { openLog } from '../lib/log.ts'
import { startServer } from '../server/server.ts'
import { type Channel, openChannel } from './channel.ts'

/** Serves until it is told to leave. What it cannot serve for, it tells its supervisor. */
export async function serveAsWorker(config: Config, simulator: 'embedded' | 'always'): Promise<void> {
  // Signals are for the supervisor, though a terminal or systemd sends them to all.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  // Without this a worker that has lost its supervisor would end at once, in the middle of its requests.
  cluster.worker!.on('disconnect', () => {
    cluster.worker!.exitedAfterDisconnect = true
  })
  let app: App | undefined
  const channel = openChannel(async () => (await app?.metrics.counted()) ?? [])
  try {
    const { number, share } = await channel.begin
    app = await openApp(config, {
      simulator,
      connections: share,
      log: openLog(config.logLevel, 1, { worker: number }),
      among: { number, all: channel.all },
    })
    await serve(app, channel)
  } catch (error) {
    if (!(error instanceof UsageError || error instanceof Refusal)) throw error
    await channel.tell({ is: 'failed', sentence: error.message, usage: error instanceof UsageError })
  } finally {
    await app?.close()
    if (process.connected) process.disconnect()
  }
}

async function serve(app: App, channel: Channel): Promise<void> {
  const server = await startServer(app, { worker: false })
  const { url, adminUrl } = server
  await channel.tell({ is: 'ready', url, adminUrl })
  void channel.work.then(() => server.work())
  await Promise.race([channel.leave.then(() => server.leave()), channel.stop.then(() => server.stop())])
  // The last word: what it has counted stays.
  await channel.tell({ is: 'counted', counted: await app.metrics.counted() })
}
