// tundish serve: migrates, runs both listeners and the background work, and stops without losing a request.
import cluster from 'node:cluster'
import { type Command, Option } from 'commander'
import { type App, openApp } from '../../app.ts'
import { readConfig } from '../../config.ts'
import { unwritableFiles } from '../../operator/doctor/files.ts'
import { checkPorts } from '../../server/listeners/ports.ts'
import type { Running } from '../../server/listeners/server.ts'
import { readWorkers } from '../../server/workers/shares.ts'
import { guard, type Signalled, sayStopping, stopSignal } from './command.ts'
import { warnAsProcessOne } from './process-one.ts'

interface Options {
  demo?: boolean
  worker: boolean
  workers?: string
}

export function register(program: Command): void {
  program
    .command('serve')
    .description('Run the server: both APIs, the dashboard and the background work')
    .option('--demo', 'Create the demo organization and project once, and print keys and calls to try')
    .addOption(new Option('--no-worker', 'Leave the background work to "tundish worker"'))
    .option('--workers <number>', 'Serve with several processes: how many, or auto for one on each core')
    .action((options: Options) => guard(() => serve(options)))
}

// A supervisor makes the demo and keeps the simulator's address; the workers share DATABASE_CONNECTIONS.
const SUPERVISOR_CONNECTIONS = { read: 1, plain: 4 }

async function serve(options: Options): Promise<void> {
  const simulator = options.demo ? 'always' : 'embedded'
  if (cluster.isWorker) {
    const { serveAsWorker } = await import('../../server/workers/worker.ts')
    return serveAsWorker(readConfig(process.env), simulator)
  }
  // Installed before the start, which may take minutes: an interrupted start must clean up.
  const signalled: Signalled = {}
  const stopping = new AbortController()
  const stopped = stopSignal(signalled).then(() => stopping.abort())
  stopping.signal.addEventListener('abort', sayStopping)
  try {
    const app = await open(options, simulator, stopping.signal)
    // From here on the log says it.
    stopping.signal.removeEventListener('abort', sayStopping)
    warnAsProcessOne(app.log)
    // The doctor, which runs outside of the service's sandbox, may be able to write what the service cannot.
    for (const { message, fix } of await unwritableFiles(app.config)) app.log.error(`${message} ${fix}`)
    try {
      const running = await (options.workers === undefined
        ? serveAlone(app, options)
        : superviseWorkers(app, options, { signal: stopping.signal, signalled }))
      Object.assign(signalled, running)
      try {
        await Promise.race([greet(running, options), stopped])
        await stopped
        app.log.info('Stopping: requests in flight are finished first. Another Ctrl-C or SIGTERM stops at once.')
      } finally {
        // Also if the demo cannot be made: open listeners would keep the process.
        await running.stop()
      }
    } finally {
      await app.close()
    }
    app.log.info('Stopped.')
  } catch (error) {
    if (error !== stopping.signal.reason) throw error
  }
}

async function open({ workers }: Options, simulator: 'always' | 'embedded', signal: AbortSignal): Promise<App> {
  const config = readConfig(process.env)
  await checkPorts(config)
  if (workers !== undefined) return openApp(config, { simulator, signal, connections: SUPERVISOR_CONNECTIONS })
  return openApp(config, { simulator, signal, whileStarting: () => loadServer().catch(() => {}) })
}

// Loading the server takes most of a start, so it is loaded while the database starts. A failure is reported when it is used.
const loadServer = () => import('../../server/listeners/server.ts')

async function serveAlone(app: App, { worker }: Options) {
  const { startServer } = await loadServer()
  const restart = () => app.log.warn('SIGHUP restarts the workers of "serve --workers"; without them it does nothing.')
  return { ...(await startServer(app, { worker })), restart }
}

async function superviseWorkers(
  app: App,
  { worker, workers = 'auto' }: Options,
  start: { signal: AbortSignal; signalled: Signalled },
) {
  const { startWorkers } = await import('../../server/workers/supervisor.ts')
  return startWorkers(app, { count: readWorkers(workers), work: worker, ...start })
}

async function greet(running: Running, { demo }: Options): Promise<void> {
  const { app, url, adminUrl } = running
  if (!demo) {
    if (app.notice) app.log.info(app.notice)
    app.log.info({ url, admin_url: adminUrl }, 'Tundish is ready.')
    return
  }
  const { prepareDemo } = await import('../demo/demo.ts')
  const text = await prepareDemo(app, { url, adminUrl })
  process.stdout.write(`${text}\n`)
  if (adminUrl === undefined) return
  const { makeOwnLink, signInAddress } = await import('../../operator/dashboard/sessions.ts')
  const token = await app.db.tx((query) => makeOwnLink(query, 'dashboard of the demo'))
  const link = signInAddress(adminUrl, `${token}`)
  process.stdout.write(`Open the dashboard, signed in (the link works once, within 12 hours):\n\n${link}\n\n`)
}
