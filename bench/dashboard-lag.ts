// Measures how long after its commit a change is in the figures, while 500 changes a second are written.
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { followFigures } from '../src/data/figures/follow.ts'
import { readFigures } from '../src/data/figures/read.ts'
import { importRecords } from '../src/data/ingest/load.ts'
import { DAY_MS } from '../src/lib/days.ts'
import { PROJECT } from './generate.ts'
import { median, percentile } from './measure.ts'
import type { Options } from './options.ts'
import type { Rig } from './rig.ts'

const CHANGES_A_SECOND = 500
// Each second this many subscriptions are created, and this many old ones cancelled; the other changes are renewals.
const NEW = 50
const CANCELLED = 25
const MIN_SECONDS = 90
// The longest wait after the last change.
const MAX_WAIT_MS = 300_000

export async function measureLag({ app }: Rig, { size, seconds, quick }: Options, say: (text: string) => void) {
  const durationS = quick ? 5 : Math.max(MIN_SECONDS, seconds)
  say(`${CHANGES_A_SECOND} changes a second for ${durationS} s…`)
  const stop = followFigures(app)
  const run = randomBytes(4).toString('hex')
  const base = await countNew(app)
  const commits: number[] = []
  const lags: number[] = []
  const writing = write(app, { run, size, seconds: durationS }, commits)
  let ended: number | undefined
  writing.then(() => {
    ended = performance.now()
  })
  while (ended === undefined || lags.length < commits.length) {
    const seen = Math.floor(((await countNew(app)) - base) / NEW)
    while (lags.length < Math.min(seen, commits.length)) lags.push(performance.now() - commits[lags.length]!)
    if (ended !== undefined && performance.now() - ended > MAX_WAIT_MS) throw new Error('The figures do not catch up.')
    await sleep(250)
  }
  await writing
  await stop()
  return {
    changesASecond: (commits.length * CHANGES_A_SECOND) / durationS,
    lagP50Seconds: median(lags)! / 1000,
    lagP95Seconds: percentile(lags, 0.95)! / 1000,
    lagMostSeconds: Math.max(...lags) / 1000,
  }
}

/** The number of new subscriptions in the figures. */
async function countNew({ db }: Rig['app']): Promise<number> {
  const [sum] = await readFigures(db, {
    projects: [PROJECT],
    metrics: ['new_subscriptions'],
    from: '2020-01-01',
    to: '2040-01-01',
    money: 'usd',
    test: true,
  })
  return sum?.values.new_subscriptions ?? 0
}

interface Writes {
  /** Part of the ids of new subscriptions: otherwise a second run on the same database would update those of the first. */
  run: string
  size: number
  seconds: number
}

/** Runs one import a second, each when its second begins or later. */
async function write(app: Rig['app'], { run, size, seconds }: Writes, commits: number[]): Promise<void> {
  const begunMs = performance.now()
  for (let second = 0; second < seconds; second += 1) {
    await sleep(Math.max(0, begunMs + second * 1000 - performance.now()))
    const lines = await changes(app, run, second, size)
    const stream = () => Readable.from([lines])
    const { rejects } = await importRecords(app, { projectId: PROJECT, live: true }, [{ name: 'changes', stream }])
    if (rejects.length > 0) throw new Error(`The import refused ${JSON.stringify(rejects[0])}.`)
    commits.push(performance.now())
  }
}

/**
 * The lines of new subscriptions, and of old ones that are renewed or cancelled today. An old one keeps its product, funnel,
 * session and provider, its status unless it is cancelled, and its period if that has ended. Otherwise the figures of the days
 * when it was created and ended would be computed again, and old subscriptions are from all days. For the same reason no trial is
 * cancelled: the generator's trials are old, unlike real ones.
 */
async function changes(app: Rig['app'], run: string, second: number, size: number): Promise<string> {
  const now = new Date().toISOString()
  const numbers = Array.from({ length: CHANGES_A_SECOND }, (_, n) => ((second * CHANGES_A_SECOND + n) * 7919) % size)
  const stored = await app.db.query(STORED, [PROJECT, numbers.map((old) => idOf('sub', old))])
  const known = new Map(stored.map(({ id, ...columns }) => [id, columns]))
  return numbers
    .map((old, n) => {
      const isNew = n < NEW
      const id = isNew ? `sub_${run}_${second}_${n}` : idOf('sub', old)
      const kept = isNew ? { status: 'active' } : known.get(id)!
      const isRunning = ['active', 'trialing'].includes(kept.status!)
      const isCancelled = kept.status === 'active' && !isNew && n < NEW + CANCELLED
      const profileId = idOf('pro', Math.floor(old / 4))
      const data = {
        ...SUBSCRIPTION,
        id,
        profile_id: profileId,
        ...stamps(now, old, size, isNew),
        ...kept,
        ...(isRunning && period(now)),
        ...(isCancelled && { status: 'cancelled' }),
      }
      return JSON.stringify({ record: 'subscription', data })
    })
    .join('\n')
}

const STORED = `select id, status, product_id, funnel_id, session_id, payment_provider,
    to_json(period_starts_at) #>> '{}' as period_starts_at, to_json(period_ends_at) #>> '{}' as period_ends_at
  from subscriptions where project_id = $1 and id = any($2)`

const idOf = (prefix: string, n: number) => `${prefix}_${String(n).padStart(12, '0')}`

/** An old subscription has the creation time that the generator gave it. */
function stamps(now: string, n: number, size: number, isNew: boolean) {
  const made = isNew ? now : new Date(Date.UTC(2026, 0) - (size - n) * 7000).toISOString()
  return { created_at: made, updated_at: now }
}

const period = (now: string) => ({
  period_starts_at: now,
  period_ends_at: new Date(Date.parse(now) + 30 * DAY_MS).toISOString(),
})

const SUBSCRIPTION = {
  renews: true,
  billing_interval: 'month',
  billing_interval_count: 1,
  price: 1999,
  currency: 'USD',
  price_usd: 1999,
  payment_provider: 'stripe',
  product_id: 'product_0',
  funnel_id: 'funnel_0',
}
