// How long after its commit a change is in the figures, while 500 changes a second come in.
import { randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import { followFigures } from '../src/figures/follow.ts'
import { readFigures } from '../src/figures/read.ts'
import { importRecords } from '../src/ingest/load.ts'
import { DAY_MS } from '../src/lib/days.ts'
import { PROJECT } from './generate.ts'
import { median, percentile } from './measure.ts'
import type { Options } from './options.ts'
import type { Rig } from './rig.ts'

const CHANGES_A_SECOND = 500
// Of each second's changes: subscriptions that begin, and old ones that are cancelled; all others renew.
const BEGIN = 50
const CANCEL = 25
const MIN_SECONDS = 90
// After the last change.
const PATIENCE_MS = 300_000

export async function measureLag({ app }: Rig, { size, seconds, quick }: Options, say: (text: string) => void) {
  const lasts = quick ? 5 : Math.max(MIN_SECONDS, seconds)
  say(`${CHANGES_A_SECOND} changes a second for ${lasts} s…`)
  const stop = followFigures(app)
  const run = randomBytes(4).toString('hex')
  const base = await begun(app)
  const commits: number[] = []
  const lags: number[] = []
  const writing = write(app, { run, size, seconds: lasts }, commits)
  let ended: number | undefined
  writing.then(() => {
    ended = performance.now()
  })
  while (ended === undefined || lags.length < commits.length) {
    const seen = Math.floor(((await begun(app)) - base) / BEGIN)
    while (lags.length < Math.min(seen, commits.length)) lags.push(performance.now() - commits[lags.length]!)
    if (ended !== undefined && performance.now() - ended > PATIENCE_MS) throw new Error('The figures do not catch up.')
    await sleep(250)
  }
  await writing
  await stop()
  return {
    changesASecond: (commits.length * CHANGES_A_SECOND) / lasts,
    lagP50Seconds: median(lags)! / 1000,
    lagP95Seconds: percentile(lags, 0.95)! / 1000,
    lagMostSeconds: Math.max(...lags) / 1000,
  }
}

/** How many subscriptions were made, as the figures have it. */
async function begun({ db }: Rig['app']): Promise<number> {
  const [sum] = await readFigures(db, {
    ...{ projects: [PROJECT], metrics: ['new_subscriptions'], from: '2020-01-01', to: '2040-01-01' },
    ...{ money: 'usd', test: true },
  })
  return sum?.values.new_subscriptions ?? 0
}

interface Writes {
  /** Part of the new subscriptions' ids: those of an earlier run on the same database would be updated otherwise. */
  run: string
  size: number
  seconds: number
}

/** One import a second, none of them before its second has begun. */
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
 * New subscriptions, and old ones that renew or are cancelled today. An old one keeps its product, funnel, session and provider,
 * its status unless it is cancelled, and its period if it has ended: else the days of its creation and end would be computed
 * again, and old ones are of all days. So no trial is cancelled: those of the generator are old too, unlike real ones.
 */
async function changes(app: Rig['app'], run: string, second: number, size: number): Promise<string> {
  const now = new Date().toISOString()
  const numbers = Array.from({ length: CHANGES_A_SECOND }, (_, n) => ((second * CHANGES_A_SECOND + n) * 7919) % size)
  const stored = await app.db.query(STORED, [PROJECT, numbers.map((old) => idOf('sub', old))])
  const known = new Map(stored.map(({ id, ...columns }) => [id, columns]))
  return numbers
    .map((old, n) => {
      const isNew = n < BEGIN
      const id = isNew ? `sub_${run}_${second}_${n}` : idOf('sub', old)
      const kept = isNew ? { status: 'active' } : known.get(id)!
      const runs = ['active', 'trialing'].includes(kept.status!)
      const isCancelled = kept.status === 'active' && !isNew && n < BEGIN + CANCEL
      const profileId = idOf('pro', Math.floor(old / 4))
      const data = {
        ...{ ...SUBSCRIPTION, id, profile_id: profileId, ...stamps(now, old, size, isNew), ...kept },
        ...(runs && period(now)),
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

/** Old ones were made when the generator made them. */
function stamps(now: string, n: number, size: number, isNew: boolean) {
  const made = isNew ? now : new Date(Date.UTC(2026, 0) - (size - n) * 7000).toISOString()
  return { created_at: made, updated_at: now }
}

const period = (now: string) => ({
  period_starts_at: now,
  period_ends_at: new Date(Date.parse(now) + 30 * DAY_MS).toISOString(),
})

const SUBSCRIPTION = {
  ...{
    renews: true,
    billing_interval: 'month',
    billing_interval_count: 1,
    price: 1999,
    currency: 'USD',
    price_usd: 1999,
  },
  ...{ payment_provider: 'stripe', product_id: 'product_0', funnel_id: 'funnel_0' },
}
