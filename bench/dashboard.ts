// bin/bench dashboard: the time of each page, the delay until changes are in the figures, charges while pages are loaded.
import { loadavg } from 'node:os'
import { rebuildFigures } from '../src/data/figures/follow.ts'
import { chargesBesidePages } from './dashboard-charges.ts'
import { measureLag } from './dashboard-lag.ts'
import { signIn, type Visitor, visit } from './dashboard-visitor.ts'
import { generate, PROJECT } from './generate.ts'
import { median, percentile, type Result } from './measure.ts'
import type { Options } from './options.ts'
import { fill, openRig, type Rig, startOurs } from './rig.ts'

type Say = (text: string) => void

// The generated data ends with the year 2025.
const PERIODS = {
  '30 days': 'from=2025-12-02&to=2025-12-31',
  '3 months': 'from=2025-10-01&to=2025-12-31',
  '2 years': 'from=2024-01-01&to=2025-12-31',
}
const PAGES_WITH_PERIOD = [
  ...['/', '/funnels', '/funnels/funnel_0', '/revenue', '/subscriptions', '/charges', '/refunds'],
  ...['/acquisition', '/worth', '/movements', '/churn', '/declines', '/finance'],
]
/** Of two filters some figures are not stored: they are computed from the records of a small project, and left out of a large one. */
const FILTERS = ['country=DE', 'source=meta&country=DE', 'product=product_0']
const FILTERED = ['/', '/funnels', '/revenue', '/subscriptions', '/movements'].flatMap((path) =>
  FILTERS.map((filter) => `${path}?${PERIODS['2 years']}&${filter}`),
)
const OF_VISITS = ['/acquisition', '/worth'].map((path) => `${path}?${PERIODS['2 years']}&campaign=campaign_7`)
const PERSON = 'pro_000000000100'
const OTHER_PAGES = [
  '/subscriptions?status=unpaid',
  '/subscriptions?product_id=product_49&status=trialing',
  '/subscriptions?email=person77%40example.com',
  '/people?q=person77%40example.com',
  `/people/${PERSON}`,
  '/hours',
  '/experiments',
  '/sessions',
  '/sessions?source=meta',
  '/payments',
  '/credits',
  '/payouts',
  '/erasures',
  '/webhooks',
  '/sync',
  '/audit',
  '/keys',
  '/merchant-accounts',
  '/settings',
]
/** Does not use the database. */
const REFERENCE = '/sign-in'
const MIN_VISITS = 20
// CPU time is counted in hundredths of a second.
const CPU_VISITS = 10
const SCREENS = 3

/** The CPU milliseconds of our server and of PostgreSQL, which depend less on other load than the time. */
type Cpu = (work: () => Promise<void>) => Promise<{ serverMs: number; postgresMs: number }>

export async function measureDashboard(options: Options, say: Say): Promise<Result[]> {
  const rig = await openRig({ say })
  try {
    say(
      `Making ${options.size.toLocaleString('en')} subscriptions with their people, sessions, replies and transactions…`,
    )
    await fillProject(rig, options)
    const rebuilt = await rebuild(rig, say)
    const { visitor, cpu } = await startVisitor(rig)
    const pages = await measurePages(visitor, cpu, options, say)
    say(`The slowest page has a 95th percentile of ${Math.round(pages.slowestP95Ms)} ms.`)
    // Filling a large project takes an hour, so its pages are kept even if the lag cannot be measured.
    const lag = await measureLag(rig, options, say).then(
      (figures) => ({ figures }),
      (error: Error) => ({ failure: error.message }),
    )
    return [
      { ...EMPTY, name: 'dashboard pages', unit: 'pages', figures: { ...pages, rebuilt } },
      { ...EMPTY, name: 'dashboard lag', unit: 'changes', ...lag },
    ]
  } finally {
    await rig.close()
  }
}

