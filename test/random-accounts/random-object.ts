// Random objects of the shapes that Stripe publishes.
import type { Random } from '../../src/lib/seeded-random.ts'
import { fieldsOf, resolve, type Shape } from './published-types.ts'

/** How often values are null, optional fields are there, and enumerations have a value that is not published. */
export interface Flavor {
  nulls: number
  optionals: number
  unknowns: number
}

export type Fields = Record<string, unknown>

const DEEPEST = 5
const TEXTS = ['', 'a', 'Zoë Ünal', '漢字かな', '😀 x', 'a "quoted" \\ text', 'x'.repeat(700)]

/** An object of the interface with the given fields; the others are random. */
export function randomObject<T extends Fields>(random: Random, flavor: Flavor, name: string, given: T): T & Fields {
  return { ...(objectOf(random, flavor, name, 0, given) as Fields), ...given }
}

function objectOf(random: Random, flavor: Flavor, name: string, depth: number, given: Fields = {}): unknown {
  const made: Fields = {}
  for (const [field, { shape, isOptional }] of fieldsOf(name)) {
    if (field in given) continue
    if (isOptional && (depth > DEEPEST || !random.chance(flavor.optionals))) continue
    if (field === '[key]') made['key'] = randomValue(random, flavor, shape, depth + 1)
    else if (resolve(shape).is !== 'absent') made[field] = randomValue(random, flavor, shape, depth + 1)
  }
  return made
}

export function randomValue(random: Random, flavor: Flavor, given: Shape, depth = 0): unknown {
  const shape = resolve(given)
  switch (shape.is) {
    case 'union':
      return ofUnion(random, flavor, shape.of, depth)
    case 'named':
      return objectOf(random, flavor, shape.name, depth)
    case 'array':
      return depth > DEEPEST ? [] : many(random, () => randomValue(random, flavor, shape.of, depth + 1))
    case 'list':
      return { object: 'list', data: [], has_more: false, url: '/v1/list' }
    case 'map':
      return depth > DEEPEST ? {} : { key: randomValue(random, flavor, shape.of, depth + 1) }
    case 'literal':
      return shape.value
    case 'string':
      return random.pick(TEXTS)
    case 'decimal':
      return '1.5'
    case 'number':
      return random.integer(0, 100_000)
    case 'boolean':
      return random.chance(0.5)
    case 'other':
      return 'new_at_stripe'
    default:
      return null
  }
}

function ofUnion(random: Random, flavor: Flavor, all: Shape[], depth: number): unknown {
  const known = all.map(resolve)
  if (known.some(({ is }) => is === 'null') && (depth > DEEPEST || random.chance(flavor.nulls))) return null
  if (known.some(({ is }) => is === 'other') && random.chance(flavor.unknowns)) return 'new_at_stripe'
  const values = known.filter(({ is }) => is !== 'null' && is !== 'other')
  // An object that may be expanded is named by its id.
  const ids = values.filter(({ is }) => is === 'string')
  return randomValue(random, flavor, random.pick(ids.length > 0 ? ids : values), depth)
}

const many = <T>(random: Random, make: () => T): T[] => Array.from({ length: random.integer(0, 2) }, make)
