// bin/bench growth: the same pages in a small project, in large ones, and in one of a thousand projects.
import { attempt } from './attempt.ts'
import { timeCalls } from './client.ts'
import { generate } from './generate.ts'
import { GROWTH_CASES, type Grown, reportRows } from './growth-cases.ts'
import { median, type Result, type Spread } from './measure.ts'
import type { Options } from './options.ts'
import { fill, openRig, startOurs } from './rig.ts'
import { measureTotals } from './totals.ts'

type Say = (text: string) => void

interface Size {
  label: string
  size: number
  projects: number
}

const WARM_UP_SECONDS = 3

function sizesOf({ quick, largest }: Options): Size[] {
  const [small, many] = quick ? [2000, 10] : [10_000, 1000]
  return [
    { label: short(small), size: small, projects: 1 },
    { label: short(largest / 10), size: largest / 10, projects: 1 },
    { label: short(largest), size: largest, projects: 1 },
    { label: `${many.toLocaleString('en')} projects`, size: largest / 10, projects: many },
  ]
}

const short = (n: number) => (n >= 1e6 ? `${n / 1e6} M` : n.toLocaleString('en'))

/** All sizes run at the same time, so that other load of the machine affects all of them; then the totals of the largest. */
export async function measureGrowth(options: Options, say: Say): Promise<Result[]> {
  const grown: Grown[] = []
  try {
    for (const size of sizesOf(options)) grown.push(await grow(size, options, say))
    // Otherwise the servers would warm up during the first case.
    for (const one of grown) await timeCalls(await GROWTH_CASES['page of 20 anywhere']!(one), WARM_UP_SECONDS)
    const results: Result[] = []
    for (const name of Object.keys(GROWTH_CASES)) {
      say(`${name}…`)
      results.push(await attempt(`growth ${name}`, () => compareSizes(name, grown, options)))
    }
    const largest = grown.reduce((one, other) => (other.size > one.size ? other : one))
    results.push(await attempt('totals', () => measureTotals(largest, options, say)))
    return results
  } finally {
    for (const { rig } of grown) await rig.close()
  }
}

async function grow({ label, size, projects }: Size, { workers }: Options, say: Say): Promise<Grown> {
  say(`Making ${label}: ${size.toLocaleString('en')} subscriptions…`)
  const begunMs = performance.now()
  const rig = await openRig({ say, projects })
  try {
    await fill(rig, (query) => generate(query, { size, projects, report: reportRows(size) }))
    say(`…made in ${Math.round((performance.now() - begunMs) / 1000)} s.`)
    return { label, rig, ours: await startOurs(rig, { workers }), size: size / projects, projects }
  } catch (error) {
    await rig.close()
    throw error
  }
}

async function compareSizes(name: string, grown: Grown[], { seconds, rounds }: Options): Promise<Result> {
  const calls = await Promise.all(grown.map((one) => GROWTH_CASES[name]!(one)))
  const times: number[][] = grown.map(() => [])
  const postgres: number[][] = grown.map(() => [])
  for (const one of calls) await timeCalls(one, 0.5)
  for (let round = 0; round < rounds; round += 1) {
    for (const [n, { rig }] of grown.entries()) {
      const before = await rig.postgresSeconds()
      const { p50Ms, requests } = await timeCalls(calls[n]!, seconds / 2)
      times[n]!.push(p50Ms)
      postgres[n]!.push((((await rig.postgresSeconds()) - before) * 1000) / requests)
    }
  }
  const byLabel = <T>(value: (n: number) => T) => Object.fromEntries(grown.map(({ label }, n) => [label, value(n)]))
  const { [grown[0]!.label]: _smallest, ...ratios } = byLabel((n) => ratioTo(times[0]!, times[n]!))
  const figures = {
    ratios,
    'p50 ms': byLabel((n) => median(times[n]!)),
    'PostgreSQL CPU s/1000': byLabel((n) => median(postgres[n]!)),
  }
  return { name: `growth ${name}`, unit: 'requests', contenders: {}, ratios: {}, figures }
}

function ratioTo(base: number[], times: number[]): Spread {
  const ratios = times.map((time, n) => time / base[n]!)
  return { median: median(ratios)!, least: Math.min(...ratios), most: Math.max(...ratios) }
}
