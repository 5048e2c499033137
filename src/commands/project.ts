// tundish project: makes and lists projects.
import type { Command } from 'commander'
import { listProjects } from '../tenants.ts'
import { action } from './command.ts'
import { addOperations, runOperation } from './operations.ts'

export function register(program: Command): void {
  const project = program.command('project').description('projects, each with its own records and key')
  addOperations(project, ['project create', 'project list'])

  action(
    project
      .command('create <id>')
      .description('make a project and print its secret key, once')
      .requiredOption('--org <id>', 'the organization it belongs to')
      .option('--name <name>', 'a name for people'),
    async (app, id: string, { org, name }: { org: string; name?: string }) => {
      const made = await runOperation('createProject', app, {
        params: { organization_id: org },
        body: { id, ...(name !== undefined && { name }) },
      })
      return { json: made, text: `Project ${made.id} is made. Its secret key, shown only now:\n${made.secret_key}` }
    },
  )
  action(project.command('list').description('list the projects'), async ({ db }) => {
    const list = await listProjects(db)
    const line = ({ id, organization_id, name }: (typeof list)[number]) => `${id}\t${organization_id}\t${name}`
    return { json: list, text: list.map(line).join('\n') || 'There is no project yet.' }
  })
}
