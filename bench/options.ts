// The command-line options of a measurement.
import { parseArgs } from 'node:util'

export interface Options {
  /** The cases to measure: names, or beginnings of names. If empty, all cases except those that must be named. */
  names: string[]
  /** The number of subscriptions in the project. */
  size: number
  /** The number of sessions in the project of the dashboard, at least a quarter of its subscriptions. */
  sessions: number
  /** The number of subscriptions in the largest project of the growth. */
  largest: number
  /** The duration of a load, and the number of its repetitions. */
  seconds: number
  rounds: number
  connections: number
  /** Processes of ours, and of the plain server. */
  workers: number
  /** The number of organizations among which the charged customers are divided. */
  organizations: number
  /** Small and short, to see whether everything works; the figures are meaningless. */
  quick: boolean
}

const DEFAULTS = {
  size: 1_000_000,
  sessions: 1,
  largest: 10_000_000,
  seconds: 2,
  rounds: 3,
  connections: 32,
  workers: 1,
  organizations: 1,
}
const QUICK: Partial<typeof DEFAULTS> = { size: 20_000, largest: 40_000, seconds: 0.5, rounds: 1, connections: 8 }

/** Reads the arguments; throws an error with a sentence for invalid ones. */
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
    sessions: number('sessions'),
    largest: number('largest'),
    seconds: number('seconds'),
    rounds: number('rounds'),
    connections: number('connections'),
    workers: number('workers'),
    organizations: number('organizations'),
    quick,
  }
}

/** The name of a run whose options differ from the defaults, so that its results do not replace those of a full run. */
export function kindOf({ names, size, sessions, largest, workers, organizations, quick }: Options): string {
  const usual = quick ? { ...DEFAULTS, ...QUICK } : DEFAULTS
  const parts = [
    names.join('-').slice(0, 40),
    size !== usual.size && `size-${size}`,
    sessions !== usual.sessions && `sessions-${sessions}`,
    largest !== usual.largest && `largest-${largest}`,
    workers !== usual.workers && `workers-${workers}`,
    organizations !== usual.organizations && `organizations-${organizations}`,
    quick && 'quick',
  ]
  return parts.filter(Boolean).join('-')
}