async function fillProject(rig: Rig, { size, sessions }: Options): Promise<void> {
  // A payment for each subscription, and ten of each customer.
  await fill(rig, (query) =>
    generate(query, { size, sessions, reportEverySeconds: 7, customers: Math.ceil(size / 10) }),
  )
  await fill(rig, async (query) => {
    await query('set statement_timeout = 0')
    await query(REPLIES)
    await query('vacuum analyze replies')
  })
}

const EMPTY = { contenders: {}, ratios: {} }

export async function measureCharges(options: Options, say: Say): Promise<Result> {
  return { ...EMPTY, name: 'dashboard charges', unit: 'charges', figures: await chargesBesidePages(options, say) }
}

const REPLIES = `
  insert into replies (project_id, session_id, screen_id, element_id, screen_index, element_type, value)
  select project_id, id, 'screen_' || m, 'element', m, 'choice', '"yes"' from sessions, generate_series(0, ${SCREENS - 1}) m
  where id like 'ses%'`

async function rebuild({ app }: Rig, say: Say) {
  say('Computing the figures…')
  const begunMs = performance.now()
  const days = await rebuildFigures(app.db, PROJECT)
  return { days, seconds: (performance.now() - begunMs) / 1000 }
}

/** Starts our server and signs in to its dashboard. */
async function startVisitor(rig: Rig): Promise<{ visitor: Visitor; cpu: Cpu }> {
  const adminPort = 20_000 + (process.pid % 20_000)
  const ours = await startOurs({ ...rig, env: { ...rig.env, ADMIN_PORT: String(adminPort) } })
  const cpu: Cpu = async (work) => {
    const before = await Promise.all([ours.cpuSeconds(), rig.postgresSeconds()])
    await work()
    const after = await Promise.all([ours.cpuSeconds(), rig.postgresSeconds()])
    return { serverMs: (after[0] - before[0]) * 1000, postgresMs: (after[1] - before[1]) * 1000 }
  }
  return { visitor: await signIn(rig, `http://127.0.0.1:${adminPort}`), cpu }
}

/** Visits all pages in turn, again and again, each after a visit of the page that does not use the database. */
async function measurePages(visitor: Visitor, cpu: Cpu, { rounds }: Options, say: Say) {
  const periods = Object.values(PERIODS)
  const paths = [
    ...PAGES_WITH_PERIOD.flatMap((path) => periods.map((period) => `${path}?${period}`)),
    ...FILTERED,
    ...OF_VISITS,
    ...OTHER_PAGES,
  ]
  const times: Record<string, number[]> = Object.fromEntries([...paths, REFERENCE].map((path) => [path, []]))
  for (const path of paths) await visit(visitor, path)
  // The page Today has begun an examination of the installation, whose end this page waits for: there is one now and then.
  await visit(visitor, '/doctor')
  const visits = Math.max(MIN_VISITS, rounds)
  say(`${paths.length} pages, ${visits} times…`)
  for (let n = 0; n < visits; n += 1) {
    for (const path of paths) {
      times[REFERENCE]!.push(await visit(visitor, REFERENCE))
      times[path]!.push(await visit(visitor, path))
    }
  }
  const reference = median(times[REFERENCE]!)!
  const pages: Record<string, object> = {}
  for (const path of paths) {
    const p50Ms = median(times[path]!)!
    const p95Ms = percentile(times[path]!, 0.95)!
    const { serverMs, postgresMs } = await cpu(async () => {
      for (let n = 0; n < CPU_VISITS; n += 1) await visit(visitor, path)
    })
    const each = { serverCpuMs: serverMs / CPU_VISITS, postgresCpuMs: postgresMs / CPU_VISITS }
    pages[path] = { p50Ms, p95Ms, timesReference: p50Ms / reference, ...each }
  }
  const slowestP95Ms = Math.max(...paths.map((path) => percentile(times[path]!, 0.95)!))
  return { visits, loadOfMachine: loadavg(), referenceP50Ms: reference, slowestP95Ms, pages }
}
