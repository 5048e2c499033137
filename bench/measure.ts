// Measures a case: ours and its references in turn, in several rounds, so that other load of the machine affects all of them.

/**
 * What is measured: our program; the same statements by pgbench or psql; the same with as many clients as we have connections; a
 * server tuned by hand; and one that sends a constant.
 */
export type Contender = 'ours' | 'limit' | 'few' | 'plain' | 'wire'

/** The result of one load. */
export interface Sample {
  perSecond: number
  p50Ms?: number
  p99Ms?: number
  /** CPU seconds of the server and of PostgreSQL for 1,000 of the unit. */
  cpu?: { server: number; postgres: number }
}

/** Runs a load for about so many seconds. */
export type Run = (seconds: number) => Promise<Sample>

export interface Spread {
  median: number
  least: number
  most: number
}

export interface Figures {
  perSecond: number
  p50Ms?: number
  p99Ms?: number
  cpu?: { server: number; postgres: number }
}

/** The result of a case, as it is saved. */
export interface Result {
  name: string
  /** The counted unit: requests, rows, records, charges. */
  unit: string
  contenders: Partial<Record<Contender, Figures>>
  /** Our throughput as a fraction of each reference's. */
  ratios: Partial<Record<Exclude<Contender, 'ours'>, Spread>>
  /** Further figures of the case. */
  figures?: Record<string, unknown>
  /** Why it could not be measured. */
  failure?: string
}

const WARM_UP_SECONDS = 1

/** Runs each contender once to warm up, then all in turn, round after round. */
export async function alternate(
  name: string,
  unit: string,
  runs: Partial<Record<Contender, Run>>,
  { seconds, rounds }: { seconds: number; rounds: number },
): Promise<Result> {
  const contenders = Object.entries(runs) as [Contender, Run][]
  const samples: Partial<Record<Contender, Sample[]>> = {}
  for (const [, run] of contenders) await run(Math.min(seconds, WARM_UP_SECONDS))
  for (let round = 0; round < rounds; round += 1) {
    for (const [contender, run] of contenders) {
      samples[contender] = [...(samples[contender] ?? []), await run(seconds)]
    }
  }
  return summary(name, unit, samples)
}

/** The medians of each contender, and the ratios of each round. */
export function summary(name: string, unit: string, samples: Partial<Record<Contender, Sample[]>>): Result {
  const result: Result = { name, unit, contenders: {}, ratios: {} }
  for (const [contender, all] of Object.entries(samples) as [Contender, Sample[]][]) {
    result.contenders[contender] = figures(all)
    if (contender === 'ours') continue
    const ratios = all.map(({ perSecond }, n) => (samples.ours![n]?.perSecond ?? Number.NaN) / perSecond)
    result.ratios[contender] = { median: median(ratios)!, least: Math.min(...ratios), most: Math.max(...ratios) }
  }
  return result
}

function figures(samples: Sample[]): Figures {
  const of = (value: (sample: Sample) => number | undefined) =>
    median(samples.map(value).filter((one) => one !== undefined && !Number.isNaN(one)) as number[])
  const server = of(({ cpu }) => cpu?.server)
  const postgres = of(({ cpu }) => cpu?.postgres)
  return {
    perSecond: of(({ perSecond }) => perSecond)!,
    p50Ms: of(({ p50Ms }) => p50Ms),
    p99Ms: of(({ p99Ms }) => p99Ms),
    ...(server !== undefined && postgres !== undefined && { cpu: { server, postgres } }),
  }
}

export function median(values: number[]): number | undefined {
  return percentile(values, 0.5)
}

/** The value below which this share of all values is; undefined without values. */
export function percentile(values: number[], share: number): number | undefined {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))]
}

export interface Percentiles {
  p50Ms: number
  p99Ms: number
}

export function percentiles(values: number[]): Percentiles {
  return { p50Ms: percentile(values, 0.5)!, p99Ms: percentile(values, 0.99)! }
}
