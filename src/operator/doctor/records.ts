// The doctor's checks of stored data: keys can be decrypted, counters are exact, the ledgers of erasures and the audit log agree.
import { existsSync } from 'node:fs'
import { verifyAudit } from '../../core/audit/verify.ts'
import { readLedgers } from '../../core/erasure/ledger-files.ts'
import { openKey } from '../../core/events/signing-keys.ts'
import { COUNTED } from '../../core/records/records.ts'
import { hashKey } from '../../core/tenants/key-text.ts'
import type { Db } from '../../lib/pg/db.ts'
import { bytesFromPg } from '../../lib/pg/row-bytes.ts'
import type { Seal } from '../../lib/secrets.ts'
import { count } from '../../lib/text.ts'
import { type Finding, failed, ofTenant, ok, warning } from './finding.ts'

/** Also returns the seal if it is the database's: other checks need it. */
export async function checkMasterKey(db: Db, given?: Seal): Promise<{ finding: Finding; seal?: Seal }> {
  const fix = 'Start with the MASTER_KEY (or DATA_DIR/master.key) this database was set up with, from your backup.'
  const [row] = await db.query(`select value from instance where name = 'master key'`)
  if (!given) {
    if (!row) return { finding: ok('master key', 'There is none yet: the first start creates it.') }
    const restore = 'Restore it from your backup, or set MASTER_KEY.'
    return { finding: failed('master key', 'master.key is missing in DATA_DIR.', restore) }
  }
  if (row && row.value !== given.fingerprint) {
    return { finding: failed('master key', 'The master key is not that of this database.', fix) }
  }
  return { finding: await checkKeys(db, given), seal: given }
}

async function checkKeys(db: Db, seal: Seal): Promise<Finding> {
  const keys = await db.query('select id, hash, sealed from secret_keys')
  const opened = keys.map(({ id, hash, sealed }) => {
    const key = openKey(seal, bytesFromPg(sealed!), id!)
    return { broken: key === undefined, mismatched: key !== undefined && !hashKey(key).equals(bytesFromPg(hash!)) }
  })
  const broken = opened.filter((one) => one.broken).length
  const mismatched = opened.filter((one) => one.mismatched).length
  if (broken > 0) {
    const message = `${count(broken, 'secret key')} cannot be decrypted: webhooks of their owners cannot be signed.`
    return failed('master key', message, REPLACE)
  }
  if (mismatched > 0) {
    const message = `${count(mismatched, 'secret key')} with a hash that does not match the key`
    return failed('master key', `${message}: the table was changed outside Tundish.`, REPLACE)
  }
  return ok('master key', `The master key decrypts ${count(keys.length, 'secret key')}, and all match their hashes.`)
}

const REPLACE = 'Replace them: tundish keys regenerate (--org ID | --project ID)'

/** Compares every counter with a recount in the same snapshot. */
export async function checkCounts(db: Db): Promise<Finding[]> {
  const rows = await withoutTimeout(db, DIFFERENCES)
  if (rows.length === 0) return [ok('counts', 'Every counter agrees with a recount.')]
  const projects = Map.groupBy(rows, (row) => row.project_id!)
  return [...projects].map(([project, wrong]) => {
    const { list, field, value, missing } = wrong[0]!
    const name = [list, field, value].filter(Boolean).join(' ')
    const message = `${count(wrong.length, 'counter')} of project ${project} differ from a recount (${name} by ${missing}).`
    return ofTenant({ project_id: project }, failed('counts', message, 'Run: tundish doctor --fix-counts'))
  })
}

/** Adds to each counter its difference from a recount. A difference stays correct while other processes write. */
export async function fixCounts(db: Db): Promise<number> {
  const rows = await withoutTimeout(
    db,
    `insert into counts (project_id, list, field, value, n) ${DIFFERENCES} returning project_id`,
  )
  return rows.length
}

