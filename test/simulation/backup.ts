// A backup of the whole database and its restore, with the product's own statements except for copying rows.
import { existsSync } from 'node:fs'
import type { Config } from '../../src/config.ts'
import { readLedgers } from '../../src/core/erasure/ledger-files.ts'
import type { Query } from '../../src/lib/pg/types.ts'
import { keepAccounts, markUnlisted, type NamedAccount } from '../../src/operations/backup/accounts.ts'
import { type Catalogue, columnList, readCatalogue } from '../../src/operations/backup/catalogue.ts'
import { keepClocks, raiseClocks } from '../../src/operations/backup/clocks.ts'
import { eraseAgain, gatherErased } from '../../src/operations/backup/erased.ts'
import type { Session } from '../../src/operations/backup/session.ts'
import { instantOf } from './virtual-clock.ts'

/** The rows of every table at one instant, as text from PostgreSQL. */
export interface Backup {
  atMs: number
  rows: Map<string, string>
}

/** Reads all tables in one statement, and so at one instant. */
export async function takeBackup(query: Query, atMs: number): Promise<Backup> {
  const { tables } = await catalogueOf(query)
  const each = tables.map(({ name }) => `select '${name}' as name, array_agg(t::text) as rows from public.${name} t`)
  const found = await query(each.join(' union all '))
  return { atMs, rows: new Map(found.flatMap(({ name, rows }) => (rows === null ? [] : [[name!, rows!]]))) }
}

/** Replaces all rows by those of a backup, in the caller's transaction. */
export async function loadBackup(query: Query, { rows }: Backup): Promise<void> {
  const { tables } = await catalogueOf(query)
  // Then references are not checked, and the order of the tables does not matter.
  await query('set local session_replication_role = replica')
  // A truncate would make every connection plan all its statements again.
  await query(tables.map(({ name }) => `delete from public.${name}`).join('; '))
  for (const { name, columns } of tables) {
    const text = rows.get(name)
    if (text === undefined) continue
    const fields = columns.map((column) => `(one)."${column}"`).join(', ')
    const each = `select given::public.${name} as one from unnest($1::text[]) given`
    await query(
      `insert into public.${name} (${columnList(columns)}) overriding system value select ${fields} from (${each}) each_one`,
      [text],
    )
  }
  await query('set local session_replication_role = default')
}

/** Restores a backup over the database as `tundish restore --replace` does. No process may run. */
export async function restoreBackup(
  query: Query,
  backup: Backup,
  erasureLedger: string,
  accounts: readonly NamedAccount[],
): Promise<void> {
  const config = { erasureLedger } as Config
  const read = (unreadable: string[]) => readLedgers([erasureLedger], unreadable)
  await query('begin')
  await keepClocks(query)
  await gatherErased(query, existsSync(erasureLedger) ? [{ path: erasureLedger, read }] : [], config)
  await keepAccounts(query)
  await loadBackup(query, backup)
  await raiseClocks(query)
  await markUnlisted(query, { made_at: instantOf(backup.atMs) }, accounts)
  await eraseAgain({ query, db: {} } as Session, config)
  await query('commit')
}

let catalogue: Catalogue | undefined

/** The columns of the tables, which no seed changes. */
async function catalogueOf(query: Query): Promise<Catalogue> {
  if (catalogue) return catalogue
  catalogue = await readCatalogue(query)
  if (!catalogue) throw new Error('The database has no tables.')
  return catalogue
}
