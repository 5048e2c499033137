// A worker: serves like a single process, on the sockets of its supervisor, until it has to leave or stop.
import cluster from 'node:cluster'
import { once } from 'node:events'
import { type App, openApp } from '../../app.ts'
import type { Config } from '../../config.ts'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { logLost, openLog } from '../../lib/log.ts'
import { startServer } from '../listeners/server.ts'
import { type Channel, openChannel } from './channel.ts'

/** Serves until the supervisor sends `leave` or `stop`, or has ended. If it cannot serve, sends the reason to the supervisor. */
export async function serveAsWorker(config: Config, simulator: 'embedded' | 'always'): Promise<void> {
  // Only the supervisor acts on signals, though a terminal or systemd sends them to every process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {})
  // Without this, node:cluster would end a worker at once when its supervisor ends, in the middle of its requests.
  cluster.worker!.on('disconnect', () => {
    cluster.worker!.exitedAfterDisconnect = true
  })
  let app: App | undefined
  let isInterrupted = false
  const channel = openChannel(async () => (await app?.metrics.ofThisProcess()) ?? [])
  const stopping = new AbortController()
  void channel.stop.then(() => stopping.abort())
  try {
    const { number, share } = await begin(channel, stopping.signal)
    app = await openApp(config, {
      simulator,
      connections: share,
      log: openLog(config.logLevel, 1, { worker: number }),
      worker: { number, allMetrics: channel.allMetrics },
      signal: stopping.signal,
    })
    await serve(app, channel, stopping.signal)
  } catch (error) {
    isInterrupted = error === stopping.signal.reason
    if (isInterrupted) return
    if (!(error instanceof UsageError || error instanceof Refusal)) throw error
    await channel.send({ is: 'failed', sentence: error.message, usage: error instanceof UsageError })
  } finally {
    await app?.close()
    if (process.connected) process.disconnect()
    // A listener that has not finished starting cannot be closed, and would keep the process alive.
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
  // Listening needs a response of the supervisor, and would never end if the supervisor has ended.
  const server = await Promise.race([startServer(app, { worker: false }), channel.stop])
  if (!server) throw signal.reason
  const { url, adminUrl } = server
  await channel.send({ is: 'ready', url, adminUrl })
  void channel.work.then(() => server.work())
  // The supervisor, which has the same log, finds that it is lost when it logs the end of this worker.
  const lost = logLost.aborted ? Promise.resolve() : once(logLost, 'abort')
  const leave = Promise.race([channel.leave, lost])
  await Promise.race([leave.then(() => server.leave()), channel.stop.then(() => server.stop())])
  // The supervisor keeps these counters after the worker has ended.
  await channel.send({ is: 'counted', counted: await app.metrics.ofThisProcess() })
}
