// The events at Stripe that an import has read, as the process that reads them remembers it.
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

  /** Whether its objects were stored before an outage, which kept others out. */
  isStored(id: string): boolean {
    return this.#stored.has(id)
  }

  /** Notes events whose objects are stored, before the next save of the state. */
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

  /** After a failover that has lost a save of the state, which may also have lost what was stored before it. */
  forgetLost(fromS: number, { updatedAt }: ImportState): void {
    if (this.#read.values().some((created) => created > fromS)) this.#read.clear()
    if (updatedAt <= this.#storedAfter) this.#stored.clear()
  }
}
