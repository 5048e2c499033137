// Verifies the audit log: every entry is present, unchanged and in order, and agrees with the file of heads.
import type { Db } from '../../lib/pg/db.ts'
import { bytesFromPg } from '../../lib/pg/row-bytes.ts'
import type { NamedRow, Query } from '../../lib/pg/types.ts'
import { equalSecrets, type Seal } from '../../lib/secrets.ts'
import { COLUMNS, GENESIS, hashOf } from './chain.ts'
import { readChainKeys } from './chain-keys.ts'
import { type KnownHead, readHeads } from './heads.ts'

export interface Verdict {
  /** The number of entries, and how many of them the file of heads knows as committed. */
  entries: number
  known: number
  /** Sentences; none when every entry is present, unchanged and in order. */
  wrong: string[]
}

const PAGE = 1000

/** Reads the whole log and compares it with its own chain, with `audit_head`, and with the file of heads. */
export async function verifyAudit(db: Db, seal: Seal, headsPath: string): Promise<Verdict> {
  // The file first: every entry that it calls committed is visible to the snapshot taken after it.
  const heads = await readHeads(headsPath)
  return db.tx(async (query) => {
    // One snapshot for all pages, as entries may be added during the check.
    await query('set transaction isolation level repeatable read')
    const found = await verifyEntries(query, await readChainKeys(query, seal), heads)
    const newest = BigInt(found.last.sequence)
    const missing = [...heads].filter(([sequence, { committed }]) => committed && BigInt(sequence) > newest)
    if (missing.length > 0) found.wrong.push(`The newest entries are missing: ${missing.length} after ${newest}.`)
    const [head] = await query('select sequence, hash from audit_head')
    if (!head || head.sequence !== found.last.sequence || head.hash !== found.last.hash)
      found.wrong.push('The stored head of the log is not its newest entry.')
    return { entries: found.entries, known: found.known, wrong: found.wrong }
  })
}

async function verifyEntries(query: Query, keyOf: (sequence: string) => Buffer, heads: Map<string, KnownHead>) {
  const found = { entries: 0, known: 0, wrong: [] as string[], last: { sequence: '0', hash: GENESIS } }
  for await (const row of entries(query)) {
    const { sequence, hash } = row as { sequence: string; hash: string }
    const expected = BigInt(found.last.sequence) + 1n
    if (BigInt(sequence) !== expected) found.wrong.push(`Entries are missing before ${sequence}: from ${expected} on.`)
    // Against the present hash of the previous entry, so that one changed entry is not reported for all that follow it.
    if (!equalSecrets(hashOf(keyOf(sequence), found.last.hash, row), bytesFromPg(hash)))
      found.wrong.push(`Entry ${sequence} was changed or inserted, or does not follow the one before it.`)
    // A sequence that was announced here and not committed may have been used by another machine.
    const known = heads.get(sequence)
    if (known?.committed && known.hash !== bytesFromPg(hash).toString('hex'))
      found.wrong.push(`Entry ${sequence} is not the one that was written.`)
    found.entries += 1
    if (known?.committed) found.known += 1
    found.last = { sequence, hash }
  }
  return found
}

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
