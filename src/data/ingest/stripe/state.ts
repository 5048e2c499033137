// The state of an import from Stripe in the database: its options and progress.
import { DAY_MS } from '../../../lib/days.ts'
import type { NamedRow, Query } from '../../../lib/pg/types.ts'
import { instantFromPg } from '../../../lib/time.ts'
import type { MetadataFields } from './names.ts'
import { emptyTally, type Tally } from './tally.ts'

/** What identifies an import. */
export interface ImportName {
  organizationId: string
  projectId: string
  merchantId: string
}

export interface StripeImportOptions {
  /** Only objects made at or after this instant are read. */
  since?: string | null
  /** The name in a customer's metadata that holds the client's id of it. */
  external_id_key?: string | null
  /** Whether changes are followed once everything is read. */
  follow?: boolean
  /** Other names of the metadata that names records. */
  metadata?: MetadataFields | null
  /** Whether customers are also recognized by the e-mail address. */
  match_email?: boolean
}

/** The options that a conversion needs. */
export const targetOptions = ({ external_id_key, metadata, match_email }: StripeImportOptions) => ({
  externalIdKey: external_id_key ?? undefined,
  metadata: metadata ?? undefined,
  matchEmail: match_email ?? false,
})

export type Status = 'waiting' | 'running' | 'following' | 'done' | 'failed' | 'stopped'

export interface ImportState extends ImportName {
  options: StripeImportOptions
  background: boolean
  status: Status
  step: string
  after: string | null
  /** Date-time; events that are older are known. */
  eventsSince: string
  tally: Tally
  error: string | null
  startedAt: string
  updatedAt: string
  finishedAt: string | null
}

const KEY = 'organization_id = $1 and project_id = $2 and psp_merchant_id = $3'
export const keyOf = ({ organizationId, projectId, merchantId }: ImportName) => [organizationId, projectId, merchantId]

export async function findState(query: Query, name: ImportName): Promise<ImportState | undefined> {
  const [state] = await statesWhere(query, KEY, keyOf(name))
  return state
}

const statesWhere = async (query: Query, condition: string, params: string[]): Promise<ImportState[]> =>
  (await query(`select * from stripe_imports where ${condition}`, params)).map(stateOf)

/** The imports of a project. */
export const listStates = (query: Query, projectId: string) =>
  statesWhere(query, 'project_id = $1 order by psp_merchant_id', [projectId])

const UNFINISHED = ['waiting', 'running', 'following']
const IS_UNFINISHED = `status in (${UNFINISHED.map((one) => `'${one}'`).join(', ')})`

/** Whether the server carries the import out, or does once it runs again. */
export const isInBackground = ({ background, status }: ImportState) => background && UNFINISHED.includes(status)

const IN_BACKGROUND = `background and ${IS_UNFINISHED} order by updated_at limit 100`

/** The imports to run in the background, including those of a killed server. */
export const backgroundStates = (query: Query) => statesWhere(query, IN_BACKGROUND, [])

const FOLLOWS = `organization_id = $1 and psp_merchant_id = $2 and status <> 'stopped'
  and (options ->> 'follow')::boolean order by project_id`

/** The imports that follow an account, also while its lists are still being read. */
export const followersOf = (
  query: Query,
  { organizationId, merchantId }: Pick<ImportName, 'organizationId' | 'merchantId'>,
) => statesWhere(query, FOLLOWS, [organizationId, merchantId])

// Stripe keeps events for 30 days: after a longer pause an import cannot catch up by events.
const EVENTS_KEPT_MS = 29 * DAY_MS

/**
 * Begins an import, or continues one that was interrupted, or that has read everything and is now to follow changes. Otherwise,
 * and with other options than before, it begins at the first step.
 */
