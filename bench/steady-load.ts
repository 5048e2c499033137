// What a charge takes beyond the provider at a steady rate, and what the disk alone takes meanwhile.
import { chargeSteadily, type Entry, type Target } from './charges-clients.ts'
import type { ChargesRig } from './charges-rig.ts'
import { median, type Percentiles, percentiles } from './measure.ts'
import type { Program } from './rig.ts'

// Another rate makes other code hot than the one before, and it comes slowly: the median fell by half in the first ten seconds.
const WARM_UP_SECONDS = 15
// A round has to be so long that its 99th percentile is more than one moment in which something stood still.
const LONGER = 3
const WHOSE = ['overhead', 'inServer', 'provider', 'disk', 'limit', 'plain'] as const
const USED = ['cpu', 'plainCpu'] as const

/** CPU milliseconds for one charge. */
interface Cpu {
  serverMs: number
  postgresMs: number
}

/** Whose time it was; that of plain is with its provider's. */
type Times = Partial<Record<(typeof WHOSE)[number], Percentiles>> & Partial<Record<(typeof USED)[number], Cpu>>

/** A rate, and whoever else keeps it, round by round: the milliseconds of each, from when it was due. */
export interface Rate {
  perSecond: number
  limit?: (seconds: number) => Promise<number[]>
  /** A reference that charges over HTTP too. */
  plain?: Program
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
  { perSecond, limit, plain }: Rate,
  { seconds: briefly, rounds }: { seconds: number; rounds: number },
): Promise<{ steady: Steady; heard: Entry[] }> {
  const seconds = briefly * LONGER
  const heard = await chargeSteadily(target, card, perSecond, Math.min(briefly * 8, WARM_UP_SECONDS))
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
    heard.push(...entries)
  }
  return { steady: { perSecond, ...mediansOf(measured), rounds: measured }, heard }
}

/** Charges at a server, and what it and PostgreSQL used for each. */
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
  const medians = <T extends object>(of: (times: Times) => T | undefined) => {
    const all = rounds.map((times) => of(times)) as T[]
    const names = Object.keys(all[0]!) as (keyof T)[]
    return Object.fromEntries(names.map((name) => [name, median(all.map((one) => one[name] as number))]))
  }
  const present = [...WHOSE, ...USED].filter((of) => rounds[0]![of])
  return Object.fromEntries(present.map((of) => [of, medians((times) => times[of])])) as Times
}
