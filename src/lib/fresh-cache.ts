// Caches what the database says for a second: a busy entry costs no round trip of its own, and a change is seen within that time.
import type { Clock } from './clock.ts'

export interface FreshCache<T> {
  /**
   * The value of a key, loaded at most a second ago; undefined is loaded again each time. Rejects when it has to be loaded
   * and cannot be.
   */
  get(key: string, load: () => Promise<T | undefined>): Promise<T | undefined>
  /** Forgets all that was asked for until now: a change that this process made is seen at once. */
  forget(): void
}

interface Entry<T> {
  value: T
  /** When it was asked for, which is before the database answered. */
  askedMs: number
  refreshing: boolean
}

const TRUST_MS = 1000
// From this age on a value is loaded again beside its use, so that busy keys never wait.
const REFRESH_MS = 500
// Bounds the memory; the oldest entry goes first.
const MOST_ENTRIES = 10_000

export function createFreshCache<T>(clock: Clock): FreshCache<T> {
  const entries = new Map<string, Entry<T>>()
  let forgottenMs = Number.NEGATIVE_INFINITY

  async function ask(key: string, load: () => Promise<T | undefined>): Promise<T | undefined> {
    const askedMs = clock.monotonicMs()
    const value = await load()
    entries.delete(key)
    // Asked for before the last change that this process made, and answered after it: good for this caller alone.
    if (value !== undefined && askedMs > forgottenMs) entries.set(key, { value, askedMs, refreshing: false })
    if (entries.size > MOST_ENTRIES) entries.delete(entries.keys().next().value!)
    return value
  }

  return {
    async get(key, load) {
      const entry = entries.get(key)
      const ageMs = entry ? clock.monotonicMs() - entry.askedMs : Number.POSITIVE_INFINITY
      if (!entry || ageMs >= TRUST_MS) return ask(key, load)
      if (ageMs >= REFRESH_MS && !entry.refreshing) {
        entry.refreshing = true
        // A refresh that fails leaves the entry to end by its age; the caller after that gets the error.
        ask(key, load).catch(() => {
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
