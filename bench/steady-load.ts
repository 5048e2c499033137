// What a charge takes beyond the provider at half of the maximum load, and what the disk alone takes meanwhile.
import { chargeSteadily, type Entry, type Target } from './charges-clients.ts'
import type { ChargesRig } from './charges-rig.ts'
import { median, type Percentiles, percentiles } from './measure.ts'

const WHOSE = ['overhead', 'inServer', 'provider', 'disk'] as const

/** Whose time it was. */
type Times = Record<(typeof WHOSE)[number], Percentiles>

interface HalfLoad extends Times {
  perSecond: number
  /** What the medians above are taken from. */
  rounds: Times[]
}

/** Charges at a steady rate, round after round; answers the medians of the rounds, and what the clients heard. */
export async function measureHalfLoad(
  rig: ChargesRig,
  target: Target,
  card: string,
  perSecond: number,
  { seconds, rounds }: { seconds: number; rounds: number },
): Promise<{ halfLoad: HalfLoad; heard: Entry[] }> {
  const heard: Entry[] = []
  const measured: Times[] = []
  for (let round = 0; round < rounds; round += 1) {
    await rig.diskTimes()
    const entries = await chargeSteadily(target, card, perSecond, seconds)
    measured.push(await timesOf(rig, entries, await rig.diskTimes()))
    heard.push(...entries)
  }
  return { halfLoad: { perSecond, ...mediansOf(measured), rounds: measured }, heard }
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
  const medians = (of: (typeof WHOSE)[number]) => ({
    p50Ms: median(rounds.map((times) => times[of].p50Ms))!,
    p99Ms: median(rounds.map((times) => times[of].p99Ms))!,
  })
  return Object.fromEntries(WHOSE.map((of) => [of, medians(of)])) as Times
}
