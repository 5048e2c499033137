// tundish serve: migrates, runs both listeners and the background work, and stops without losing a request.
import { type Command, Option } from 'commander'
import { openApp } from '../app.ts'
import { readConfig } from '../config.ts'
import { type Running, startServer } from '../server.ts'
import { guard, stopSignal } from './command.ts'

interface Options {
  demo?: boolean
  worker: boolean
}

export function register(program: Command): void {
  program
    .command('serve')
    .description('run the server')
    .option('--demo', 'make the demo organization and project once, and print calls that work')
    .addOption(new Option('--no-worker', 'leave the background work to "tundish worker"'))
    .action((options: Options) => guard(() => serve(options)))
}

async function serve(options: Options): Promise<void> {
  const app = await openApp(readConfig(process.env), { simulator: options.demo ? 'always' : 'embedded' })
  try {
    const running = await startServer(app, { worker: options.worker })
    await greet(running, options)
    await stopSignal()
    await running.stop()
  } finally {
    await app.close()
  }
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
