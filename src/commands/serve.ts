// tundish serve: migrates, runs both listeners and the background work, and stops without losing a request.
import cluster from 'node:cluster'
import { type Command, Option } from 'commander'
import { type App, openApp } from '../app.ts'
import { readConfig } from '../config.ts'
import { checkPorts } from '../server/ports.ts'
import type { Running } from '../server/server.ts'
import { readWorkers } from '../workers/shares.ts'
import { guard, ignoreHangUp, stopSignal } from './command.ts'

interface Options {
  demo?: boolean
  worker: boolean
  workers?: string
}

export function register(program: Command): void {
  program
    .command('serve')
    .description('run the server')
    .option('--demo', 'make the demo organization and project once, and print calls that work')
    .addOption(new Option('--no-worker', 'leave the background work to "tundish worker"'))
    .option('--workers <number>', 'serve with several processes: how many, or auto for one on each core')
    .action((options: Options) => guard(() => serve(options)))
}

// A supervisor makes the demo and keeps the simulator's address; the workers share DATABASE_CONNECTIONS.
const SUPERVISOR_CONNECTIONS = { read: 1, plain: 4 }

async function serve(options: Options): Promise<void> {
  ignoreHangUp()
  const config = readConfig(process.env)
  const simulator = options.demo ? 'always' : 'embedded'
  if (cluster.isWorker) {
    const { serveAsWorker } = await import('../workers/worker.ts')
    return serveAsWorker(config, simulator)
  }
  const count = options.workers === undefined ? undefined : readWorkers(options.workers)
  await checkPorts(config)
  const app = await openApp(
    config,
    count
      ? { simulator, connections: SUPERVISOR_CONNECTIONS }
      : { simulator, meanwhile: () => loadServer().catch(() => {}) },
  )
  try {
    const running = await (count ? superviseWorkers(app, count, options) : serveAlone(app, options))
    const stopped = stopSignal(running)
    await greet(running, options)
    await stopped
    app.log.info('Stopping: requests in flight are finished first. Another Ctrl-C or SIGTERM stops at once.')
    await running.stop()
  } finally {
    await app.close()
  }
  app.log.info('Stopped.')
}

// Most of a start is loading this, and the database takes its time too: both at once. What is wrong with it shows later.
const loadServer = () => import('../server/server.ts')

async function serveAlone(app: App, { worker }: Options) {
  const { startServer } = await loadServer()
  const restart = () => app.log.warn('SIGHUP restarts the workers of "serve --workers"; without them it does nothing.')
  return { ...(await startServer(app, { worker })), restart }
}

async function superviseWorkers(app: App, count: number | 'auto', { worker }: Options) {
  const { startWorkers } = await import('../workers/supervisor.ts')
  return startWorkers(app, { count, work: worker })
}

async function greet(running: Running, { demo }: Options): Promise<void> {
  const { app, url, adminUrl } = running
  if (!demo) {
    app.log.info({ url, admin_url: adminUrl }, 'Tundish is ready.')
    return
  }
  const { prepareDemo } = await import('../demo/demo.ts')
  const text = await prepareDemo(app, { url, adminUrl })
  process.stdout.write(`${text}\n`)
}
