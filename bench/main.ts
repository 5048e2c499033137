// bin/bench [NAME...]: measures each case in turn with its references; bench/README.md describes them.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { measureAnonymize } from './anonymize.ts'
import { attempt, attemptAll } from './attempt.ts'
import { measureCharges } from './charges.ts'
import { measureTwoSteps } from './charges-two-steps.ts'
import { measureCredits } from './credits.ts'
import { measureCharges as measureChargesBesidePages, measureDashboard } from './dashboard.ts'
import { generate } from './generate.ts'
import { measureGrowth } from './growth.ts'
import { measureImport } from './import.ts'
import type { Result } from './measure.ts'
import { kindOf, type Options, readOptions } from './options.ts'
import { measureRequest, requestCases, startServers } from './requests.ts'
import { describeMachine, printResults, saveResults } from './results.ts'
import { fill, openRig } from './rig.ts'
import { measureStart } from './start-up.ts'
import { findTools, type Tools } from './tools.ts'
import { measureUnits } from './units.ts'
import { walkReport, walkTransactions } from './walks.ts'

const begunMs = performance.now()
const say = (text: string) => {
  const seconds = Math.round((performance.now() - begunMs) / 1000)
  process.stderr.write(`${String(seconds).padStart(4)} s  ${text}\n`)
}

const WALKS = { 'walk-transactions': walkTransactions, 'walk-report': walkReport }
type Measure = (tools: Tools, options: Options) => Promise<Result>
/** Cases with their own database. */
const OWN_DATABASE: Record<string, Measure> = {
  anonymize: (_, options) => measureAnonymize(options, say),
  charges: (tools, options) => measureCharges('charges', 'at once', tools, options, say),
  'charges-slow': (tools, options) => measureCharges('charges-slow', 'after 50 ms', tools, options, say),
  import: (tools) => measureImport(tools, fewRounds, say),
  start: (_, options) => measureStart(options, say),
}
/** Cases that run only when they are named. */
const BY_NAME: Record<string, Measure> = {
  'dashboard-charges': (_, options) => measureChargesBesidePages(options, say),
  credits: (_, options) => measureCredits(options, say),
  'charges-two-steps': (_, options) => measureTwoSteps(options, say),
  units: (_, options) => measureUnits(options, say),
  webhooks: async (_, { seconds }) => resultOf('webhooks', 'events', await measureWebhooks(seconds)),
}
const GROWTH = 'growth'
const DASHBOARD = 'dashboard'

const options = readOrRefuse(process.argv.slice(2))
const all = [...requestCases(options.size).map(({ name }) => name), ...Object.keys({ ...WALKS, ...OWN_DATABASE })]
const byName = [...Object.keys(BY_NAME), GROWTH, DASHBOARD]
const known = [...all, ...byName]
const unknown = options.names.find((given) => !known.some((name) => name.startsWith(given)))
if (unknown !== undefined) refuse(`There is no case "${unknown}". Cases: ${known.join(', ')}.`)
// Fewer rounds for cases that take many seconds each.
const fewRounds = { ...options, rounds: Math.min(options.rounds, 2) }
// A full name selects only that case, even if other names begin with it: `charges` and `charges-slow`.
const wanted = (name: string) =>
  options.names.some((given) => name === given || (name.startsWith(given) && !known.includes(given)))
const measured = (name: string) => options.names.length === 0 || wanted(name)

const tools = await findTools(say)
const results = [
  ...(await attemptAll('reads', measureReads)),
  ...(await measureOwnDatabases()),
  ...(wanted(GROWTH) ? await attemptAll(GROWTH, () => measureGrowth(options, say)) : []),
  ...(wanted(DASHBOARD) ? await attemptAll(DASHBOARD, () => measureDashboard(options, say)) : []),
]
printResults(results)
const machine = describeMachine({ ...tools })
say(`Saved as ${await saveResults(kindOf(options), options, machine, results)}.json`)
if (results.some(({ failure }) => failure)) process.exitCode = 1

function readOrRefuse(args: string[]): Options {
  try {
    return readOptions(args)
  } catch (error) {
    return refuse((error as Error).message)
  }
}

function refuse(why: string): never {
  process.stderr.write(`${why}\n`)
  process.exit(2)
}

/** The cases that share a project of the given size. */
async function measureReads(): Promise<Result[]> {
  const requests = requestCases(options.size).filter(({ name }) => measured(name))
  const walks = Object.entries(WALKS).filter(([name]) => measured(name))
  if (requests.length + walks.length === 0) return []
  say(`Making ${options.size.toLocaleString('en')} subscriptions with their people, sessions and transactions…`)
  const rig = await openRig({ say })
  try {
    await fill(rig, (query) => generate(query, { size: options.size }))
    const servers = await startServers(rig, options)
    const results: Result[] = []
    for (const one of requests) {
      say(`${one.name}…`)
      results.push(await attempt(one.name, () => measureRequest(servers, tools, one, options)))
    }
    for (const [name, walk] of walks) {
      say(`${name}…`)
      results.push(await attempt(name, () => walk(servers, tools, fewRounds)))
    }
    return results
  } finally {
    await rig.close()
  }
}

async function measureOwnDatabases(): Promise<Result[]> {
  const results: Result[] = []
  for (const [name, measure] of Object.entries({ ...OWN_DATABASE, ...BY_NAME })) {
    if (!(name in BY_NAME ? wanted(name) : measured(name))) continue
    say(`${name}…`)
    results.push(await attempt(name, () => measure(tools, options)))
  }
  return results
}

function resultOf(name: string, unit: string, figures: Record<string, unknown>): Result {
  return { name, unit, contenders: {}, ratios: {}, figures }
}

async function measureWebhooks(seconds: number): Promise<Record<string, unknown>> {
  const program = fileURLToPath(new URL('webhooks.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [program, '--seconds', String(Math.max(1, seconds))])
  return JSON.parse(stdout) as Record<string, unknown>
}
