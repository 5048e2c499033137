// tundish webhook: the endpoints of a project, and `listen`, which forwards its events to a program on this machine.
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { readConfig } from '../../config.ts'
import { eventTypes } from '../../core/events/catalogue.ts'
import { forwardEvents } from '../../core/events/forward.ts'
import { UsageError } from '../../lib/errors.ts'
import { guard, untilStopped } from './command.ts'
import { addOperations } from './operations.ts'

interface Options {
  project: string
  forwardTo: string
  kinds?: string
}

export async function register(program: Command): Promise<void> {
  const webhook = program.command('webhook').description('Manage the endpoints that receive the events of a project')
  await addOperations(webhook)
  webhook
    .command('listen')
    .description('Forward new events, signed, to a program on this machine until Ctrl-C; needs no endpoint')
    .requiredOption('--project <id>', 'The project')
    .requiredOption('--forward-to <url>', 'URL of the program, such as http://127.0.0.1:3000/webhooks')
    .option('--kinds <kinds>', 'Only these kinds, separated by commas')
    .action((options: Options) => guard(() => listen(options)))
}

async function listen({ project, forwardTo, kinds }: Options): Promise<void> {
  const url = URL.canParse(forwardTo) ? new URL(forwardTo) : undefined
  if (!url || !['http:', 'https:'].includes(url.protocol))
    throw new UsageError(`--forward-to must be an http:// or https:// address, got "${forwardTo}".`)
  const wanted = kinds === undefined ? [...eventTypes] : kinds.split(',')
  const unknown = wanted.find((kind) => !(eventTypes as readonly string[]).includes(kind))
  if (unknown !== undefined) throw new UsageError(`--kinds: there is no kind of event "${unknown}".`)
  const target = { projectId: project, url: url.href, kinds: wanted }
  const options = { connections: { read: 1, plain: 2 } }
  await untilStopped(readConfig(process.env), (app, signal) => forward(app, { ...target, signal }), options)
}

async function forward(app: App, target: Parameters<typeof forwardEvents>[1]): Promise<void> {
  const say = (line: string) => process.stdout.write(`${line}\n`)
  const begin = () => say(`Forwarding the events of project ${target.projectId} to ${target.url}. Ctrl-C stops it.`)
  for await (const { type, id, outcome, durationMs } of forwardEvents(app, target, begin)) {
    const result = outcome.status === undefined ? outcome.error : `${outcome.status}, ${Math.round(durationMs)} ms`
    say(`${type}  ${id}  ${result}`)
  }
}
