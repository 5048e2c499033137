// tundish operator: creates, lists and revokes keys of the operator's API.
import { existsSync } from 'node:fs'
import { type Command, Option } from 'commander'
import { audited } from '../../core/audit/audit.ts'
import { type Access, ROLES, type Role } from '../../core/tenants/access.ts'
import {
  createOperator,
  endOperator,
  isOperatorKey,
  isValidOperator,
  makeOperatorKey,
  ROLE_OF_SCOPE,
  type Scope,
} from '../../core/tenants/operator-keys.ts'
import { readRefundLimits } from '../../core/tenants/refund-limits.ts'
import { checkName } from '../../core/tenants/tenants.ts'
import { httpAddress } from '../../lib/addresses.ts'
import { ApiError, Refusal, UsageError } from '../../lib/errors.ts'
import { whyNot } from '../../lib/files.ts'
import { writeNew } from '../../lib/new-file.ts'
import { makeLink, signInAddress } from '../../operator/dashboard/sessions.ts'
import { action } from './command.ts'
import { addOperations, commandLine } from './operations.ts'
import { readSecret } from './secrets.ts'
import { readDuration } from './times.ts'

interface NewKey {
  name: string
  role?: Role
  scope?: Scope
  org?: string[]
  project?: string[]
  refundLimit?: string[]
  expires?: string
  keyFile?: string
}

export async function register(program: Command): Promise<void> {
  const operator = program.command('operator').description('Manage keys of the dashboard and the operator’s API')
  await addOperations(operator)
  addCreate(operator)
  action(operator.command('revoke <id>').description('Revoke a key'), async (app, id: string) => {
    await audited(app, commandLine(), async (query) => {
      await endOperator(query, id).catch((error) => {
        throw error instanceof ApiError ? new Refusal(error.message) : error
      })
      return { entry: { action: 'operator.revoked', target: `operator key ${id}` }, result: undefined }
    })
    return { json: { id }, text: `The operator key ${id} is no longer valid.` }
  })
  action(
    operator.command('link <id>').description('Print a link that signs in to the dashboard once, with this key'),
    async (app, id: string) => {
      const token = await audited(app, commandLine(), async (query) => {
        if (!(await isValidOperator(query, id)))
          throw new Refusal(`There is no valid operator key with the id "${id}".`)
        const result = await makeLink(query, id)
        return { entry: { action: 'operator.link_made', target: `operator key ${id}` }, result }
      })
      const { dashboardUrl, adminHost, adminPort } = app.config
      const url = signInAddress(dashboardUrl ?? httpAddress(adminHost, adminPort), token)
      return { json: { url }, text: `This link signs in once, within 12 hours:\n${url}` }
    },
  )
}

function addCreate(operator: Command): void {
  action(
    operator
      .command('create')
      .description('Create a key and print it, once')
      .requiredOption('--name <name>', 'Its owner or its purpose')
      .addOption(new Option('--role <role>', 'What it may do (default: "read")').choices(ROLES))
      .addOption(
        new Option('--scope <scope>', 'Short for the roles read and owner')
          .choices(['read', 'write'])
          .conflicts('role'),
      )
      .option('--org <id>', 'Only this organization and its projects; may be repeated', collect)
      .option('--project <id>', 'Only this project; may be repeated', collect)
      .option(
        '--refund-limit <amount>',
        'For support: the most it may refund of one charge, such as "50 USD"; once for each currency',
        collect,
      )
      .option('--expires <time>', 'How long it is valid: 12h, 90d; by default without end')
      .option('--key-file <file>', 'File with the key, made if it does not exist: one key for several shards'),
    async (app, given: NewKey) => {
      const { name, expires, keyFile } = given
      checkName(name)
      const access = accessOf(given)
      const seconds = expires === undefined ? undefined : readDuration('--expires', expires)
      if (seconds === 0) throw new UsageError('--expires must be more than 0.')
      const key = keyFile === undefined ? undefined : await keyOf(keyFile)
      const shown = shownOf(access)
      const made = await audited(app, commandLine(), async (query) => {
        const result = await createOperator(query, { name, ...access, seconds, key })
        const after = { name, ...shown, ...(expires !== undefined && { expires_in: expires }) }
        return { entry: { action: 'operator.created', target: `operator key ${result.id}`, after }, result }
      })
      if (keyFile !== undefined)
        return {
          json: { id: made.id, name, ...shown, key_file: keyFile },
          text: `Created the operator key ${made.id}: it is in ${keyFile}.`,
        }
      return {
        json: { id: made.id, name, ...shown, operator_key: made.key },
        text: `Created the operator key ${made.id}, shown only now:\n${made.key}`,
      }
    },
  )
}

/** The role, the reach and the limits of the options. */
function accessOf({ role, scope = 'read', org, project, refundLimit }: NewKey): Access {
  const chosen = role ?? ROLE_OF_SCOPE[scope]
  if (refundLimit && chosen !== 'support') throw new UsageError('--refund-limit is for --role support.')
  return {
    role: chosen,
    reach: org || project ? { organizations: org ?? [], projects: project ?? [] } : null,
    refundLimits: chosen === 'support' ? readRefundLimits('--refund-limit', refundLimit ?? []) : null,
  }
}

/** Those of a key, as the list of keys has them. */
const shownOf = ({ role, reach, refundLimits }: Access) => ({
  role,
  ...reach,
  ...(refundLimits && { refund_limits: refundLimits }),
})

const collect = (value: string, before: string[] = []) => [...before, value]

/** The key in the file, or of standard input (`-`). A file that is not there is created with a new key, for its owner alone to read. */
async function keyOf(file: string): Promise<string> {
  if (file !== '-' && !existsSync(file)) createKeyFile(file)
  const key = await readSecret(file)
  if (key !== undefined && isOperatorKey(key)) return key
  throw new UsageError(`${file} must have one operator key, as "tundish operator create" makes it, and nothing else.`)
}

function createKeyFile(file: string): void {
  try {
    writeNew(file, makeOperatorKey())
  } catch (error) {
    throw new Refusal(`${file} cannot be created in its folder: ${whyNot(error as NodeJS.ErrnoException)}.`)
  }
}
