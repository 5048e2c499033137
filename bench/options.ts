// What a measurement is told on its command line.
import { parseArgs } from 'node:util'

export interface Options {
  /** Which cases to measure: a name, or how names begin. None: all but those that have to be asked for. */
  names: string[]
  /** Subscriptions in the project. */
  size: number
  /** Subscriptions of the largest project of the growth. */
  largest: number
  /** How long a load lasts, and how often it is repeated. */
  seconds: number
  rounds: number
  connections: number
  /** Processes of ours, and of the plain server. */
  workers: number
  /** Organizations that share the customers who are charged. */
  organizations: number
  /** Small and short, to see that everything works; the figures mean nothing. */
  quick: boolean
}

const DEFAULTS = {
  size: 1_000_000,
  largest: 10_000_000,
  seconds: 2,
  rounds: 3,
  connections: 32,
  workers: 1,
  organizations: 1,
}
const QUICK: Partial<typeof DEFAULTS> = { size: 20_000, largest: 40_000, seconds: 0.5, rounds: 1, connections: 8 }

/** Reads the arguments; throws a sentence for what cannot be understood. */
export function readOptions(args: string[]): Options {
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: {
      ...(Object.fromEntries(Object.keys(DEFAULTS).map((name) => [name, { type: 'string' }])) as Record<
        keyof typeof DEFAULTS,
        { type: 'string' }
      >),
      quick: { type: 'boolean', default: false },
    },
  })
  const { quick } = values
  const number = (name: keyof typeof DEFAULTS) => {
    const value = Number(values[name] ?? (quick ? QUICK[name] : undefined) ?? DEFAULTS[name])
    if (!(value > 0)) throw new Error(`--${name} must be a number above 0, not "${values[name]}".`)
    return value
  }
  return {
    names: positionals,
    size: number('size'),
    largest: number('largest'),
    seconds: number('seconds'),
    rounds: number('rounds'),
    connections: number('connections'),
    workers: number('workers'),
    organizations: number('organizations'),
    quick,
  }
}

/** What makes a run another than the usual: it is kept under this name, and does not take the place of a full one. */
export function kindOf({ names, size, largest, workers, organizations, quick }: Options): string {
  const usual = quick ? { ...DEFAULTS, ...QUICK } : DEFAULTS
  const parts = [
    names.join('-').slice(0, 40),
    size !== usual.size && `size-${size}`,
    largest !== usual.largest && `largest-${largest}`,
    workers !== usual.workers && `workers-${workers}`,
    organizations !== usual.organizations && `organizations-${organizations}`,
    quick && 'quick',
  ]
  return parts.filter(Boolean).join('-')
}
