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
  links: Links
  checkouts: Checkouts
  fees: Fees
  /** Stores charges that Tundish made and that have no order here. */
  keepLost(charges: Movement[]): Promise<void>
}

/** The subscription of each payment, which only invoices have. */
export interface Links {
  add(links: { payment: string; subscription_id: string }[]): Promise<void>
  find(payments: string[]): Promise<Map<string, string>>
}

/** What the metadata of checkout sessions names, by the id of the subscription or payment intent that was bought. */
export interface Checkouts {
  add(named: { bought: string; names: Names }[]): Promise<void>
  find(bought: string[]): Promise<Map<string, Names>>
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

export const keepLostIn =
  (db: App['db'], { organizationId, merchantId }: Target): Context['keepLost'] =>
  (charges) =>
    storeLost(db.query, { organizationId, psp: 'stripe', merchantId }, charges)

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

export function storedLinks(db: App['db'], { organizationId, projectId }: Target): Links {
  return {
    async add(links) {
      await db.query(
        `with held as materialized (select hold_organization($1))
         insert into stripe_invoice_payments (organization_id, project_id, payment, subscription_id)
         select distinct on (payment) $1, $2, payment, subscription_id
         from json_populate_recordset(null::stripe_invoice_payments, $3), held
         on conflict (organization_id, project_id, payment) do update set subscription_id = excluded.subscription_id`,
        [organizationId, projectId, JSON.stringify(links)],
      )
    },
    async find(payments) {
      const rows = await db.query(
        `select payment, subscription_id from stripe_invoice_payments
         where organization_id = $1 and project_id = $2 and payment = any($3)`,
        [organizationId, projectId, payments],
      )
      return new Map(rows.map(({ payment, subscription_id }) => [payment!, subscription_id!]))
    },
  }
}

export function storedCheckouts(db: App['db'], { organizationId, projectId }: Target): Checkouts {
  return {
    async add(named) {
      await db.query(
        `with held as materialized (select hold_organization($1))
         insert into stripe_checkouts (organization_id, project_id, bought, names)
         select distinct on (bought) $1, $2, bought, names
         from json_populate_recordset(null::stripe_checkouts, $3), held
         on conflict (organization_id, project_id, bought) do update set names = excluded.names`,
        [organizationId, projectId, JSON.stringify(named)],
      )
    },
    async find(bought) {
      if (bought.length === 0) return new Map()
      const rows = await db.query(
        'select bought, names from stripe_checkouts where organization_id = $1 and project_id = $2 and bought = any($3)',
        [organizationId, projectId, bought],
      )
      return new Map(rows.map(({ bought, names }) => [bought!, JSON.parse(names!)]))
    },
  }
}

/** For a dry run, which stores nothing. */
export function checkoutsInMemory(): Checkouts {
  const known = new Map<string, Names>()
  return {
    async add(named) {
      for (const { bought, names } of named) known.set(bought, names)
    },
    find: async (bought) => new Map(bought.flatMap((one) => (known.has(one) ? [[one, known.get(one)!]] : []))),
  }
}

/** For a dry run, which stores nothing. */
export function linksInMemory(): Links {
  const known = new Map<string, string>()
  return {
    async add(links) {
      for (const { payment, subscription_id } of links) known.set(payment, subscription_id)
    },
    find: async (payments) => new Map(payments.flatMap((one) => (known.has(one) ? [[one, known.get(one)!]] : []))),
  }
}
