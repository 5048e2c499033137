// Measures charges at a steady rate: their time beyond the provider's own, and the disk's time at the same time.
import { chargeSteadily, type Entry, type Target } from './charges-clients.ts'
import type { ChargesRig } from './charges-rig.ts'
import { median, type Percentiles, percentiles } from './measure.ts'
import type { Program } from './rig.ts'

// V8 optimizes other code for another rate, slowly: the median fell by half in the first ten seconds.
const WARM_UP_SECONDS = 15
// Steady rounds are longer by this factor, so that the 99th percentile is not determined by a single stall.
const LENGTH_FACTOR = 3
const TIMES = ['overhead', 'inServer', 'provider', 'disk', 'limit', 'plain'] as const
const CPUS = ['cpu', 'plainCpu'] as const

/** CPU milliseconds for one charge. */
interface Cpu {
  serverMs: number
  postgresMs: number
}

/** The times of one round; those of plain include its provider's. */
type Times = Partial<Record<(typeof TIMES)[number], Percentiles>> & Partial<Record<(typeof CPUS)[number], Cpu>>

/** A rate, and the references that are measured at it in each round. */
export interface Rate {
  perSecond: number
  /** Returns the milliseconds of each of its transactions, from when it was due. */
  limit?: (seconds: number) => Promise<number[]>
  /** A reference that charges over HTTP too. */
  plain?: Program
}

/** The medians of the rounds, and the rounds. */
type Steady = Times & { perSecond: number; rounds: Times[] }

/**
 * Charges at a steady rate, round after round, after a warm-up. Returns the times, and all charges as the clients saw them.
 */
export async function measureSteadily(
  rig: ChargesRig,
  target: Target,
  card: string,
  { perSecond, limit, plain }: Rate,
  { seconds: briefly, rounds }: { seconds: number; rounds: number },
): Promise<{ steady: Steady; entries: Entry[] }> {
  const seconds = briefly * LENGTH_FACTOR
  const all = await chargeSteadily(target, card, perSecond, Math.min(briefly * 8, WARM_UP_SECONDS))
  const measured: Times[] = []
  for (let round = 0; round < rounds; round += 1) {
    await rig.diskTimes()
    const { entries, cpu } = await chargeAt(rig, rig.ours, target, card, perSecond, seconds)
    const times: Times = { ...(await timesOf(rig, entries, await rig.diskTimes())), cpu }
    if (limit) times.limit = percentiles(await limit(seconds))
    if (plain) {
      const other = await chargeAt(rig, plain, { ...target, url: plain.url }, card, perSecond, seconds)
      times.plain = percentiles(other.entries.map(({ ms }) => ms))
      times.plainCpu = other.cpu
    }
    measured.push(times)
    all.push(...entries)
  }
  return { steady: { perSecond, ...mediansOf(measured), rounds: measured }, entries: all }
}

/** Charges at a server, and returns the CPU time that it and PostgreSQL used for each charge. */
async function chargeAt(
  rig: ChargesRig,
  server: Program,
  target: Target,
  card: string,
  perSecond: number,
  seconds: number,
): Promise<{ entries: Entry[]; cpu: Cpu }> {
  const used = () => Promise.all([server.cpuSeconds(), rig.postgresSeconds()])
  const before = await used()
  const entries = await chargeSteadily(target, card, perSecond, seconds)
  const after = await used()
  const [serverMs, postgresMs] = after.map((now, n) => ((now - before[n]!) * 1000) / entries.length)
  return { entries, cpu: { serverMs: serverMs!, postgresMs: postgresMs! } }
}

/**
 * The time of each charge beyond the provider's own, which the simulator measures: as seen by the client, from when the charge
 * was due, and within the server.
 */
async function timesOf(rig: ChargesRig, entries: Entry[], disk: number[]): Promise<Times> {
  const traces = entries.map(({ trace }) => trace)
  const providers = await rig.providerTimes(traces)
  const servers = await rig.serverTimes(traces)
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
  const medians = <T extends object>(of: (times: Times) => T | undefined) => {
    const all = rounds.map((times) => of(times)) as T[]
    const names = Object.keys(all[0]!) as (keyof T)[]
    return Object.fromEntries(names.map((name) => [name, median(all.map((one) => one[name] as number))]))
  }
  const present = [...TIMES, ...CPUS].filter((of) => rounds[0]![of])
  return Object.fromEntries(present.map((of) => [of, medians((times) => times[of])])) as Times
}
