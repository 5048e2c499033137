// The context of an import from Stripe: the account, the target, and the ids that are stored.
import type { App } from '../../../app.ts'
import type { Fee } from '../../../payments/providers/fees.ts'
import { storeLost } from '../../../payments/providers/lost-movements.ts'
import type { Movement } from '../../../payments/providers/movements.ts'
import type { BalanceEntry, Payout } from '../../../payments/providers/payouts.ts'
import type { Target } from './convert.ts'
import type { Names } from './names.ts'
import type { StripeSource } from './source.ts'
import type { Rejecting } from './tally.ts'

/** The tables that Stripe's objects refer to. */
export type Referred = 'profiles' | 'products' | 'subscriptions' | 'transactions'

export interface Context extends Rejecting {
  db: App['db']
  source: StripeSource
  target: Target
  /** Objects made before this time, in seconds as Stripe has it, are not imported. */
  sinceS?: number | undefined
  /** Whether changes are sent to webhooks: once the lists are read, an import that follows the account is a feed. */
  emitEvents?: boolean
  /** Which of these ids are stored, or will be by the same import. */
  known(table: Referred, ids: string[]): Promise<Set<string>>
  /** The subscription of each payment, which only invoices have. */
  links: Lookup<string>
  /** What the metadata of checkout sessions names, by the id of the subscription or payment intent that was bought. */
  checkouts: Lookup<Names>
  fees: Fees
  /** Stores charges that Tundish made and that have no order here. */
  keepLost(charges: Movement[]): Promise<void>
}

/** What an import learns of some ids from one list, for the objects of a later one. */
export interface Lookup<Value> {
  add(values: ReadonlyMap<string, Value>): Promise<void>
  find(ids: string[]): Promise<Map<string, Value>>
}

/** The sums of stored fees, by month and currency. */
export interface StoredFees {
  month: string
  currency: string
  count: number
  minor: bigint
}

/** Where fees are stored. */
export interface Fees {
  /** Stores fees, and returns their stored sums. */
  add(fees: Fee[]): Promise<StoredFees[]>
  /** Stores entries of the account's balance. */
  enter(entries: BalanceEntry[]): Promise<void>
  /** Stores a payout with its entries. */
  payOut(payout: Payout, entries: BalanceEntry[]): Promise<void>
  /** Those of these entries that are not stored. */
  unknown(entryIds: string[]): Promise<string[]>
}

export async function storedIds(
  db: App['db'],
  table: Referred,
  projectId: string,
  ids: string[],
): Promise<Set<string>> {
  // A customer who is the person of another profile is stored as an alias of it.
  const aliases =
    table === 'profiles' ? 'union select alias from profile_aliases where project_id = $1 and alias = any($2)' : ''
  const rows = await db.query(`select id from ${table} where project_id = $1 and id = any($2) ${aliases}`, [
    projectId,
    ids,
  ])
  return new Set(rows.map(({ id }) => id!))
}

/** What is stored of the target, as an import that writes needs it. */
export function storedOf(
  db: App['db'],
  target: Target,
): Pick<Context, 'db' | 'known' | 'links' | 'checkouts' | 'keepLost'> {
  const { organizationId, projectId, merchantId } = target
  return {
    db,
    known: (table, ids) => storedIds(db, table, projectId, ids),
    links: storedLookup(db, target, 'stripe_invoice_payments', 'payment', 'subscription_id'),
    checkouts: storedLookup(db, target, 'stripe_checkouts', 'bought', 'names'),
    keepLost: (charges) => storeLost(db.query, { organizationId, psp: 'stripe', merchantId }, charges),
  }
}

function storedLookup<Value>(
  db: App['db'],
  { organizationId, projectId }: Target,
  table: string,
  key: string,
  column: string,
): Lookup<Value> {
  return {
    async add(values) {
      if (values.size === 0) return
      const rows = Array.from(values, ([id, value]) => ({ [key]: id, [column]: value }))
      await db.query(
        `with held as materialized (select hold_organization($1))
         insert into ${table} (organization_id, project_id, ${key}, ${column})
         select $1, $2, ${key}, ${column} from json_populate_recordset(null::${table}, $3), held
         on conflict (organization_id, project_id, ${key}) do update set ${column} = excluded.${column}`,
        [organizationId, projectId, JSON.stringify(rows)],
      )
    },
    async find(ids) {
      if (ids.length === 0) return new Map()
      const rows = await db.query(
        `select ${key} as id, to_json(${column}) as value from ${table}
         where organization_id = $1 and project_id = $2 and ${key} = any($3)`,
        [organizationId, projectId, ids],
      )
      return new Map(rows.map(({ id, value }) => [id!, JSON.parse(value!)]))
    },
  }
}

/** For a dry run, which stores nothing. */
export function lookupInMemory<Value>(): Lookup<Value> {
  const known = new Map<string, Value>()
  return {
    async add(values) {
      for (const [id, value] of values) known.set(id, value)
    },
    find: async (ids) => new Map(ids.flatMap((id) => (known.has(id) ? [[id, known.get(id)!]] : []))),
  }
}
