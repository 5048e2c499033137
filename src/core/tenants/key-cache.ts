// Caches the holders of secret keys for a second, so that a revoked key is refused within a second.
import type { Clock } from '../../lib/clock.ts'
import { createFreshCache } from '../../lib/fresh-cache.ts'
import type { Db } from '../../lib/pg/db.ts'
import { findKey } from './find-key.ts'
import { hashKey } from './key-text.ts'
import { beingMoved } from './leaving.ts'
import type { KeyHolder } from './tenants.ts'

export interface KeyCache {
  /**
   * The holder of a valid key; undefined for any other text. Rejects when the database cannot be reached, and with
   * `beingMoved` for a key of an organization that is leaving this shard: after a 401 its caller would not try again.
   */
  lookUp(key: string): Promise<KeyHolder | undefined>
  /** Forgets all keys: for changes made by this process. */
  forget(): void
}

export function openKeyCache(db: Db, clock: Clock): KeyCache {
  const cache = createFreshCache<KeyHolder>(clock)
  return {
    // The cache is by the key's text, because hashing a key costs more than the rest of the look-up. Only valid keys are kept.
    async lookUp(key) {
      let isLeaving = false
      const holder = await cache.get(key, async () => {
        const found = await findKey(db, hashKey(key))
        isLeaving = found === 'leaving'
        return found === 'leaving' ? undefined : found
      })
      if (!holder && isLeaving) throw beingMoved()
      return holder
    },
    forget: cache.forget,
  }
}
