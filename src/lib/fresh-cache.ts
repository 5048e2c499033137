// Caches values from the database for a second: busy entries need no round trip, and a change is visible within that time.
import type { Clock } from './clock.ts'

export interface FreshCache<T> {
  /** The value of a key, loaded at most a second ago; undefined is loaded again each time. Rejects if loading fails. */
  get(key: string, load: () => Promise<T | undefined>): Promise<T | undefined>
  /** Forgets everything requested until now, so that a change made by this process is visible at once. */
  forget(): void
}

interface Entry<T> {
  value: T
  /** When it was requested, which is before the database responded. */
  requestedMs: number
  refreshing: boolean
}

const MAX_AGE_MS = 1000
// From this age on a value is refreshed in the background, so that busy keys never wait.
const REFRESH_MS = 500
// Bounds the memory; the oldest entry is removed first.
const MAX_ENTRIES = 10_000

export function createFreshCache<T>(clock: Clock): FreshCache<T> {
  const entries = new Map<string, Entry<T>>()
  let forgottenMs = Number.NEGATIVE_INFINITY

  async function refresh(key: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    const requestedMs = clock.monotonicMs()
    const value = await load()
    entries.delete(key)
    // Requested before the last change made by this process, and loaded after it: used for this caller only.
    if (value !== undefined && requestedMs > forgottenMs) entries.set(key, { value, requestedMs, refreshing: false })
    if (entries.size > MAX_ENTRIES) entries.delete(entries.keys().next().value!)
    return value
  }

  return {
    async get(key, load) {
      const entry = entries.get(key)
      const ageMs = entry ? clock.monotonicMs() - entry.requestedMs : Number.POSITIVE_INFINITY
      if (!entry || ageMs >= MAX_AGE_MS) return refresh(key, load)
      if (ageMs >= REFRESH_MS && !entry.refreshing) {
        entry.refreshing = true
        // After a failed refresh the entry expires by its age; the next caller gets the error.
        refresh(key, load).catch(() => {
          entry.refreshing = false
        })
      }
      return entry.value
    },
    forget() {
      forgottenMs = clock.monotonicMs()
      entries.clear()
    },
  }
}
