// What a charge takes beyond the provider at a steady rate, and what the disk alone takes meanwhile.
import { chargeSteadily, type Entry, type Target } from './charges-clients.ts'
import type { ChargesRig } from './charges-rig.ts'
import { median, type Percentiles, percentiles } from './measure.ts'

// Another rate makes other code hot than the one before, and it comes slowly: the median fell by half in the first ten seconds.
const WARM_UP_SECONDS = 15
// A round has to be so long that its 99th percentile is more than one moment in which something stood still.
const LONGER = 3
const WHOSE = ['overhead', 'inServer', 'provider', 'disk', 'limit'] as const

/** Whose time it was. */
type Times = Record<Exclude<(typeof WHOSE)[number], 'limit'>, Percentiles> & { limit?: Percentiles }

/** A rate, and whoever else keeps it, round by round: the milliseconds of each, from when it was due. */
export interface Rate {
  perSecond: number
  limit?: (seconds: number) => Promise<number[]>
}

/** Medians of the rounds, and what they are taken from. */
type Steady = Times & { perSecond: number; rounds: Times[] }

/**
 * Charges at a steady rate, round after round, once that has gone on for some seconds; answers what it showed, and what
 * the clients heard.
 */
export async function measureSteadily(
  rig: ChargesRig,
  target: Target,
  card: string,
  { perSecond, limit }: Rate,
  { seconds: briefly, rounds }: { seconds: number; rounds: number },
): Promise<{ steady: Steady; heard: Entry[] }> {
  const seconds = briefly * LONGER
  const heard = await chargeSteadily(target, card, perSecond, Math.min(briefly * 8, WARM_UP_SECONDS))
  const measured: Times[] = []
  for (let round = 0; round < rounds; round += 1) {
    await rig.diskTimes()
    const entries = await chargeSteadily(target, card, perSecond, seconds)
    const times = await timesOf(rig, entries, await rig.diskTimes())
    measured.push(limit ? { ...times, limit: percentiles(await limit(seconds)) } : times)
    heard.push(...entries)
  }
  return { steady: { perSecond, ...mediansOf(measured), rounds: measured }, heard }
}

/**
 * What each charge took beyond the provider's own time, which the simulator has measured for each: as a client has it, from
 * when the charge was due, and within the server.
 */
async function timesOf(rig: ChargesRig, entries: Entry[], disk: number[]): Promise<Times> {
  const traces = entries.map(({ trace }) => trace)
  const [providers, servers] = [await rig.providerTimes(traces), await rig.serverTimes(traces)]
  const untimed = traces.filter((trace) => !providers.has(trace) || !servers.has(trace)).length
  if (untimed > 0) throw new Error(`${untimed} of ${traces.length} charges left no trace.`)
  return {
    overhead: percentiles(entries.map(({ trace, ms }) => ms - providers.get(trace)!)),
    inServer: percentiles(entries.map(({ trace }) => servers.get(trace)! - providers.get(trace)!)),
    provider: percentiles(entries.map(({ trace }) => providers.get(trace)!)),
    disk: percentiles(disk),
  }
}

function mediansOf(rounds: Times[]): Times {
  const present = WHOSE.filter((of) => rounds[0]![of])
  const medians = (of: (typeof WHOSE)[number]) => ({
    p50Ms: median(rounds.map((times) => times[of]!.p50Ms))!,
    p99Ms: median(rounds.map((times) => times[of]!.p99Ms))!,
  })
  return Object.fromEntries(present.map((of) => [of, medians(of)])) as Times
}
