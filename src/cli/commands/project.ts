// tundish project: creates, lists and limits projects.
import { type Command, Option } from 'commander'
import type { App } from '../../app.ts'
import { checkRateLimit } from '../../core/limits/setting.ts'
import { listProjects } from '../../core/tenants/listing.ts'
import { UsageError } from '../../lib/errors.ts'
import { action } from './command.ts'
import { addList } from './list-command.ts'
import { addOperations, runOperation } from './operations.ts'

export async function register(program: Command): Promise<void> {
  const project = program.command('project').description('Manage projects, each with its own records and keys')
  await addOperations(project, ['project create', 'project list', 'project set'])

  action(
    project
      .command('create <id>')
      .description('Create a project and print its secret key, once')
      .requiredOption('--org <id>', 'The organization that it belongs to')
      .option('--name <name>', 'Display name'),
    async (app, id: string, { org, name }: { org: string; name?: string }) => {
      const made = await runOperation('project', 'createProject', app, {
        params: { organization_id: org },
        body: { id, ...(name !== undefined && { name }) },
      })
      const text = [
        `Created the project ${made.id}. Its secret key, shown only now:`,
        made.secret_key,
        'The same key in the form that webhook libraries take:',
        made.webhook_secret,
      ]
      return { json: made, text: text.join('\n') }
    },
  )
  action(
    project
      .command('set <id>')
      .description('Set what the keys of a project may do, and how often, and its time zone and reporting currency')
      .option('--rate-limit <limit>', 'Requests a second: 200; with how many at once: 200/1000; off; default')
      .addOption(
        new Option(
          '--write-payments <setting>',
          'Whether keys may write payments, customers and merchant accounts',
        ).choices(['on', 'off']),
      )
      .option('--time-zone <name>', 'Time zone of the days of its figures, such as Europe/Madrid')
      .option('--currency <code>', 'Reporting currency of its figures, such as EUR'),
    set,
  )
  addList(project, {
    noun: 'project',
    columns: ['id', 'organization_id', 'name', 'created_at'],
    list: listProjects,
  })
}

interface Settings {
  rateLimit?: string
  writePayments?: string
  timeZone?: string
  currency?: string
}

/** Checks all options before it sets any, so that a refused command changes nothing. */
async function set(app: App, id: string, { rateLimit, writePayments, timeZone, currency }: Settings) {
  if ([rateLimit, writePayments, timeZone, currency].every((one) => one === undefined))
    throw new UsageError('Give --rate-limit, --write-payments, --time-zone or --currency.')
  if (rateLimit !== undefined) checkRateLimit(rateLimit)
  const params = { project_id: id }
  const sentences: string[] = []
  let json = {}
  // First, because this operation checks its options, and may be refused while an import runs.
  if (timeZone !== undefined || currency !== undefined) {
    const body = { ...(timeZone !== undefined && { time_zone: timeZone }), ...(currency !== undefined && { currency }) }
    const reporting = await runOperation('project', 'setProjectReporting', app, { params, body })
    json = reporting
    sentences.push(
      `Figures of project ${id} are in the time zone ${reporting.time_zone} and in ${reporting.currency}. If they were in others, all days are being computed again.`,
    )
  }
  if (rateLimit !== undefined) {
    const limited = await runOperation('project', 'setProjectRateLimit', app, {
      params,
      body: { rate_limit: rateLimit },
    })
    json = { ...json, ...limited }
    sentences.push(`Each key of project ${id} may send ${describeRate(String(limited.rate_limit))}.`)
  }
  if (writePayments !== undefined) {
    const body = { write_payments: writePayments === 'on' }
    json = { ...json, ...(await runOperation('project', 'setProjectWritePayments', app, { params, body })) }
    const may = body.write_payments ? 'may' : 'may not'
    sentences.push(`Keys of project ${id} ${may} write payments, customers and merchant accounts, within a second.`)
  }
  return { json, text: sentences.join('\n') }
}

/** `off`, `default` or `200/1000` as part of a sentence. */
function describeRate(limit: string): string {
  if (limit === 'off') return 'without limit'
  if (limit === 'default') return 'as fast as RATE_LIMIT says'
  const [rate, burst] = limit.split('/')
  return `${rate} ${rate === '1' ? 'request' : 'requests'} a second, ${burst} at once`
}
