// Finds and runs external tools: wrk (else autocannon) as the client, pgbench as the limit. It does not install them.
import { execFile, spawnSync } from 'node:child_process'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import autocannon from 'autocannon'
import type { Param } from '../src/lib/pg/types.ts'

const run = promisify(execFile)

export interface Load {
  perSecond: number
  p50Ms: number
  p99Ms: number
}

export interface Recorded {
  text: string
  params: readonly Param[]
  /** The types of the parameters, for statements that are rebuilt from their values. */
  types?: string[]
}

export interface Tools {
  wrk: boolean
  pgbench: string | undefined
  psql: string | undefined
}

const WHERE = {
  wrk: 'wrk is not installed: requests come from autocannon, which takes more of the machine (Debian and Homebrew: the package wrk)',
  pgbench:
    'pgbench is not installed: no limit is measured (Debian: the package postgresql-contrib; Homebrew: postgresql; or PGBENCH=path)',
  psql: 'psql is not installed: the import has no limit (Debian: the package postgresql-client; or PSQL=path)',
}

/** Finds the tools on this machine; reports how to install missing ones. */
export async function findTools(say: (text: string) => void): Promise<Tools> {
  const wrk = spawnSync('wrk', ['-v']).error === undefined
  const pgbench = await findProgram('pgbench', process.env.PGBENCH)
  const psql = await findProgram('psql', process.env.PSQL)
  if (!wrk) say(WHERE.wrk)
  if (!pgbench) say(WHERE.pgbench)
  if (!psql) say(WHERE.psql)
  return { wrk, pgbench, psql }
}

async function findProgram(name: string, given: string | undefined): Promise<string | undefined> {
  const folders = await readdir('/usr/lib/postgresql').catch(() => [])
  const candidates = [given ?? name, ...folders.map((version) => `/usr/lib/postgresql/${version}/bin/${name}`)]
  return candidates.find((path) => spawnSync(path, ['--version']).status === 0)
}

/** Requests one address for some seconds over this many connections. Throws if a response is not 2xx. */
export async function load(
  tools: Tools,
  url: string,
  headers: Record<string, string>,
  seconds: number,
  connections: number,
): Promise<Load> {
  return tools.wrk
    ? loadWithWrk(url, headers, seconds, connections)
    : loadWithAutocannon(url, headers, seconds, connections)
}

async function loadWithWrk(
  url: string,
  headers: Record<string, string>,
  seconds: number,
  connections: number,
): Promise<Load> {
  const given = Object.entries(headers).flatMap(([name, value]) => ['-H', `${name}: ${value}`])
  const { stdout } = await run('wrk', ['-t1', `-c${connections}`, `-d${whole(seconds)}s`, '--latency', ...given, url])
  if (/Non-2xx|Socket errors/.test(stdout)) throw new Error(`Some requests failed:\n${stdout}`)
  const percentile = (p: number) => readTime(new RegExp(`^\\s+${p}%\\s+([0-9.]+)(us|ms|s)$`, 'm').exec(stdout))
  return {
    perSecond: Number(/Requests\/sec:\s+([0-9.]+)/.exec(stdout)![1]),
    p50Ms: percentile(50),
    p99Ms: percentile(99),
  }
}

const UNIT_MS: Record<string, number> = { us: 0.001, ms: 1, s: 1000 }

function readTime(match: RegExpExecArray | null): number {
  return match ? Number(match[1]) * UNIT_MS[match[2]!]! : Number.NaN
}

async function loadWithAutocannon(
  url: string,
  headers: Record<string, string>,
  seconds: number,
  connections: number,
): Promise<Load> {
  const result = await autocannon({ url, headers, connections, duration: whole(seconds) })
  if (result.non2xx + result.errors > 0) throw new Error(`${result.non2xx + result.errors} requests failed.`)
  return { perSecond: result.requests.average, p50Ms: result.latency.p50, p99Ms: result.latency.p99 }
}

/** A script of pgbench, and its variables. */
export interface Script {
  script: string
  variables: string[]
}

