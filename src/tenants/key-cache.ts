// Remembers whose key a key is, for a second: a request costs no look-up of its own, yet a dead key is dead within a second.
import type { Clock } from '../lib/clock.ts'
import type { Db } from '../lib/pg/db.ts'
import { hashKey } from '../lib/secrets.ts'
import { findKey, type KeyHolder } from './tenants.ts'

export interface KeyCache {
  /** Whose key this is, proven at the database at most a second ago; undefined for no living key. Rejects when it cannot be asked. */
  lookUp(key: string): Promise<KeyHolder | undefined>
  /** Trusts no proof that was asked for until now: what this process changed holds in it at once. */
  forget(): void
}

interface Entry {
  tenant: KeyHolder
  /** When the proof was asked for, which is before it was given. */
  askedMs: number
  refreshing: boolean
}

const TRUST_MS = 1000
// From this age on a key is asked for again beside the request, so that busy keys never wait for it.
const REFRESH_MS = 500
// A bound for the memory that many keys take; the oldest goes first.
const MOST_ENTRIES = 10_000

export function openKeyCache(db: Db, clock: Clock): KeyCache {
  const entries = new Map<string, Entry>()
  let forgottenMs = Number.NEGATIVE_INFINITY

  async function ask(id: string, hash: Buffer): Promise<KeyHolder | undefined> {
    const askedMs = clock.monotonicMs()
    const tenant = await findKey(db, hash)
    entries.delete(id)
    // Asked for before the last change that this process made, and answered after it: good for this request alone.
    if (tenant && askedMs > forgottenMs) entries.set(id, { tenant, askedMs, refreshing: false })
    if (entries.size > MOST_ENTRIES) entries.delete(entries.keys().next().value!)
    return tenant
  }

  function refresh(id: string, hash: Buffer, entry: Entry): void {
    entry.refreshing = true
    // A refresh that fails leaves the entry to end by age; whoever comes then hears the error.
    ask(id, hash).catch(() => {
      entry.refreshing = false
    })
  }

  return {
    async lookUp(key) {
      const hash = hashKey(key)
      const id = hash.toString('latin1')
      const entry = entries.get(id)
      const ageMs = entry ? clock.monotonicMs() - entry.askedMs : Number.POSITIVE_INFINITY
      if (!entry || ageMs >= TRUST_MS) return ask(id, hash)
      if (ageMs >= REFRESH_MS && !entry.refreshing) refresh(id, hash, entry)
      return entry.tenant
    },
    forget() {
      forgottenMs = clock.monotonicMs()
      entries.clear()
    },
  }
}
