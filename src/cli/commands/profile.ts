// tundish profile: operations on people, and the link of what is stored with what an account at Stripe names.
import { type Command, Option } from 'commander'
import type { App } from '../../app.ts'
import { refuseLeaving } from '../../core/tenants/leaving.ts'
import { findOrganization } from '../../data/ingest/load.ts'
import { linkAccount, type Proposals } from '../../data/ingest/stripe/link.ts'
import { type MetadataFields, readFields } from '../../data/ingest/stripe/names.ts'
import { findState, targetOptions } from '../../data/ingest/stripe/state.ts'
import { UsageError } from '../../lib/errors.ts'
import { type Result, untilStopped, withSettings } from './command.ts'
import { addYes, confirm } from './confirm.ts'
import { writeEntry } from './import-service.ts'
import { openAccount, readKey } from './import-stripe.ts'
import { addOperations } from './operations.ts'

interface Options {
  project: string
  merchantAccount?: string
  keyFile?: string
  externalIdKey?: string
  metadata?: MetadataFields
  matchEmail?: boolean
  apply?: boolean
  yes?: boolean
}

export async function register(program: Command): Promise<void> {
  const profile = program.command('profile').description('Show, merge, link and erase people')
  await addOperations(profile)
  const link = profile
    .command('link')
    .description('Propose merges and links of stored records by what objects at Stripe name')
    .addOption(new Option('--stripe', 'Of the merchant account at Stripe').makeOptionMandatory())
    .requiredOption('--project <id>', 'The project')
    .option('--merchant-account <id>', 'The merchant account; by default the only connected one')
    .option(
      '--key-file <file>',
      "File with a secret or restricted key (- for standard input), instead of the account's",
    )
    .option('--external-id-key <key>', "The field of a customer's metadata with your id; by default that of the import")
    .option(
      '--metadata <kind=field>',
      'Another field of metadata that names a record, such as profile=user_id (repeatable); by default those of the import',
      (given: string, before: MetadataFields = {}) => ({ ...before, ...readFields([given]) }),
    )
    .option('--match-email', 'Take a customer as the only profile with the same e-mail address, too')
    .option('--apply', 'Merge and link, instead of only proposing it')
  withSettings(addYes(link), (config, options) =>
    untilStopped(config, (app, signal) => run(app, options as Options, signal)),
  )
}

async function run(app: App, options: Options, signal: AbortSignal): Promise<Result> {
  const { project: projectId, apply = false, yes } = options
  if (yes && !apply) throw new UsageError('--yes belongs to --apply.')
  const organizationId = await findOrganization(app.db, projectId)
  const secretKey = options.keyFile === undefined ? undefined : await readKey(options.keyFile)
  const account = { org: organizationId, ...(options.merchantAccount && { merchantAccount: options.merchantAccount }) }
  const { source, merchantId } = await openAccount(app, account, secretKey, signal)
  try {
    const name = { organizationId, projectId, merchantId }
    const { options: imported = {} } = (await findState(app.db.query, name)) ?? {}
    const target = {
      ...name,
      ...targetOptions({
        external_id_key: options.externalIdKey ?? imported.external_id_key ?? null,
        metadata: options.metadata ?? imported.metadata ?? null,
        match_email: options.matchEmail ?? imported.match_email ?? false,
      }),
    }
    const link = (how: { apply: boolean }) => linkAccount(app, source, target, how)
    if (!apply) return resultOf(await link({ apply }), apply)
    await confirm(yes, async () => describe(await link({ apply: false }), false))
    return await applied(app, projectId, link)
  } finally {
    source.close()
  }
}

async function applied(
  app: App,
  projectId: string,
  link: (how: { apply: true }) => ReturnType<typeof linkAccount>,
): Promise<Result> {
  await refuseLeaving(app.db.query, { project_id: projectId })
  await writeEntry(app, { projectId }, 'profiles.link_asked', { of: 'stripe' })
  const done = await link({ apply: true })
  await writeEntry(app, { projectId }, 'profiles.linked', { merged: done.merges.length, linked: done.links.length })
  return resultOf(done, true)
}

const resultOf = (found: Proposals, isApplied: boolean): Result => ({
  json: { applied: isApplied, ...found },
  text: describe(found, isApplied),
})

const BY = {
  customer: 'the billing customer',
  metadata: 'metadata',
  session: 'the session in metadata',
  email: 'the e-mail address',
}

function describe({ read, merges, links, unknown }: Proposals, isApplied: boolean): string {
  const lines = [
    ...merges.map(({ from, into, by }) => `merge   ${from} into ${into} (by ${BY[by]})`),
    ...links.map(({ record, id, field, named }) => `link    ${record} ${id}: ${field} ${named}`),
    ...unknown.map(({ record, id, field, named }) => `wait    ${record} ${id}: ${field} ${named} is not stored`),
  ]
  const counts = `merges ${merges.length}, links ${links.length}, names of records that are not stored ${unknown.length}`
  const end = isApplied ? `Done: ${counts}.` : `Proposed: ${counts}. Nothing was changed: add --apply to do it.`
  return [...lines, `Objects read at Stripe: ${read}.`, end].join('\n')
}
