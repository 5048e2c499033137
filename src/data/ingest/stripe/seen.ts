// Which events at Stripe an import has read. Kept in memory only: after a restart, events since the saved time are read again.
import type { ImportState } from './state.ts'

interface Event {
  id: string
  /** In seconds. */
  created: number
}

export class Seen {
  readonly #read = new Map<string, number>()
  readonly #stored = new Set<string>()
  #storedAfter = ''

  /** Whether it was read, and all before it. */
  has(id: string): boolean {
    return this.#read.has(id)
  }

  /** Whether its objects are stored, although others that changed at the time could not be read. */
  isStored(id: string): boolean {
    return this.#stored.has(id)
  }

  /** Notes events whose objects are stored. Called before the state is saved again. */
  addStored(events: Event[], { updatedAt }: ImportState): void {
    for (const { id } of events) this.#stored.add(id)
    this.#storedAfter = updatedAt
  }

  /** Notes events that were read, and forgets those that will not be listed again. */
  addRead(events: Event[], oldestS: number): void {
    this.#stored.clear()
    for (const { id, created } of events) this.#read.set(id, created)
    for (const [id, created] of this.#read) if (created < oldestS) this.#read.delete(id)
  }

  /** Forgets events whose objects a failover may have lost: it did if the state is older than the last one that was saved. */
  forgetLost(fromS: number, { updatedAt }: ImportState): void {
    if (this.#read.values().some((created) => created > fromS)) this.#read.clear()
    if (updatedAt <= this.#storedAfter) this.#stored.clear()
  }
}
