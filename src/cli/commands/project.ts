// tundish project: creates, lists and limits projects.
import type { Command } from 'commander'
import { listProjects } from '../../core/tenants/listing.ts'
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
      .description('Set the rate limit of the keys of a project')
      .requiredOption('--rate-limit <limit>', 'Requests a second: 200; with how many at once: 200/1000; off; default'),
    async (app, id: string, { rateLimit }: { rateLimit: string }) => {
      const input = { params: { project_id: id }, body: { rate_limit: rateLimit } }
      const json = await runOperation('project', 'setProjectRateLimit', app, input)
      return { json, text: `Each key of project ${id} may send ${describeRate(String(json.rate_limit))}.` }
    },
  )
  addList(project, {
    noun: 'project',
    columns: ['id', 'organization_id', 'name', 'created_at'],
    list: listProjects,
  })
}

/** `off`, `default` or `200/1000` as part of a sentence. */
function describeRate(limit: string): string {
  if (limit === 'off') return 'without limit'
  if (limit === 'default') return 'as fast as RATE_LIMIT says'
  const [rate, burst] = limit.split('/')
  return `${rate} requests a second, ${burst} at once`
}
