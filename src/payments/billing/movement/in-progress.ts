// Movements in progress: the lease of the process that works on one, and when its status is checked next.
import type { Db } from '../../../lib/pg/db.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { type HandOver, statementsOf, type Table } from './in-progress-statements.ts'
import { pauseSeconds } from './lease.ts'
import type { Room } from './turns.ts'

/** The columns that every kind of movement has. */
export interface InProgress {
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
  status_checks: number
  /** Milliseconds since a process began it, and since the first look-up in a row that did not find it. */
  age_ms: number
  not_found_ms: number | null
  /** Whether the provider was not called so far, for kinds that note it. */
  is_unsent?: boolean
}

/** The operations on the rows in progress of one kind. */
export type Rows<Row extends InProgress> = ReturnType<typeof inProgress<Row>>

/** The operations on one table's rows in progress. A process holds a row after `takeDue`, `take` or its claim. */
export function inProgress<Row extends InProgress>(table: Table<Row>) {
  const { read } = table
  const statements = statementsOf(table)
  const keyOf = (row: Row) => [row.organization_id, row[table.id] as string]
  const heldOf = (row: Row) => [...keyOf(row), row.status_checks]
  return {
    /** Gives a row back, to be checked again, at once if there was news of it; does nothing when another process has it by now. */
    async handOver(db: Db, row: Row, how: HandOver = {}): Promise<void> {
      const { pauseS = pauseSeconds(row.status_checks), isNotFound = false, mismatch = null } = how
      const given = [pauseS, isNotFound, mismatch, how.isPending ?? false, ...(table.handOver?.params(how) ?? [])]
      await db.query(statements.handOver, [...heldOf(row), ...given])
    },

    /** Takes rows that are due, for as long as the lease: each account's first before any account's second. */
    async takeDue(db: Db, { most, perAccount, accounts }: Room, leaseMs: number): Promise<Row[]> {
      const due = await db.query(statements.takeDue, [
        most,
        leaseMs / 1000,
        perAccount,
        accounts.map(({ organizationId }) => organizationId),
        accounts.map(({ psp }) => psp),
        accounts.map(({ merchantId }) => merchantId),
        accounts.map(({ room }) => String(room)),
      ])
      return due.map(read)
    },

    /** Makes rows due that were postponed by a database clock that has been set back since. */
    async makeDue(db: Db, longestLeaseMs: number): Promise<void> {
      await db.query(statements.makeDue, [longestLeaseMs / 1000])
    },

    /** Takes one row in progress, due or not, unless a process holds it. */
    async take(db: Db, row: Row, leaseMs: number): Promise<Row | undefined> {
      const [taken] = await db.query(statements.take, [...keyOf(row), leaseMs / 1000])
      return taken && read(taken)
    },

    /** Makes a row due as soon as no process holds it, because the provider has news of it. */
    async noteNews(db: Db, row: Row): Promise<void> {
      await db.query(statements.noteNews, keyOf(row))
    },

    /**
     * Begins the lease of a row anew for the process that has it; undefined when another one took it or settled it. The age of
     * the row begins anew too, unless `keepsAge`.
     */
    async renew(db: Db, row: Row, leaseMs: number, { keepsAge = false } = {}): Promise<Row | undefined> {
      const [renewed] = await db.query(statements.renew, [...heldOf(row), leaseMs / 1000, !keepsAge])
      return renewed && read(renewed)
    },

    /** Deletes a row whose movement was never begun at the provider, so that its key is free again. */
    async giveBack(db: Db, row: Row): Promise<void> {
      await db.query(statements.giveBack, heldOf(row))
    },

    ...findersOf(table, statements.from),
  }
}

function findersOf<Row extends InProgress>({ columns, alias, id: idColumn, read }: Table<Row>, from: string) {
  return {
    /** The rows that a provider knows by these keys, of any organization. */
    async findByProviderKeys(query: Query, keys: string[]): Promise<Row[]> {
      const rows = await query(`select ${columns} from ${from} where ${alias}.provider_key = any($1)`, [keys])
      return rows.map(read)
    },

    /** One row by its id alone, for operators. */
    async find(query: Query, id: string): Promise<Row | undefined> {
      const [row] = await query(`select ${columns} from ${from} where ${alias}.${idColumn} = $1`, [id])
      return row && read(row)
    },
  }
}
