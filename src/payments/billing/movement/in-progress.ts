// Movements in progress: the lease of the process that works on one, and when its status is checked next.
import type { Db } from '../../../lib/pg/db.ts'
import type { NamedRow, Query } from '../../../lib/pg/types.ts'
import { type HandOver, statementsOf, type Table } from './in-progress-statements.ts'
import { pauseSeconds } from './lease.ts'
import type { Room } from './turns.ts'

/** The columns that every kind of movement has. */
export type InProgress = NamedRow & {
  organization_id: string
  order_id: string
  status: string
  amount: string
  currency_code: string
  psp: string
  psp_merchant_id: string | null
  /** The idempotency key at the provider. */
  provider_key: string
  /** How often the row was taken from the queue. A process with an older number has lost it to another process. */
  looks: string
  /** Milliseconds since a process began it, and since the first look-up in a row that did not find it. */
  age_ms: string
  not_found_ms: string | null
}

/** The operations on the rows in progress of one kind. */
export type Rows<Row extends InProgress> = ReturnType<typeof inProgress<Row>>

/** The operations on one table's rows in progress. A process holds a row after `takeDue`, `take` or its claim. */
export function inProgress<Row extends InProgress>(table: Table) {
  const statements = statementsOf(table)
  return {
    /** Gives a row back, to be checked again, at once if there was news of it; does nothing when another process has it by now. */
    async handOver(db: Db, row: Row, how: HandOver = {}): Promise<void> {
      const { organization_id, looks } = row
      const { pauseS = pauseSeconds(Number(looks)), isNotFound = false, mismatch = null } = how
      const given = [pauseS, isNotFound, mismatch, how.isPending ?? false, ...(table.handOver?.params(how) ?? [])]
      await db.query(statements.handOver, [organization_id, row[table.id]!, looks, ...given])
    },

    /** Takes rows that are due, for as long as the lease: each account's first before any account's second. */
    takeDue(db: Db, { most, perAccount, accounts }: Room, leaseMs: number): Promise<Row[]> {
      return db.query<Row>(statements.takeDue, [
        most,
        leaseMs / 1000,
        perAccount,
        accounts.map(({ organizationId }) => organizationId),
        accounts.map(({ psp }) => psp),
        accounts.map(({ merchantId }) => merchantId),
        accounts.map(({ room }) => String(room)),
      ])
    },

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
    async noteNews(db: Db, row: Row): Promise<void> {
      await db.query(statements.noteNews, [row.organization_id, row[table.id]!])
    },

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
    findByProviderKeys(query: Query, keys: string[]): Promise<Row[]> {
      return query<Row>(`select ${columns} from ${from} where ${alias}.provider_key = any($1)`, [keys])
    },

    /** One row by its id alone, for operators. */
    async find(query: Query, id: string): Promise<Row | undefined> {
      const [row] = await query<Row>(`select ${columns} from ${from} where ${alias}.${idColumn} = $1`, [id])
      return row
    },
  }
}
