// Deliveries are taken in turns of endpoints, and endpoints without anything due cost nothing.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { fanOut } from '../../../src/core/events/fan-out.ts'
import { take } from '../../../src/core/events/queue.ts'
import type { Db } from '../../../src/lib/pg/db.ts'
import { openEvents, PROJECT } from '../../support/events.ts'
import { type Caught, explain, type Node, watched } from '../../support/plans.ts'
import { column } from '../../support/rows.ts'

const OTHERS = 2000
const FAST = { failing: false, perEndpoint: 8, busy: new Map<string, number>() }

let db: Db
const events = await openEvents()
after(() => events.close())
;({ db } = events.app)

const rowsRead = (node: Node) =>
  ((node['Actual Rows'] ?? 0) + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']!

test('a due delivery is taken without a look at endpoints that have none', async () => {
  await addProjectsWithEndpoints(OTHERS)
  const id = await events.endpoint('http://127.0.0.1:9/')
  await events.event()
  await fanOut(db)
  await db.query('analyze')

  const caught: Caught[] = []
  const taken = await take(
    watched(db, (one) => caught.push(one)),
    { ...FAST, limit: 256 },
  )
  assert.deepEqual(column(taken, 'endpoint_id'), [id])
  await db.query(`update webhook_deliveries set next_attempt_at = db_clock()`)
  const scans = (await explain(db, caught[0]!, true)).filter((node) => node['Relation Name'] === 'webhook_endpoints')
  const read = scans.reduce((sum, node) => sum + rowsRead(node), 0)
  assert.ok(scans.length > 0 && read < 10, `${read} rows of webhook_endpoints were read`)
  await clear()
})

for (const [name, count] of [
  ['few', 20],
  ['very many', 700],
] as const) {
  test(`of ${name} due deliveries the first of each endpoint is taken before the second of any`, async () => {
    const [crowded, quiet] = [
      await events.endpoint('http://127.0.0.1:9/'),
      await events.endpoint('http://127.0.0.1:9/'),
    ]
    await addDue(crowded, count, '1 hour')
    await addDue(quiet, 2, '1 minute')
    const first = await take(db, { ...FAST, limit: 2 })
    assert.deepEqual(new Set(first.map(({ endpoint_id }) => endpoint_id)), new Set([crowded, quiet]))
    const next = await take(db, {
      ...FAST,
      limit: 256,
      busy: new Map([
        [crowded, 1],
        [quiet, 1],
      ]),
    })
    assert.equal(next.filter(({ endpoint_id }) => endpoint_id === crowded).length, 7)
    assert.equal(next.filter(({ endpoint_id }) => endpoint_id === quiet).length, 1)
    await clear()
  })
}

test('deliveries to failing endpoints and to others are taken apart, of few as of very many', async () => {
  for (const count of [5, 700]) {
    const [failing, healthy] = [
      await events.endpoint('http://127.0.0.1:9/'),
      await events.endpoint('http://127.0.0.1:9/'),
    ]
    await db.query('update webhook_endpoints set failing_since = db_clock() where id = $1', [failing])
    await addDue(failing, count, '1 hour')
    await addDue(healthy, 1, '1 minute')
    const endpointsOf = async (isFailing: boolean) =>
      (await take(db, { ...FAST, failing: isFailing, limit: 3 })).map(({ endpoint_id }) => endpoint_id)
    assert.deepEqual(await endpointsOf(false), [healthy])
    assert.deepEqual(await endpointsOf(true), [failing, failing, failing])
    await clear()
  }
})

async function addProjectsWithEndpoints(count: number): Promise<void> {
  const each = (text: string) => db.query(`${text} from generate_series(1, $1::int) n`, [count])
  await each(`insert into projects (id, organization_id, name) select 'other-' || n, 'acme', 'Other'`)
  await each(`insert into webhook_endpoints (project_id, id, url, created_at, updated_at)
    select 'other-' || n, gen_random_uuid(), 'http://127.0.0.1:9/', db_clock(), db_clock()`)
}

/** Events whose delivery to this endpoint has been due for so long. */
async function addDue(endpoint: string, count: number, since: string): Promise<void> {
  await db.query(
    `with made as (
       insert into events (project_id, id, type, object_id, sequence, created_at, data, pending)
       select $1, gen_random_uuid(), 'charge.succeeded', $2 || n, 1, db_clock(), '{}', false
       from generate_series(1, $3::int) n returning project_id, id)
     insert into webhook_deliveries (project_id, event_id, endpoint_id, created_at, next_attempt_at)
     select project_id, id, $4, db_clock() - $5::interval, db_clock() - $5::interval from made`,
    [PROJECT, randomUUID(), count, endpoint, since],
  )
}

/** Endpoints, events and deliveries of the test before must not be in the way of the next. */
async function clear(): Promise<void> {
  await db.query('truncate webhook_endpoints, events cascade')
}
