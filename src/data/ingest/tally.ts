// The numbers of lines that did not simply change what is stored, by the source that they came from.
import type { Query } from '../../lib/pg/types.ts'

export interface Counts {
  /** Older than the stored record, or not changeable by an import. */
  skipped: number
  /** Stored without personal data, because the person was erased. */
  erased: number
  /** Neither: equal to what is stored, or repeated by the next line about the record. */
  unchanged: number
}

export class Tally {
  readonly #counts = new Map<number, Counts>()

  /** Adds the result of a statement that selects `counted`, `source` and `n`. */
  async add(query: Query, statement: string): Promise<void> {
    for (const { counted, source, n } of await query<{ counted: keyof Counts; source: string; n: string }>(statement))
      this.#of(Number(source))[counted] += Number(n)
  }

  /** The numbers of one source. */
  of(source: number): Counts {
    return this.#counts.get(source) ?? none()
  }

  /** The numbers of all sources. */
  total(): Counts {
    const total = none()
    for (const { skipped, erased, unchanged } of this.#counts.values()) {
      total.skipped += skipped
      total.erased += erased
      total.unchanged += unchanged
    }
    return total
  }

  #of(source: number): Counts {
    const counts = this.#counts.get(source) ?? none()
    this.#counts.set(source, counts)
    return counts
  }
}

const none = (): Counts => ({ skipped: 0, erased: 0, unchanged: 0 })
