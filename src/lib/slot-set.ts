// A crowd: its members come and go all the time.

/**
 * For what a `Set` is too costly. One whose members are soon replaced by others makes itself a new table again and again,
 * and V8 links each table to the next: once one has got among what lives long, all that were members after it stay in
 * memory to the next major collection. Here each has a place, which serves again.
 */
export class Crowd<Member> implements Iterable<Member> {
  readonly #places: (Member | undefined)[] = []
  readonly #free: number[] = []

  get size(): number {
    return this.#places.length - this.#free.length
  }

  /** Lets a member in, and answers what lets it out again: to be called once. */
  add(member: Member): () => void {
    const place = this.#free.pop() ?? this.#places.length
    this.#places[place] = member
    return () => {
      this.#places[place] = undefined
      this.#free.push(place)
    }
  }

  *[Symbol.iterator](): Iterator<Member> {
    for (const member of this.#places) if (member !== undefined) yield member
  }
}
