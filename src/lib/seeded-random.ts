// Pseudo-random numbers from a seed: the same at every start, so that generated data is reproducible.

export interface Random {
  /** A number from 0 (inclusive) to 1 (exclusive). */
  next(): number
  /** A whole number from `min` to `max`. */
  integer(min: number, max: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** One of the keys, with a probability according to its weight. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K
}

/** The same numbers for the same seed. */
export function openRandom(seed: number): Random {
  let state = seed
  const next = () => {
    // Mulberry32: 32 bits of state are enough for generated data.
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const integer = (min: number, max: number) => min + Math.floor(next() * (max - min + 1))
  return {
    next,
    integer,
    chance: (probability) => next() < probability,
    pick: (from) => from[integer(0, from.length - 1)]!,
    weighted(weights) {
      const entries = Object.entries(weights) as [keyof typeof weights, number][]
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [key, weight] of entries) {
        left -= weight
        if (left < 0) return key
      }
      return entries[0]![0]
    },
  }
}
