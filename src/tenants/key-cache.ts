// Looks up the holder of a secret key, at the database at most once a second: a revoked key ends within a second everywhere.
import type { Clock } from '../lib/clock.ts'
import { createFreshCache } from '../lib/fresh-cache.ts'
import type { Db } from '../lib/pg/db.ts'
import { hashKey } from './key-text.ts'
import { findKey, type KeyHolder } from './tenants.ts'

export interface KeyCache {
  /** The holder of a living key; undefined for any other text. Rejects when the database cannot be asked. */
  lookUp(key: string): Promise<KeyHolder | undefined>
  /** Asks for every key again: for changes that this process made. */
  forget(): void
}

export function openKeyCache(db: Db, clock: Clock): KeyCache {
  const cache = createFreshCache<KeyHolder>(clock)
  return {
    async lookUp(key) {
      const hash = hashKey(key)
      return cache.get(hash.toString('latin1'), () => findKey(db, hash))
    },
    forget: cache.forget,
  }
}
