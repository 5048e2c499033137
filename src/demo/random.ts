// Chance that is the same at every start: the demo's data can be talked about, and tests can count on it.

export interface Random {
  /** A number from 0 up to, but without, 1. */
  next(): number
  /** A whole number from `least` to `most`. */
  integer(least: number, most: number): number
  chance(probability: number): boolean
  pick<T>(from: readonly T[]): T
  /** One of the keys, as often as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K
}

/** The same numbers for the same seed. */
export function openRandom(seed: number): Random {
  let state = seed
  const next = () => {
    // Mulberry32: 32 bits of state are plenty for a demo.
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const integer = (least: number, most: number) => least + Math.floor(next() * (most - least + 1))
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

const ALPHABET = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** A ULID of that instant behind a prefix. */
export function recordId(random: Random, prefix: string, ms: number): string {
  let time = ''
  for (let rest = ms, digit = 0; digit < 10; digit += 1, rest = Math.floor(rest / 32)) time = ALPHABET[rest % 32] + time
  let chance = ''
  for (let digit = 0; digit < 16; digit += 1) chance += ALPHABET[random.integer(0, 31)]
  return `${prefix}_${time}${chance}`
}

/** A UUID of version 7 of that instant. */
export function uuid(random: Random, ms: number): string {
  const digits = (n: number) => Array.from({ length: n }, () => random.integer(0, 15).toString(16)).join('')
  const time = ms.toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${digits(3)}-${random.pick(['8', '9', 'a', 'b'])}${digits(3)}-${digits(12)}`
}
