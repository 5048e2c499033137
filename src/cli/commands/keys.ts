// tundish keys: replaces a secret key, at once or with an overlap.
import type { Command } from 'commander'
import type { App } from '../../app.ts'
import { audited } from '../../core/audit/audit.ts'
import { webhookSecret } from '../../core/tenants/key-text.ts'
import { refuseLeaving } from '../../core/tenants/leaving.ts'
import { regenerateKey, within } from '../../core/tenants/tenants.ts'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { action } from './command.ts'
import { addYes, confirm } from './confirm.ts'
import { addOperations, commandLine } from './operations.ts'
import { readDuration } from './times.ts'

export async function register(program: Command): Promise<void> {
  const keys = program.command('keys').description('Manage the secret keys of an organization or a project')
  await addOperations(keys)
  const regenerate = keys
    .command('regenerate')
    .description('Create a new key and revoke all old ones')
    .option('--org <id>', 'The organization')
    .option('--project <id>', 'The project')
    .option('--overlap <time>', 'How long the old keys stay valid: 24h, 90m, 7d; by default not at all')
  action(
    addYes(regenerate),
    async (app, { org, project, overlap, yes }: { org?: string; project?: string; overlap?: string; yes?: true }) => {
      if ((org === undefined) === (project === undefined)) throw new UsageError('Give either --org or --project.')
      const seconds = overlap === undefined ? 0 : readDuration('--overlap', overlap)
      await confirm(yes, () => describe(app, { org, project, overlap, seconds }))
      const made = await audited(app, commandLine(), async (query) => {
        await refuseLeaving(query, { organization_id: org, project_id: project })
        const result = await regenerateKey(within(query), app.seal, { organization: org, project }, seconds)
        const target = project === undefined ? `organization ${org}` : `project ${project}`
        const after = { previous_expires_at: result.previous_expires_at }
        return { entry: { action: 'keys.regenerated', target, after }, result }
      })
      const until = made.previous_expires_at
      const old = until ? `The old keys are valid until ${until}.` : 'The old keys are no longer valid.'
      const webhook = project === undefined ? {} : { webhook_secret: webhookSecret(made.secret_key) }
      const forWebhooks = webhook.webhook_secret
        ? `The same key in the form that webhook libraries take:\n${webhook.webhook_secret}\n`
        : ''
      return {
        json: { ...made, ...webhook },
        text: `The new secret key, shown only now:\n${made.secret_key}\n${forWebhooks}${old}`,
      }
    },
  )
}

interface Regeneration {
  org: string | undefined
  project: string | undefined
  overlap: string | undefined
  seconds: number
}

async function describe({ db }: App, { org, project, overlap, seconds }: Regeneration): Promise<string> {
  const [what, id] = project === undefined ? ['organization', org!] : ['project', project]
  const keys = project === undefined ? 'k.organization_id = t.id and k.project_id is null' : 'k.project_id = t.id'
  const [row] = await db.query(
    `select (select count(*) from secret_keys k where ${keys} and (k.expires_at is null or k.expires_at > db_clock())) as valid
     from ${what}s t where t.id = $1`,
    [id],
  )
  if (!row) throw new Refusal(`There is no ${what} "${id}".`)
  const when = seconds === 0 ? 'at once' : `after ${overlap}`
  return `Creates a new key for ${what} ${id} and ends its valid keys (${row.valid}) ${when}: from then on programs that use them get 401.`
}
