// npm run bench: measures the data API beside pgbench with the same statements and beside a plain server, in one run.
import { mkdir, writeFile } from 'node:fs/promises'
import { cpus, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { measureCharges } from './charges.ts'
import { openRig, type Rig } from './rig.ts'
import { findTools, type Load, limit, load, type Tools } from './tools.ts'

interface Case {
  name: string
  /** The request, to ours and to the plain server. */
  ours: string
  plain: string
}

interface Measured {
  ours: Load[]
  plain: Load[]
  limit: Load[]
  cpuMsPerRequest: number[]
}

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    size: { type: 'string', default: '1000000' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
    connections: { type: 'string', default: '32' },
  },
})
const say = (text: string) => void process.stderr.write(`${text}\n`)
const [size, seconds, rounds, connections] = [options.size, options.seconds, options.rounds, options.connections].map(
  Number,
) as [number, number, number, number]

const READS = ['page-first', 'page-later', 'one']
const tools = await findTools(say)
const wanted = (name: string) => positionals.length === 0 || positionals.includes(name)
const results: Record<string, object> = {}
if (READS.some(wanted)) Object.assign(results, await measureReads())
if (wanted('charges')) Object.assign(results, await measureCharges(tools, seconds, say))
console.table(results)
await keep({ machine: machine(), options, tools: { wrk: tools.wrk, pgbench: tools.pgbench !== undefined }, results })

async function measureReads(): Promise<Record<string, object>> {
  const rig = await openRig(size, say)
  const measured: Record<string, object> = {}
  try {
    for (const one of (await cases(rig)).filter(({ name }) => wanted(name))) {
      say(`${one.name}…`)
      measured[one.name] = summary(await measure(rig, tools, one))
    }
  } finally {
    await rig.close()
  }
  return measured
}

async function cases({ key, ours, plain }: Rig): Promise<Case[]> {
  const next = async (url: string, headers: Record<string, string>) => {
    const page = (await (await fetch(url, { headers })).json()) as { pagination: { next_cursor: string } }
    return `&cursor=${page.pagination.next_cursor}`
  }
  const page = '/subscriptions?limit=20'
  return [
    { name: 'page-first', ours: page, plain: page },
    {
      name: 'page-later',
      ours: page + (await next(`${ours}/public/v1${page}`, { 'Service-Secret': key })),
      plain: page + (await next(`${plain}${page}`, {})),
    },
    { name: 'one', ours: `/subscriptions/${middle()}`, plain: `/subscriptions/${middle()}` },
  ]
}

function middle(): string {
  return `sub_${String(Math.ceil(size / 2)).padStart(12, '0')}`
}

/** Rounds of each in alternation, so that what else the machine does falls on all of them. The first round warms up. */
async function measure(rig: Rig, tools: Tools, { ours, plain }: Case): Promise<Measured> {
  const measured: Measured = { ours: [], plain: [], limit: [], cpuMsPerRequest: [] }
  const { statements } = await rig.record(`/public/v1${ours}`)
  for (let round = 0; round <= rounds; round += 1) {
    const time = round === 0 ? 1 : seconds
    const before = await rig.cpuSeconds()
    const one = await load(tools, `${rig.ours}/public/v1${ours}`, { 'Service-Secret': rig.key }, time, connections)
    const cpu = ((await rig.cpuSeconds()) - before) * 1000
    const other = await load(tools, rig.plain + plain, {}, time, connections)
    const most = tools.pgbench ? await limit(tools.pgbench, rig.databaseUrl, statements, time, connections) : undefined
    if (round === 0) continue
    measured.ours.push(one)
    measured.plain.push(other)
    if (most) measured.limit.push(most)
    measured.cpuMsPerRequest.push(cpu / (one.perSecond * time))
  }
  return measured
}

function summary({ ours, plain, limit, cpuMsPerRequest }: Measured) {
  const ratios = (reference: Load[]) => reference.map(({ perSecond }, n) => ours[n]!.perSecond / perSecond)
  return {
    'per second': Math.round(median(ours.map(({ perSecond }) => perSecond))),
    'of limit': spread(ratios(limit)),
    'of plain': spread(ratios(plain)),
    'p50 ms': round(median(ours.map(({ p50Ms }) => p50Ms))),
    'p99 ms': round(median(ours.map(({ p99Ms }) => p99Ms))),
    'CPU s/1000': round(median(cpuMsPerRequest)),
  }
}

function spread(ratios: number[]): string {
  if (ratios.length === 0) return 'not measured'
  return `${round(median(ratios))} (${round(Math.min(...ratios))} to ${round(Math.max(...ratios))})`
}

function round(value: number): number {
  return Math.round(value * 100) / 100
}

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

function machine() {
  return {
    cpu: cpus()[0]?.model,
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    node: process.version,
  }
}

async function keep(result: object): Promise<void> {
  const folder = new URL('results/', import.meta.url)
  await mkdir(folder, { recursive: true })
  const file = new URL(`${new Date().toISOString().slice(0, 10)}.json`, folder)
  await writeFile(file, `${JSON.stringify(result, null, 2)}\n`)
  say(`Kept in ${file.pathname}.`)
}
