// bin/pinned-node --dev bench/size-model.ts: computes from measured costs what many organizations need on 1, 10 and 100 shards.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

const RESULTS = join(import.meta.dirname, 'results')

const { values } = parseArgs({
  options: {
    organizations: { type: 'string', default: '10000' },
    records: { type: 'string', default: '1000000000' },
    // Per second at the busiest moment, of all organizations together.
    pages: { type: 'string', default: '20000' },
    charges: { type: 'string', default: '2000' },
    // Of each PostgreSQL server.
    cores: { type: 'string', default: '16' },
    memory: { type: 'string', default: '64' },
  },
})

const total = {
  organizations: Number(values.organizations),
  records: Number(values.records),
  pages: Number(values.pages),
  charges: Number(values.charges),
}
const server = { cores: Number(values.cores), memoryGb: Number(values.memory) }

/** PostgreSQL's CPU milliseconds by the number of rows: a line over the logarithm, through two measured sizes. */
interface Line {
  name: string
  at(rows: number): number
  /** The value of the line at the third measured size, and the measured one. */
  check: { predicted: number; measured: number }
}

interface GrowthResult {
  name: string
  figures: { 'PostgreSQL CPU s/1000': Record<string, number> }
}

const SMALL = 1e4
const LARGE = 1e6
const LARGEST = 1e7
// A transaction with its four indexes takes 860 bytes, with ids that are longer than ours.
const BYTES_A_RECORD = 800
// PostgreSQL's CPU of a charge, in milliseconds, by charges a second: decision 16.
const LONE = { rate: 100, ms: 3.6 }
const SHARED = { rate: 944, ms: 0.73 }
// The CPU milliseconds for an erased profile, as measured.
const ERASURE_MS = 0.27
const SYNC_PAGE = 500
// A large organization has this many times the average number of rows.
const LARGE_ORGANIZATION = 100
const COPY_BYTES_A_SECOND = 200e6
const PROCESSES = 4
const CONNECTIONS = 16
// Above this CPU load, responses would take too long.
const MAX_BUSY = 0.6

function lineOf(name: string): Line {
  const { results } = JSON.parse(readFileSync(join(RESULTS, '2026-11-21-growth.json'), 'utf8'))
  const found = (results as GrowthResult[]).find((one) => one.name === `growth ${name}`)!
  const cpu = found.figures['PostgreSQL CPU s/1000']
  const small = cpu['10,000']!
  const large = cpu['1 M']!
  const decade = (large - small) / Math.log10(LARGE / SMALL)
  const at = (rows: number) => small + decade * Math.log10(rows / SMALL)
  return { name, at, check: { predicted: at(LARGEST), measured: cpu['10 M']! } }
}

/** Concurrent charges share statements; between the measured rates the cost follows the logarithm of the rate. */
function chargeMs(rate: number): number {
  if (rate <= LONE.rate) return LONE.ms
  if (rate >= SHARED.rate) return SHARED.ms
  const share = Math.log(rate / LONE.rate) / Math.log(SHARED.rate / LONE.rate)
  return LONE.ms + share * (SHARED.ms - LONE.ms)
}

function modelOf(shards: number, page: Line, syncPage: Line) {
  const records = total.records / shards
  const pageMs = Math.max(page.at(records), page.check.measured)
  const chargesASecond = total.charges / shards
  const cores = ((total.pages / shards) * pageMs + chargesASecond * chargeMs(chargesASecond)) / 1000
  const diskGb = (records * BYTES_A_RECORD) / 1e9
  const organization = (total.records / total.organizations) * LARGE_ORGANIZATION
  return {
    shards,
    organizations: total.organizations / shards,
    'M records': records / 1e6,
    'page, ms': pageMs,
    'charge, ms': chargeMs(chargesASecond),
    'cores busy': cores,
    'disk, GB': diskGb,
    'backup, min': (diskGb * 1e9) / COPY_BYTES_A_SECOND / 60,
    connections: PROCESSES * CONNECTIONS,
    'sync of a large organization, CPU s': (organization / SYNC_PAGE) * (syncPage.at(records) / 1000),
    'erasing 1,000 profiles, CPU s': ERASURE_MS,
    'next limit': nextLimitOf(cores, diskGb),
  }
}

function nextLimitOf(cores: number, diskGb: number): string {
  if (cores > server.cores * MAX_BUSY) return `CPU: ${Math.ceil(cores / MAX_BUSY)} cores are needed`
  // Indexes and recent rows should stay in memory: about a quarter of an evenly used database.
  if (diskGb / 4 > server.memoryGb) return `memory: ${Math.ceil(diskGb / 4)} GB are in use`
  return 'one organization that is too large for a server'
}

function main(): void {
  const page = lineOf('page 1 of 20')
  const syncPage = lineOf('page of 500 anywhere')
  const lines = [page, lineOf('page of 20 anywhere'), syncPage, lineOf('one subscription')]
  print('Checked at 10 M rows (milliseconds of PostgreSQL by the line through 10,000 and 1 M, and measured):')
  for (const { name, check } of lines) {
    const off = (check.predicted / check.measured - 1) * 100
    print(`  ${name}: ${check.predicted.toFixed(3)}, measured ${check.measured.toFixed(3)} (${off.toFixed(0)} %)`)
  }
  const rows = [1, 10, 100].map((shards) => modelOf(shards, page, syncPage))
  const names = Object.keys(rows[0]!)
  const cells = names.map((name) => [
    name,
    ...rows.map((row) => shown((row as Record<string, number | string>)[name]!)),
  ])
  print(
    `\nOf each shard; ${total.organizations} organizations, ${total.records / 1e6} M records, ${total.pages} pages and`,
  )
  print(`${total.charges} charges a second in all; servers of ${server.cores} cores and ${server.memoryGb} GB:\n`)
  const [, ...rest] = cells
  print(`| | ${rows.map(({ shards }) => `${shards} ${shards === 1 ? 'shard' : 'shards'}`).join(' | ')} |`)
  print(`|---|${rows.map(() => '---|').join('')}`)
  for (const cell of rest) print(`| ${cell.join(' | ')} |`)
}

function shown(value: number | string): string {
  if (typeof value === 'string') return value
  return value >= 100 ? Math.round(value).toLocaleString('en') : String(Number(value.toPrecision(2)))
}

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

main()