/** Runs the same statements with the same parameters, in order, as a transaction of pgbench. */
export async function limit(
  pgbench: string,
  databaseUrl: string,
  statements: Recorded[],
  seconds: number,
  clients: number,
): Promise<Load> {
  const given = statements.flatMap(({ params }, n) => params.map((value, k) => `p${n}_${k + 1}=${value}`))
  const script = statements.map(({ text }, n) => `${oneLine(text, n)};\n`).join('')
  return limitOf(pgbench, databaseUrl, { script, variables: given }, seconds, clients)
}

/** Runs the script as often as these clients can. The median is the mean, because pgbench reports no other. */
export async function limitOf(
  pgbench: string,
  databaseUrl: string,
  script: Script,
  seconds: number,
  clients: number,
): Promise<Load> {
  return withPgbench(pgbench, databaseUrl, script, async (repeat) => {
    const stdout = await repeat(['-c', String(clients), '-T', String(whole(seconds))])
    const [, latency] = /latency average = ([0-9.]+) ms/.exec(stdout) ?? []
    if (latency === undefined) throw new Error(`pgbench finished nothing in ${whole(seconds)} s:\n${stdout}`)
    return { perSecond: Number(/tps = ([0-9.]+)/.exec(stdout)![1]), p50Ms: Number(latency), p99Ms: Number.NaN }
  })
}

// For connecting, and for planning each statement once for each client.
const LIMIT_WARM_UP_SECONDS = 2

/**
 * Runs the script at a steady rate, whether or not earlier runs have ended. Returns the milliseconds of each run after the
 * warm-up, from when it was due.
 */
export async function limitSteadily(
  pgbench: string,
  databaseUrl: string,
  script: Script,
  seconds: number,
  { clients, perSecond }: { clients: number; perSecond: number },
): Promise<number[]> {
  return withPgbench(pgbench, databaseUrl, script, async (repeat, folder) => {
    const durationS = whole(seconds) + LIMIT_WARM_UP_SECONDS
    const args = ['-c', String(clients), '-T', String(durationS), `--rate=${perSecond.toFixed(1)}`]
    await repeat([...args, '-l', `--log-prefix=${join(folder, 'log')}`])
    const logs = (await readdir(folder)).filter((name) => name.startsWith('log'))
    const texts = await Promise.all(logs.map((name) => readFile(join(folder, name), 'utf8')))
    // Client, number, microseconds from when it was due, script, and the time of its end in seconds and microseconds.
    const ended = texts.flatMap((text) =>
      text
        .trimEnd()
        .split('\n')
        .map((line) => line.split(' ').map(Number)),
    )
    const all = ended.map(([, , us, , s, rest]) => ({ ms: us! / 1000, due: s! + (rest! - us!) / 1e6 }))
    const warm = Math.min(...all.map(({ due }) => due)) + LIMIT_WARM_UP_SECONDS
    return all.filter(({ due }) => due >= warm).map(({ ms }) => ms)
  })
}

async function withPgbench<T>(
  pgbench: string,
  databaseUrl: string,
  { script, variables }: Script,
  work: (repeat: (args: string[]) => Promise<string>, folder: string) => Promise<T>,
): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'tundish-bench-'))
  const env = {
    ...process.env,
    PGOPTIONS: '-c jit=off -c TimeZone=UTC -c plan_cache_mode=force_generic_plan',
    ...connection(databaseUrl),
  }
  try {
    const file = join(folder, 'script.sql')
    await writeFile(file, script)
    const given = ['-n', '-M', 'prepared', '-j', '2', ...variables.flatMap((one) => ['-D', one]), '-f', file]
    return await work(async (args) => (await run(pgbench, [...given, ...args], { env })).stdout, folder)
  } finally {
    await rm(folder, { recursive: true })
  }
}

/** The environment that gives a PostgreSQL program this address. As an argument the password would be visible to all users. */
export function connection(databaseUrl: string): Record<string, string> {
  const { username, password, pathname, searchParams } = new URL(databaseUrl)
  return {
    PGHOST: searchParams.get('host')!,
    PGPORT: searchParams.get('port')!,
    PGUSER: username,
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: pathname.slice(1),
  }
}

// wrk and pgbench take whole seconds only.
const whole = (seconds: number) => Math.max(1, Math.round(seconds))

const oneLine = (text: string, n: number) =>
  text
    .trim()
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/\$(\d+)/g, `:p${n}_$1`)
