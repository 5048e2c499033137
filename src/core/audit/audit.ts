// The audit log of operators' actions. Entries are chained by HMAC, and the newest hashes are also kept in a file outside the
// database, so that tampering is detected.
import { join } from 'node:path'
import type { Logger } from 'pino'
import { tryLater } from '../../lib/errors.ts'
import { createFairQueue } from '../../lib/fair-queue.ts'
import type { Commit, Db } from '../../lib/pg/db.ts'
import { sqlState } from '../../lib/pg/errors.ts'
import { endWhenStalled } from '../../lib/pg/stalled.ts'
import type { NamedRow, Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { COLUMN_NAMES, COLUMNS, chainKey, hashOf } from './chain.ts'
import { appendHead, type Head } from './heads.ts'
import { auditLogBusy } from './turns.ts'

/** The actor of an entry, and where the action came from. */
export interface Actor {
  kind: 'operator key' | 'person' | 'command line' | 'project key' | 'organization key' | 'tundish'
  /** The id of a key, name and id of a person at the identity provider, the organization or project that a key belongs to, or the account at the command line. */
  id: string
  /** The address a request came from, or the host a command ran on. */
  source: string
}

/** An action. Neither `before` nor `after` may hold a secret or personal data. */
export interface Entry {
  /** Noun and verb: `project.created`. */
  action: string
  /** Kind and id of the object: `project shop`. */
  target: string
  before?: unknown
  after?: unknown
}

/** The transaction that an entry is added to. */
export interface Transaction {
  query: Query
  commit: Commit
}

export interface Audit {
  /**
   * Adds an entry as the last statement of the caller's transaction, and sends the commit with it. The newest entry is
   * locked only while the database executes these two, never over a round trip: a process that stops before them holds
   * up no other. Throws a 503 `ApiError` when too many entries are being added.
   */
  append(transaction: Transaction, actor: Actor, entry: Entry): Promise<Head>
  /** Marks an entry in the file of heads as committed. */
  confirm(head: Head): Promise<void>
}

/** The file of the log's heads, outside the database. */
export const auditHeadsPath = ({ dataDir }: { dataDir: string }) => join(dataDir, 'audit-heads.ndjson')

// One process adds one entry at a time: concurrent ones would compare with the same head, and all but one would have to be
// repeated. The share is that of a queue in which a call of full weight takes 3/8 of a share.
const ONE_AT_A_TIME = { max: 1, share: 8 / 3 }
// Shorter than the limit of `endWhenStalled`.
const PATIENCE = { ms: 3_000, error: auditLogBusy }
// Other processes add entries too. Of those that compare with the same head one always succeeds, so this many failures mean
// that there are more writers than the log can serve.
const MAX_TRIES = 50

/**
 * Opens the log. If the file of heads cannot be written before the commit, the entry fails. After the commit a failure is
 * only logged, because the file already announces the entry; without `log` it is thrown.
 */
export function openAudit(seal: Seal, headsPath: string, log?: Pick<Logger, 'error'>): Audit {
  const key = chainKey(seal)
  const turns = createFairQueue(ONE_AT_A_TIME.max, ONE_AT_A_TIME.share)

  async function tryAppend({ query, commit }: Transaction, actor: Actor, entry: Entry): Promise<Head | undefined> {
    const [last] = await query(HEAD)
    if (!last) throw new Error('The head of the audit log is missing: run "tundish doctor".')
    if (last.master_key !== null && last.master_key !== seal.fingerprint) throw masterKeyReplaced()
    const row = rowOf(last, actor, entry)
    const hash = hashOf(key, last.hash!, row)
    const head = { sequence: row.sequence!, hash: hash.toString('hex') }
    // Written before the commit: an entry in the database is also in the file, wherever the process crashes.
    await appendHead(headsPath, { ...head, committed: false })
    const inserted = query(INSERT, [...COLUMN_NAMES.map((name) => row[name]!), hash, last.sequence!, last.hash!])
    commit()
    return inserted.then(() => head, undefinedIfHeadHasMoved)
  }

  return {
    append: (transaction, actor, entry) =>
      turns.run(
        'all',
        1,
        async () => {
          const saved = transaction.query('savepoint audit')
          for (let tries = 1; tries <= MAX_TRIES; tries += 1) {
            const [head] = await Promise.all([tryAppend(transaction, actor, entry), saved])
            if (head) return head
            await transaction.query('rollback to savepoint audit')
          }
          throw auditLogBusy()
        },
        PATIENCE,
      ),
    async confirm(head) {
      try {
        await appendHead(headsPath, { ...head, committed: true })
      } catch (error) {
        if (!log) throw error
        log.error(
          { err: error, sequence: head.sequence },
          "A commit could not be written to the audit log's file of heads.",
        )
      }
    },
  }
}

/** Runs `work` and adds the entry it returns, in one transaction: both are committed, or neither. */
export async function audited<T>(
  { db, audit }: { db: Db; audit: Audit },
  actor: Actor,
  work: (query: Query) => Promise<{ entry: Entry; result: T }>,
): Promise<T> {
  const { head, result } = await db.tx(async (query, commit) => {
    const [, done] = await Promise.all([endWhenStalled(query), work(query)])
    return { head: await audit.append({ query, commit }, actor, done.entry), result: done.result }
  })
  await audit.confirm(head)
  return result
}

/** Adds an entry in a separate transaction, for work that is not one transaction. */
export async function addEntry(app: { db: Db; audit: Audit }, actor: Actor, entry: Entry): Promise<void> {
  await audited(app, actor, async () => ({ entry, result: undefined }))
}

function rowOf({ sequence, at }: NamedRow, actor: Actor, { action, target, before, after }: Entry): NamedRow {
  return {
    sequence: String(BigInt(sequence!) + 1n),
    at: at!,
    actor_kind: actor.kind,
    actor: actor.id,
    source: actor.source,
    action,
    target,
    before: before === undefined ? null : JSON.stringify(before),
    after: after === undefined ? null : JSON.stringify(after),
  }
}

// A restored database may have no master key recorded yet.
const HEAD = `
  select sequence, hash, db_clock() as at, (select value from instance where name = 'master key') as master_key
  from audit_head`

/**
 * An entry chained with the old key would make the log look forged. A replacement of the key moves the head, so that an entry
 * which was begun before it is not inserted.
 */
const masterKeyReplaced = () =>
  tryLater('master_key_replaced', 'The master key was replaced: restart this process with the new one.')

// Moves the head if it is still the one that the entry follows. Otherwise `moved` is empty, and the sequence is null, which
// the table refuses.
const INSERT = `
  with moved as (
    update audit_head set sequence = $1, hash = $10 where sequence = $11 and hash = $12 returning sequence)
  insert into audit_log (${COLUMNS}, hash)
  values ((select sequence from moved), $2, $3, $4, $5, $6, $7, $8, $9, $10)`

const NOT_NULL_VIOLATION = '23502'

function undefinedIfHeadHasMoved(error: unknown): undefined {
  const { table } = error as { table?: string }
  if (sqlState(error) !== NOT_NULL_VIOLATION || table !== 'audit_log') throw error
}
