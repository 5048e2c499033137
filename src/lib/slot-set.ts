// A set whose members change constantly.

/**
 * A `Set` whose members are soon replaced allocates a new table again and again, and V8 links each table to the next: once
 * one of them has been promoted to the old generation, all former members stay in memory until the next major collection.
 * Here a member occupies a slot, and slots are reused.
 */
export class SlotSet<Member> implements Iterable<Member> {
  readonly #slots: (Member | undefined)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#slots.length - this.#free.length
  }

  /** Adds a member and returns the function that removes it: to be called once. */
  add(member: Member): () => void {
    const slot = this.#free.pop() ?? this.#slots.length
    this.#slots[slot] = member
    return () => {
      this.#slots[slot] = undefined
      this.#free.push(slot)
    }
  }

  *[Symbol.iterator](): Iterator<Member> {
    for (const member of this.#slots) if (member !== undefined) yield member
  }
}
