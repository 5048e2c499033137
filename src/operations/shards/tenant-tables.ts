// The tables with rows of an organization, read from the catalogue, so that tables of later migrations move too.
import pg from 'pg'
import { Refusal } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import { readCatalogue, type Table } from '../backup/catalogue.ts'

export interface TenantTable extends Table {
  /** A condition on its rows of the organization. */
  condition: string
  /** Copied while the organization is served; all others in the last step. */
  ahead: boolean
  /** Its rows are locked in the last step. */
  held: boolean
}

// What is large, has a primary key, and is not looked through by background work: a row of a queue that was copied ahead
// would be worked on twice. Settling leaves out the orders and refunds of organizations that are moving here.
const AHEAD = new Set([
  'funnels',
  'experiments',
  'products',
  'profiles',
  'sessions',
  'replies',
  'subscriptions',
  'transactions',
  'customers',
  'report_transactions',
  'orders',
  'refunds',
  'consumables',
  'credit_entries',
  'credit_keys',
  'provider_fees',
  'finance_rows',
  'balance_entries',
  'stripe_checkouts',
  'stripe_invoice_payments',
  'api_import_ids',
  'figures_answers',
  'figures_declines',
  'figures_experiments',
  'figures_payments',
  'figures_renewals',
  'figures_returned',
  'figures_sales',
  'figures_screens',
  'figures_spend',
  'figures_subscriptions',
  'figures_visits',
  'figures_worth',
])

// Of the tables that are copied ahead, those whose rows are locked. A new order refers to its customer, and all that
// changes with a charge locks its order.
const HELD = new Set(['customers', 'orders', 'refunds'])

// Given anew on the other shard: the project's number in locks is of its server.
const OF_THE_SERVER: Record<string, string> = { projects: 'number' }

/** A table comes after those it refers to. */
export async function tenantTables(query: Query, organization: string, projects: string[]): Promise<TenantTable[]> {
  const catalogue = await readCatalogue(query)
  if (!catalogue) throw new Refusal('The database has no tables of Tundish.')
  return catalogue.tables.flatMap(({ name, columns }) => {
    const condition = conditionOf(name, columns, organization, projects)
    if (condition === undefined) return []
    const moved = columns.filter((column) => column !== OF_THE_SERVER[name])
    const ahead = AHEAD.has(name)
    return [{ name, columns: moved, condition, ahead, held: !ahead || HELD.has(name) }]
  })
}

// As literals: a publication takes no parameters.
function conditionOf(name: string, columns: string[], organization: string, projects: string[]): string | undefined {
  if (name === 'organizations') return `id = ${pg.escapeLiteral(organization)}`
  if (columns.includes('organization_id')) return `organization_id = ${pg.escapeLiteral(organization)}`
  if (!columns.includes('project_id')) return undefined
  return projects.length === 0 ? 'false' : `project_id in (${projects.map((id) => pg.escapeLiteral(id)).join(', ')})`
}
