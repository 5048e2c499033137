// Charges and refunds in progress: the lease of the process that works on one, and when its outcome is looked up next.
import type { Db } from '../../../lib/pg/db.ts'
import type { NamedRow, Query } from '../../../lib/pg/types.ts'
import { statementsOf, type Table } from './in-progress-statements.ts'
import { pauseSeconds } from './lease.ts'
import type { Room } from './turns.ts'

/** The columns of an order or refund that this file needs. */
export type InProgress = NamedRow & {
  organization_id: string
  order_id: string
  status: string
  /** How often the row was taken from the queue. A process with an older number has lost it to another process. */
  looks: string
}

/** Why a row is given back to the queue. */
export interface HandOver {
  /** Seconds until the next look; if omitted, they depend on the number of looks so far. */
  pauseS?: number
  /** Whether a look-up did not find it at the provider. */
  isNotFound?: boolean
  /** How the provider's outcome differs from the request, which an operator has to judge. */
  mismatch?: 'reference' | 'currency'
  /** Whether the provider answered that it decides later. */
  isPending?: boolean
  /** A refund for which the provider was not called so far. */
  isUnsent?: boolean
  /** The provider's id of a refund, if it is known. */
  transactionId?: string | undefined
}

/** The operations on one table's rows in progress. A process holds a row after `takeDue`, `take` or its claim. */
export function inProgress<Row extends InProgress>(table: Table) {
  const statements = statementsOf(table)
  return {
    /** Gives a row back, to be looked at again, at once if there was news of it; does nothing when another process has it by now. */
    async handOver(db: Db, row: Row, how: HandOver = {}): Promise<void> {
      const { organization_id, looks } = row
      const { pauseS = pauseSeconds(Number(looks)), isNotFound = false, mismatch = null } = how
      const { isPending = false, isUnsent = false, transactionId = null } = how
      const ofRefund = table.name === 'refunds' ? [isUnsent, transactionId] : []
      const given = [pauseS, isNotFound, mismatch, isPending, ...ofRefund]
      await db.query(statements.handOver, [organization_id, row[table.id]!, looks, ...given])
    },

    /** Takes rows that are due, for as long as the lease: each account's first before any account's second. */
    takeDue: (db: Db, { most, perAccount, accounts }: Room, leaseMs: number): Promise<Row[]> =>
      db.query<Row>(statements.takeDue, [
        most,
        leaseMs / 1000,
        perAccount,
        accounts.map(({ organizationId }) => organizationId),
        accounts.map(({ psp }) => psp),
        accounts.map(({ merchantId }) => merchantId),
        accounts.map(({ room }) => String(room)),
      ]),

    /** Makes rows due that were postponed by a database clock that has been set back since. */
    async makeDue(db: Db, longestLeaseMs: number): Promise<void> {
      await db.query(statements.makeDue, [longestLeaseMs / 1000])
    },

    /** Takes one row in progress, due or not, unless a process holds it. */
    async take(db: Db, row: Row, leaseMs: number): Promise<Row | undefined> {
      const [taken] = await db.query<Row>(statements.take, [row.organization_id, row[table.id]!, leaseMs / 1000])
      return taken
    },

    /** Makes a row due as soon as no process holds it, because the provider has news of it. */
    noteNews: (db: Db, row: Row) => db.query(statements.noteNews, [row.organization_id, row[table.id]!]),

    /**
     * Begins the lease of a row anew for the process that has it; undefined when another one took it or settled it. The age of
     * the row begins anew too, unless `keepsAge`.
     */
    async renew(db: Db, row: Row, leaseMs: number, { keepsAge = false } = {}): Promise<Row | undefined> {
      const { organization_id, looks } = row
      const given = [organization_id, row[table.id]!, looks, leaseMs / 1000, !keepsAge]
      const [renewed] = await db.query<Row>(statements.renew, given)
      return renewed
    },

    /** Deletes a row whose movement was never begun at the provider, so that its key is free again. */
    async giveBack(db: Db, row: Row): Promise<void> {
      const { organization_id, looks } = row
      await db.query(statements.giveBack, [organization_id, row[table.id]!, looks])
    },

    ...findersOf<Row>(table, statements.from),
  }
}

function findersOf<Row extends InProgress>({ columns, alias, id: idColumn }: Table, from: string) {
  return {
    /** The rows that a provider knows by these keys, of any organization. */
    findByProviderKeys: (query: Query, keys: string[]): Promise<Row[]> =>
      query<Row>(`select ${columns} from ${from} where ${alias}.provider_key = any($1)`, [keys]),

    /** One row by its id alone, for operators. */
    async find(query: Query, id: string): Promise<Row | undefined> {
      const [row] = await query<Row>(`select ${columns} from ${from} where ${alias}.${idColumn} = $1`, [id])
      return row
    },
  }
}