// The right value of every counter. One statement reads one snapshot, also while others write.
const RECOUNT = COUNTED.flatMap(({ table, counts }) =>
  Object.entries(counts).map(
    ([field, value]) => `
    select project_id, '${table}' as list, '${field}' as field, ${value('t')} as value, count(*) as n
    from ${table} t where ${value('t')} is not null group by 1, 4`,
  ),
)

const DIFFERENCES = `
  with real as (${RECOUNT.join(' union all ')}), counted as (
    select project_id, list, field, value, sum(n) as n from counts group by 1, 2, 3, 4
  )
  select project_id, list, field, value, coalesce(real.n, 0) - coalesce(counted.n, 0) as missing
  from real full join counted using (project_id, list, field, value)
  where coalesce(real.n, 0) <> coalesce(counted.n, 0)`

/** Runs a statement that may take longer than the timeout of statements. */
export function withoutTimeout(db: Db, text: string) {
  return db.tx(async (query) => {
    await query('set local statement_timeout = 0')
    return query(text)
  })
}

/** After a restored backup the file has erasures that the database lacks. */
export async function checkLedgers(db: Db, path: string): Promise<Finding[]> {
  const { inFile, unreadable } = await readLedger(path)
  const known = new Set((await db.query('select id from projects')).map(({ id }) => id))
  const rows = await db.query('select project_id, profile_id from erasures')
  const inDatabase = new Set(rows.map(({ project_id, profile_id }) => `${project_id} ${profile_id}`))
  const findings: Finding[] = []
  const forgotten = [...inFile].filter((entry) => known.has(entry.split(' ')[0]!) && !inDatabase.has(entry)).length
  if (forgotten > 0) {
    const message = `The database lacks ${count(forgotten, 'erasure')} of ${path}, as after a restored backup.`
    findings.push(failed('erasures', message, 'Run: tundish erasures reapply'))
  }
  const absent = [...inDatabase].filter((entry) => !inFile.has(entry)).length
  if (absent > 0) {
    const message = `${path} lacks ${count(absent, 'erasure')} of the database: normal if they were made on other machines.`
    const fix = `If the file was lost, write them again: tundish erasures export >> ${path}`
    findings.push(warning('erasures', message, fix))
  }
  if (unreadable > 0) {
    const message = `${count(unreadable, 'line')} of ${path} cannot be read, and would end a restore.`
    const fix =
      'Remove a line that a crash or a full disk has cut off, because that erasure was never confirmed; otherwise restore the file.'
    findings.push(warning('erasures', message, fix))
  }
  return findings.length > 0
    ? findings
    : [ok('erasures', `Both ledgers agree on ${count(inDatabase.size, 'erasure')}.`)]
}

/** Verifies the audit log; under another master key every entry would look forged. */
export async function checkAudit(db: Db, seal: Seal | undefined, headsPath: string): Promise<Finding[]> {
  if (!seal) return [warning('audit', 'Not checked: this needs the master key.', 'Fix the master key first.')]
  const { entries, known, wrong } = await verifyAudit(db, seal, headsPath)
  const fix = 'The log was changed in the database, or a restored backup is older than the file.'
  if (wrong.length > 0) return wrong.map((message) => failed('audit', message, fix))
  if (entries > 0 && known === 0) {
    const message = `${headsPath} has none of the ${count(entries, 'entry', 'entries')}: they were made on other machines, or the file was lost.`
    return [warning('audit', message, 'Run the doctor on the machine that made them, too.')]
  }
  return [ok('audit', `${count(entries, 'entry', 'entries')}, all present and unchanged.`)]
}

/** The entries of the file, as `project profile`. A missing file is empty. */
async function readLedger(path: string): Promise<{ inFile: Set<string>; unreadable: number }> {
  const inFile = new Set<string>()
  const unreadable: string[] = []
  if (!existsSync(path)) return { inFile, unreadable: 0 }
  for await (const { project_id, profile_id } of readLedgers([path], unreadable))
    inFile.add(`${project_id} ${profile_id}`)
  return { inFile, unreadable: unreadable.length }
}