export async function beginState(
  query: Query,
  name: ImportName,
  options: StripeImportOptions,
  { background, firstStep }: { background: boolean; firstStep: string },
): Promise<ImportState> {
  const known = await findState(query, name)
  if (known && canGoOn(known, options)) {
    await query(
      `update stripe_imports set options = $4, background = $5, status = 'waiting', error = null, updated_at = db_clock()
       where ${KEY}`,
      [...keyOf(name), JSON.stringify(options), background],
    )
  } else {
    await query(
      `insert into stripe_imports as i (organization_id, project_id, psp_merchant_id, options, background, status, step,
         events_since, tally, started_at, updated_at)
       values ($1, $2, $3, $4, $5, 'waiting', $6, db_clock(), $7, db_clock(), db_clock())
       on conflict (organization_id, project_id, psp_merchant_id) do update set
         options = excluded.options, background = excluded.background, status = excluded.status, step = excluded.step,
         after = null, events_since = excluded.events_since, tally = excluded.tally, error = null,
         started_at = excluded.started_at, updated_at = excluded.updated_at, finished_at = null`,
      [...keyOf(name), JSON.stringify(options), background, firstStep, JSON.stringify(emptyTally())],
    )
  }
  return (await findState(query, name))!
}

/** Whether Stripe may have deleted events that the import has not read. */
export const isLeftBehind = ({ eventsSince }: ImportState) => Date.now() - Date.parse(eventsSince) >= EVENTS_KEPT_MS

function canGoOn(known: ImportState, options: StripeImportOptions): boolean {
  return (
    !isLeftBehind(known) && isSame(known.options, options) && (known.finishedAt === null || options.follow === true)
  )
}

/** Whether both read the same objects; `follow` makes no difference. */
function isSame(one: StripeImportOptions, other: StripeImportOptions): boolean {
  const read = ({ since, external_id_key, metadata, match_email }: StripeImportOptions) =>
    JSON.stringify([
      since ?? null,
      external_id_key ?? null,
      Object.entries(metadata ?? {}).sort(),
      match_email ?? false,
    ])
  return read(one) === read(other)
}

/** Saves the state, and sets its `updatedAt`; returns false, without saving, if the import was stopped in between. */
export async function saveState(query: Query, state: ImportState): Promise<boolean> {
  const rows = await query(
    `update stripe_imports set status = $4, step = $5, after = $6, events_since = $7, tally = $8, error = $9,
       updated_at = db_clock(),
       finished_at = case when $4 in ('done', 'following') then coalesce(finished_at, db_clock()) end
     where ${KEY} and status <> 'stopped' returning updated_at`,
    [
      ...keyOf(state),
      state.status,
      state.step,
      state.after,
      state.eventsSince,
      JSON.stringify(state.tally),
      state.error,
    ],
  )
  if (rows.length > 0) state.updatedAt = instantFromPg(rows[0]!.updated_at!)
  return rows.length > 0
}

export async function isStopped(query: Query, name: ImportName): Promise<boolean> {
  const [row] = await query(`select status from stripe_imports where ${KEY}`, keyOf(name))
  return row?.status !== 'following' && row?.status !== 'running'
}

/** Stops an import in the background; its process notices within seconds. */
export async function stopState(query: Query, name: ImportName): Promise<boolean> {
  const rows = await query(
    `update stripe_imports set status = 'stopped', updated_at = db_clock()
     where ${KEY} and ${IS_UNFINISHED} returning project_id`,
    keyOf(name),
  )
  return rows.length > 0
}

function stateOf(row: NamedRow): ImportState {
  return {
    organizationId: row.organization_id!,
    projectId: row.project_id!,
    merchantId: row.psp_merchant_id!,
    options: JSON.parse(row.options!),
    background: row.background === 't',
    status: row.status as Status,
    step: row.step!,
    after: row.after!,
    eventsSince: instantFromPg(row.events_since!),
    tally: JSON.parse(row.tally!),
    error: row.error!,
    startedAt: instantFromPg(row.started_at!),
    updatedAt: instantFromPg(row.updated_at!),
    finishedAt: row.finished_at ? instantFromPg(row.finished_at) : null,
  }
}
