// The audit log: what operators did, chained by HMAC, with its head outside the database, so that tampering shows.
import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import type { Logger } from 'pino'
import type { Db } from '../lib/pg/db.ts'
import { bytesFromPg } from '../lib/pg/row-bytes.ts'
import type { NamedRow, Query } from '../lib/pg/types.ts'
import { equalSecrets, type Seal } from '../lib/secrets.ts'
import { instantFromPg } from '../lib/time.ts'
import { appendHead, type Head, type KnownHead, readHeads } from './heads.ts'

/** Who acts, and from where. */
export interface Actor {
  kind: 'operator key' | 'command line' | 'project key' | 'organization key' | 'tundish'
  /** The id of a key or of whom it belongs to, or the name of the account at the command line. */
  id: string
  /** The address a request came from, or the host a command ran on. */
  source: string
}

/** What was done. Neither `before` nor `after` may hold a secret or personal data. */
export interface Entry {
  /** Noun and verb: `project.created`. */
  action: string
  /** Kind and id of what it was done to: `project shop`. */
  target: string
  before?: unknown
  after?: unknown
}

export interface Audit {
  /** Adds an entry in the caller's transaction. The newest entry stays locked to its end, so add it last. */
  append(query: Query, actor: Actor, entry: Entry): Promise<Head>
  /** Tells the file that an entry was committed. */
  confirm(head: Head): Promise<void>
}

/** The file that knows the log's entries from outside the database. */
export const auditHeadsPath = ({ dataDir }: { dataDir: string }) => join(dataDir, 'audit-heads.ndjson')

/**
 * What an entry tells of is done when it is confirmed, and stays announced in the file, so that a file which cannot be
 * written then fails nobody: it is for the `log`. It fails whoever gives none, and is not done without the file.
 */
export function openAudit(seal: Seal, headsPath: string, log?: Pick<Logger, 'error'>): Audit {
  const key = seal.derive('audit log')
  return {
    async append(query, actor, entry) {
      const [last] = await query('select sequence, hash from audit_head for update')
      if (!last) throw new Error('The head of the audit log is gone: run "tundish doctor".')
      const [now] = await query('select db_clock() as at')
      const row: NamedRow = {
        sequence: String(BigInt(last.sequence!) + 1n),
        at: now!.at!,
        actor_kind: actor.kind,
        actor: actor.id,
        source: actor.source,
        action: entry.action,
        target: entry.target,
        before: entry.before === undefined ? null : JSON.stringify(entry.before),
        after: entry.after === undefined ? null : JSON.stringify(entry.after),
      }
      const hash = hashOf(key, last.hash!, row)
      await query(`insert into audit_log (${COLUMNS}, hash) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`, [
        ...COLUMN_NAMES.map((name) => row[name]!),
        hash,
      ])
      await query('update audit_head set sequence = $1, hash = $2', [row.sequence!, hash])
      const head = { sequence: row.sequence!, hash: hash.toString('hex') }
      // Announced before the commit: an entry that is in the database is in the file, whatever happens in between.
      await appendHead(headsPath, { ...head, committed: false })
      return head
    },
    async confirm(head) {
      try {
        await appendHead(headsPath, { ...head, committed: true })
      } catch (error) {
        if (!log) throw error
        log.error({ err: error, sequence: head.sequence }, 'The file of the audit log was not told of a commit.')
      }
    },
  }
}

/** Runs `work` and the entry it answers in one transaction: neither is there without the other. */
export async function audited<T>(
  { db, audit }: { db: Db; audit: Audit },
  actor: Actor,
  work: (query: Query) => Promise<{ entry: Entry; result: T }>,
): Promise<T> {
  const { head, result } = await db.tx(async (query) => {
    const done = await work(query)
    return { head: await audit.append(query, actor, done.entry), result: done.result }
  })
  await audit.confirm(head)
  return result
}

export interface Verdict {
  /** How many entries there are, and of how many of them the file knows. */
  entries: number
  known: number
  /** Nothing, when every entry is there, unchanged and in its place. */
  wrong: string[]
}

/** Reads the whole log and compares it with itself, with its head, and with the file. */
export async function verifyAudit(db: Db, seal: Seal, headsPath: string): Promise<Verdict> {
  // The file first: whatever it calls committed is visible to what is read after it.
  const heads = await readHeads(headsPath)
  return db.tx(async (query) => {
    // One instant for all pages: others may go on adding entries.
    await query('set transaction isolation level repeatable read')
    const found = await verifyEntries(query, seal.derive('audit log'), heads)
    const newest = BigInt(found.last.sequence)
    const missing = [...heads].filter(([sequence, { committed }]) => committed && BigInt(sequence) > newest)
    if (missing.length > 0) found.wrong.push(`The newest entries are missing: ${missing.length} after ${newest}.`)
    const [head] = await query('select sequence, hash from audit_head')
    if (!head || head.sequence !== found.last.sequence || head.hash !== found.last.hash)
      found.wrong.push('The head of the log is not its newest entry.')
    return { entries: found.entries, known: found.known, wrong: found.wrong }
  })
}

async function verifyEntries(query: Query, key: Buffer, heads: Map<string, KnownHead>) {
  const found = { entries: 0, known: 0, wrong: [] as string[], last: { sequence: '0', hash: GENESIS } }
  for await (const row of entries(query)) {
    const { sequence, hash } = row as { sequence: string; hash: string }
    const expected = BigInt(found.last.sequence) + 1n
    if (BigInt(sequence) !== expected) found.wrong.push(`Entries are missing before ${sequence}: from ${expected} on.`)
    // Each entry is judged by what stands before it now, so that one change is not told of all that follow.
    if (!equalSecrets(hashOf(key, found.last.hash, row), bytesFromPg(hash)))
      found.wrong.push(`Entry ${sequence} was changed or put in, or does not follow the one before it.`)
    // A number that was announced and not committed may have gone to another machine.
    const known = heads.get(sequence)
    if (known?.committed && known.hash !== bytesFromPg(hash).toString('hex'))
      found.wrong.push(`Entry ${sequence} is not the one that was written.`)
    found.entries += 1
    if (known?.committed) found.known += 1
    found.last = { sequence, hash }
  }
  return found
}

const COLUMN_NAMES = ['sequence', 'at', 'actor_kind', 'actor', 'source', 'action', 'target', 'before', 'after']
const COLUMNS = COLUMN_NAMES.join(', ')
const GENESIS = `\\x${'00'.repeat(32)}`
const PAGE = 1000

async function* entries(query: Query): AsyncIterable<NamedRow> {
  let last = '0'
  for (;;) {
    const page = await query(`select ${COLUMNS}, hash from audit_log where sequence > $1 order by sequence limit $2`, [
      last,
      PAGE,
    ])
    yield* page
    if (page.length < PAGE) return
    last = page.at(-1)!.sequence!
  }
}

/** Chains an entry to the one before it. Each field is written with its bounds, so that no text moves into its neighbour. */
function hashOf(key: Buffer, previous: string, row: NamedRow): Buffer {
  const fields = COLUMN_NAMES.map((name) => (name === 'at' ? instantFromPg(row.at!) : row[name]))
  return createHmac('sha256', key).update(bytesFromPg(previous)).update(JSON.stringify(fields)).digest()
}
