// The state of an import from another service with this API in the database: its options, its place, and the ids that were read.
import { Refusal } from '../../../lib/errors.ts'
import { inTransaction } from '../../../lib/pg/in-transaction.ts'
import type { NamedRow, Query } from '../../../lib/pg/types.ts'
import { tryTurn } from '../turn.ts'
import type { ItemKind } from './convert.ts'

/** What identifies an import. */
export interface ApiImportName {
  organizationId: string
  projectId: string
  /** The address of the data API that is read. */
  source: string
}

export interface ApiImportOptions {
  /** The address of the organization's billing API; null if payments are not read. */
  billing: string | null
  /** A hash of the file of customers: with other customers, payments are read again. */
  customers: string | null
}

/** Where the import continues. */
export interface Place {
  /** The step of the pass, and the position in it. */
  step: string
  at: string | null
  /** The time before which changes are known, by the clock of the service; null until the first pass is complete. */
  since: string | null
  /** The time that becomes `since` at the end of this pass. */
  next: string | null
  /** The time of the last row of the report that is stored. */
  report: string | null
  /** The id of the project there; not known of a service that does not send it, and of imports that an older version began. */
  project?: string
}

export interface Notes {
  /** Objects read. */
  read: number
  /** Objects that came more than once in a pass. */
  repeated: number
  /** The ids of the first hundred of them. */
  repeats: string[]
  rejected: number
  /** The first hundred objects that could not be imported, or not whole, with the reason. */
  rejects: string[]
  shortened: number
  erased: number
  /** Payments whose customer is not known. */
  unnamed?: number
  /** How many records the service says that its lists have. */
  totals: Partial<Record<ItemKind, number>>
  /** What the service cannot show, in sentences. */
  missing: string[]
  /** The last complete pass that read everything again, because the service had lost changes. */
  anew?: number
}

export interface ApiImportState extends ApiImportName {
  options: ApiImportOptions
  status: 'running' | 'following' | 'done' | 'failed'
  /** How often everything, or everything that changed, was read: the first pass is 1. */
  pass: number
  place: Place
  notes: Notes
}

export const emptyNotes = (): Notes => ({
  read: 0,
  repeated: 0,
  repeats: [],
  rejected: 0,
  rejects: [],
  shortened: 0,
  erased: 0,
  totals: {},
  missing: [],
})

const KEY = 'organization_id = $1 and project_id = $2 and source = $3'
const keyOf = ({ organizationId, projectId, source }: ApiImportName) => [organizationId, projectId, source]

/**
 * Takes the turn of the import on this connection; it ends with the process, however that ends. From here on statements of the
 * connection have no timeout: the comparison at the end reads everything that was imported.
 */
export async function takeTurn(query: Query, name: ApiImportName): Promise<void> {
  await query('set statement_timeout = 0')
  if (!(await tryTurn(query, `import api ${JSON.stringify(keyOf(name))}`)))
    throw new Refusal(
      'An import from this address into this project is running already: wait for it, or stop it first.',
    )
}

/** Continues an import that was interrupted, or reads what changed since one that was done; else begins. */
export async function beginState(
  query: Query,
  name: ApiImportName,
  options: ApiImportOptions,
): Promise<ApiImportState> {
  const [row] = await query(`select * from api_imports where ${KEY}`, keyOf(name))
  const known = row && stateOf(row)
  if (!known) {
    const place: Place = { step: '', at: null, since: null, next: null, report: null }
    await query(
      `insert into api_imports (organization_id, project_id, source, options, status, pass, place, notes, started_at, updated_at)
       values ($1, $2, $3, $4, 'running', 1, $5, $6, db_clock(), db_clock())`,
      [...keyOf(name), JSON.stringify(options), JSON.stringify(place), JSON.stringify(emptyNotes())],
    )
    return { ...name, options, status: 'running', pass: 1, place, notes: emptyNotes() }
  }
  const { billing, customers } = known.options
  if (options.customers !== null && options.customers !== customers) await forgetPayments(query, name)
  const same = billing === options.billing && customers === options.customers
  return { ...known, options, status: 'running', place: { ...known.place, ...(!same && { report: null }) } }
}

/** From here on the payments that were read count as not read, so that they are read again from the beginning of the report. */
const forgetPayments = (query: Query, { projectId, source }: ApiImportName) =>
  query(`update api_import_ids set pass = 0 where project_id = $1 and source = $2 and kind = 'payment'`, [
    projectId,
    source,
  ])

const DATED: ItemKind[] = ['funnel', 'experiment', 'product', 'profile', 'session', 'subscription', 'transaction']

/**
 * Begins anew: the service has lost the changes that it showed with `updated_at` at or after `voidFrom`. What it shows now is older,
 * and would be skipped, so the times of the lost changes are forgotten.
 */
export async function beginAnew(query: Query, state: ApiImportState, voidFrom: string): Promise<void> {
  state.pass += 1
  state.place = { ...state.place, step: '', at: null, since: null, next: null, report: null }
  await inTransaction(query, async () => {
    await query('select hold_organization($1)', [state.organizationId])
    for (const kind of DATED)
      await query(
        `update ${kind}s t set source_updated_at = '0001-01-01T00:00:00Z' from api_import_ids i
         where i.project_id = $1 and i.source = $2 and i.kind = $4
           and t.project_id = $1 and t.id = i.id and t.source_updated_at >= $3`,
        [state.projectId, state.source, voidFrom, kind],
      )
    await forgetPayments(query, state)
    await saveState(query, state)
  })
}

export async function saveState(query: Query, state: ApiImportState): Promise<void> {
  await query(
    `update api_imports set options = $4, status = $5, pass = $6, place = $7, notes = $8, updated_at = db_clock() where ${KEY}`,
    [
      ...keyOf(state),
      JSON.stringify(state.options),
      state.status,
      state.pass,
      JSON.stringify(state.place),
      JSON.stringify(state.notes),
    ],
  )
}

function stateOf(row: NamedRow): ApiImportState {
  return {
    organizationId: row.organization_id!,
    projectId: row.project_id!,
    source: row.source!,
    options: JSON.parse(row.options!),
    status: row.status as ApiImportState['status'],
    pass: Number(row.pass),
    place: JSON.parse(row.place!),
    notes: { ...emptyNotes(), ...JSON.parse(row.notes!) },
  }
}
