// Erasures of persons: the list, the receipt for the person, and the comparison of the ledger in the database with its file.
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { App } from '../../app.ts'
import { readLedgers } from '../../core/erasure/ledger-files.ts'
import { livingTwins } from '../../core/erasure/twins.ts'
import { Type, type TypeOf } from '../../lib/shape/schema.ts'
import { boolean, instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { instantFromPg } from '../../lib/time.ts'
import { notFound } from './exist.ts'
import { list, ofProject } from './list.ts'
import { reading } from './operation.ts'

const atProvider = shape('ErasureAtProvider', 'e', {
  psp: text('Payment provider.', { example: 'stripe' }),
  psp_merchant_id: text('Merchant account at the provider.'),
  target: text('The provider’s id of the customer, or of a saved card or a payment whose customer is looked up.', {
    example: 'cus_NffrFeUfNV2Hib',
  }),
  how: text('`empty` removes the personal data of the customer, `delete` the customer.', { enum: ['empty', 'delete'] }),
  status: text('`pending` until the provider has confirmed it; `unreachable` if no customer is found there.', {
    sql: `case when e.done_at is not null then 'done' when e.next_attempt_at is null then 'unreachable' else 'pending' end`,
    enum: ['pending', 'done', 'unreachable'],
  }),
  why: text('Why the last attempt failed, or the customer is unreachable.', { nullable: true }),
  done_at: instant('When it was done.', { nullable: true }),
})

const receipt = {
  project_id: Type.String({ description: 'Project.' }),
  profile_id: Type.String({ description: 'The person.' }),
  erased_at: Type.String({ format: 'date-time', description: 'When the person was erased.' }),
  removed: Type.Array(Type.String(), { description: 'What was removed.' }),
  kept: Type.Array(Type.String(), { description: 'What is kept, without personal data.' }),
  at_provider: Type.Array(atProvider.schema, {
    description: 'Erasures at payment providers, if the organization has set `erase_at_provider`.',
  }),
  same_person: Type.Array(Type.String(), {
    description:
      'Other profiles of the project with the e-mail address or the customer of the erased one, as far as they still live: they were not erased.',
  }),
}

const REMOVED = [
  'E-mail address, phone number, password hashes and ids in other systems',
  'IP addresses, browsers, postal codes, tracking cookies and parameters of every session',
  'Every reply to a question',
  'Payloads of webhooks, metadata of charges, and comments of refunds',
]
const KEPT = ['Transactions, subscriptions and orders, as the law requires of merchants', 'The ids of the records']

/** The receipt for a person who asked to be erased. It contains no personal data except the id of the profile. */
async function receiptOf({ db }: Pick<App, 'db'>, projectId: string, profileId: string) {
  const [row] = await db.query('select erased_at from erasures where project_id = $1 and profile_id = $2', [
    projectId,
    profileId,
  ])
  if (!row) throw notFound('erasure of profile', profileId)
  return {
    project_id: projectId,
    profile_id: profileId,
    erased_at: instantFromPg(row.erased_at!),
    removed: REMOVED,
    kept: KEPT,
    at_provider: (await db.query(LIST_AT_PROVIDER, [projectId, profileId])).map((row) => atProvider.readNamed(row)),
    same_person: await livingTwins(db.query, projectId, profileId),
  }
}

const LIST_AT_PROVIDER = `select ${atProvider.namedColumns} from provider_erasures e
  where e.project_id = $1 and e.profile_id = $2 order by e.psp, e.psp_merchant_id, e.target`

const AT_PROVIDER = `select count(*) from provider_erasures a
  where a.project_id = e.project_id and a.profile_id = e.profile_id`

const erasure = shape('Erasure', 'e', {
  project_id: text('Project.'),
  profile_id: text('The person.'),
  erased_at: instant('When the person was erased.'),
  is_known: boolean('Whether the profile is in the database.', {
    sql: 'exists (select from profiles p where p.project_id = e.project_id and p.id = e.profile_id)',
  }),
  at_provider: integer('Number of erasures at payment providers: of customers and of saved cards.', {
    sql: `(${AT_PROVIDER})`,
  }),
  at_provider_pending: integer('Number of them that are still pending.', {
    sql: `(${AT_PROVIDER} and a.next_attempt_at is not null)`,
  }),
  at_provider_unreachable: integer('Number of them whose customer is not found there: erase it by hand.', {
    sql: `(${AT_PROVIDER} and a.next_attempt_at is null and a.done_at is null)`,
  }),
})

const getErasure = reading({
  id: 'getErasure',
  right: 'people',
  command: 'profile receipt',
  path: '/projects/:project_id/erasures/:profile_id',
  tag: 'Profiles',
  summary: 'Get the receipt of an erasure',
  response: Type.Named('Receipt', receipt),
  run: (app, { params }) => receiptOf(app, params.project_id, params.profile_id),
})

const comparison = Type.Named('LedgerComparison', {
  in_database: Type.Integer({ description: 'Number of erasures in the database.' }),
  in_file: Type.Integer({ description: 'Number of erasures in the file.' }),
  missing_in_database: Type.Integer({ description: 'Number of erasures in the file that the database lacks.' }),
  missing_in_file: Type.Integer({ description: 'Number of erasures in the database that the file lacks.' }),
})
type Comparison = TypeOf<typeof comparison>

const compareLedgers = reading({
  id: 'compareLedgers',
  right: 'people',
  command: 'profile ledgers',
  path: '/erasures/ledgers',
  tag: 'Profiles',
  summary: 'Compare the ledger of erasures in the database with its file',
  response: comparison,
  run: (app) => cachedComparison(app),
})

// Reading both ledgers takes seconds when they are long, so the last comparison is kept. Both are only appended to.
const comparisons = new WeakMap<App['config'], { versions: string; result: Promise<Comparison> }>()

/**
 * Compares the ledgers, or returns the last comparison if they agreed then and neither has changed since. Every erasure raises
 * the number of its project in `erasure_marks`, and adds a line to the file. The line is written before the database commits: a
 * difference may be gone a moment later, so it is not kept.
 */
async function cachedComparison({ db, config }: App): Promise<Comparison> {
  const [sum] = await db.query('select sum(number) as erasures from erasure_marks')
  const file = await stat(config.erasureLedger).catch(() => undefined)
  const versions = [sum!.erasures, file?.ino, file?.size, file?.mtimeMs].join(' ')
  const last = comparisons.get(config)
  if (last?.versions === versions) return last.result
  const result = compare(db, config.erasureLedger)
  comparisons.set(config, { versions, result })
  const forget = () => comparisons.delete(config)
  result.then((found) => found.missing_in_database + found.missing_in_file > 0 && forget(), forget)
  return result
}

async function compare(db: App['db'], path: string): Promise<Comparison> {
  const rows = await db.query('select project_id, profile_id from erasures')
  const inDatabase = new Set(rows.map(({ project_id, profile_id }) => `${project_id} ${profile_id}`))
  const inFile = new Set<string>()
  if (existsSync(path))
    for await (const { project_id, profile_id } of readLedgers([path], [])) inFile.add(`${project_id} ${profile_id}`)
  return {
    in_database: inDatabase.size,
    in_file: inFile.size,
    missing_in_database: inFile.difference(inDatabase).size,
    missing_in_file: inDatabase.difference(inFile).size,
  }
}

export const erasures = [
  compareLedgers,
  list({
    id: 'listErasures',
    right: 'people',
    command: 'profile erased',
    path: '/projects/:project_id/erasures',
    tag: 'Profiles',
    summary: 'List erasures',
    shape: erasure,
    from: 'erasures e',
    at: 'e.erased_at',
    key: 'e.profile_id',
    ...ofProject('e'),
  }),
  getErasure,
] as const
