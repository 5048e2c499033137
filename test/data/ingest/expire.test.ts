// Cancelled subscriptions expire when their period is over: once, with one event, on any number of processes.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { expireSubscriptions } from '../../../src/data/ingest/expire.ts'
import { systemClock } from '../../../src/lib/clock.ts'
import { openDb } from '../../../src/lib/pg/db.ts'
import { line, openImports } from '../../support/imports.ts'
import { silent } from '../../support/simulators.ts'
import { until } from '../../support/time.ts'
import { assertCounted } from './counters.ts'

const imports = await openImports()
after(() => imports.stop())

const OVER = 450
const later = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString()
const cancelled = (id: string, period_ends_at: string | null) =>
  line.subscription({ id, status: 'cancelled', renews: false, period_ends_at })

const over = Array.from({ length: OVER }, (_, n) => cancelled(`over-${n}`, later(-1 - n)))
const others = [cancelled('paid', later(10)), cancelled('endless', null), line.subscription({ id: 'active' })]

test('a cancelled subscription expires with one event when its period is over, on two processes', async (t) => {
  const project = await imports.project()
  const base = [line.profile(), line.product()]
  await imports.run(project, [...base, ...over, ...others])
  const second = openDb({ url: imports.url, applicationName: 'test' })
  const stops = [imports.db, second].map((db) => expireSubscriptions({ db, clock: systemClock, log: silent as never }))
  t.after(async () => {
    await Promise.all(stops.map((stop) => stop()))
    await second.close()
  })
  const count = async (status: string) => (await imports.row(COUNT, [project.id, status])).n
  await until('all to expire', async () => (await count('expired')) === String(OVER))
  const left = await imports.rows(
    `select id, status from subscriptions where project_id = $1 and status <> 'expired'`,
    [project.id],
  )
  assert.deepEqual(left.map(({ id, status }) => `${id} ${status}`).sort(), [
    'active active',
    'endless cancelled',
    'paid cancelled',
  ])
  const events = () =>
    imports.row(
      `select count(*) as n, count(distinct object_id) as objects, min(type) as first, max(type) as last,
         bool_and(data ->> 'status' = 'expired') as are_expired from events where project_id = $1`,
      [project.id],
    )
  const once = { n: String(OVER), objects: String(OVER), first: 'subscription.expired', last: 'subscription.expired' }
  assert.deepEqual(await events(), { ...once, are_expired: 't' })
  await assertCounted(imports.db, project)
  // The same lines again say that they are cancelled: what has expired stays so, and no event is sent again.
  await imports.run(project, [...base, ...over, ...others])
  assert.equal(await count('expired'), String(OVER))
  // One that is cancelled for a later period is cancelled again.
  await imports.run(project, [...base, cancelled('over-0', later(5))])
  assert.equal(await count('expired'), String(OVER - 1))
  assert.deepEqual(await events(), { ...once, are_expired: 't' })
})

const COUNT = 'select count(*) as n from subscriptions where project_id = $1 and status = $2'
