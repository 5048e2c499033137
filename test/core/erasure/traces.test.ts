// No trace of an erased person is left: not in any table, not in our log, not in PostgreSQL's.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { BASICS, insert } from '../../support/data.ts'
import { dump } from '../../support/database.ts'
import { importLines, line } from '../../support/imports.ts'
import { startTestServer } from '../../support/server.ts'
import { MARK, PERSONAL, person } from './person.ts'

const T = '2026-01-02T03:04:05.000006Z'
const ORDER = '01900000-0000-7000-8000-0000000000a1'
const UNLINKED_ORDER = '01900000-0000-7000-8000-0000000000a2'
const LINKED_ORDER = '01900000-0000-7000-8000-0000000000a3'
const EVENTS = [1, 2, 3, 4, 5, 6].map((n) => `01900000-0000-7000-8000-0000000000e${n}`)
const ENDPOINT = '01900000-0000-7000-8000-0000000000d1'

const TRACE = /zyx|marker/i
const traces = (text: string) => text.split('\n').filter((line) => TRACE.test(line))

const server = await startTestServer({}, { worker: false })
after(() => server.stop())
const project = await server.project()
await insert(server.db, project, BASICS)
await insert(server.db, project, person('a'))

describe('an erasure leaves no trace', () => {
  const erase = (...profile_ids: string[]) => project.post('/profiles/anonymize', { profile_ids })

  test('no trace is left: not in any table, not in our log, not in PostgreSQL’s', async () => {
    await insert(server.db, project, {
      customers: [{ external_id: 'user', profile_id: 'a', ...PERSONAL.customers }],
      orders: [{ order_id: ORDER, external_id: 'user', ...PERSONAL.orders }],
      refunds: [{ refund_id: EVENTS[0], order_id: ORDER, external_id: 'user', ...PERSONAL.refunds }],
      credit_units: [{ unit: 'tokens' }],
      credit_accounts: [{ external_id: 'user' }],
      credit_entries: [{ external_id: 'user', ...PERSONAL.credit_entries }],
      events: [
        {
          id: EVENTS[0],
          type: 'subscription.created',
          object_id: 'subscription-of-a',
          profile_id: 'a',
          ...PERSONAL.events,
        },
        // Told before the customer was linked to the profile.
        { id: EVENTS[1], type: 'charge.succeeded', object_id: ORDER, ...PERSONAL.events },
        { id: EVENTS[2], type: 'charge.succeeded', object_id: UNLINKED_ORDER, data: { note: 'of another person' } },
      ],
    })
    for (const event of EVENTS.slice(0, 2)) await insertAttempt(event)
    await mention()
    const before = await dump(server.db)
    for (const table of Object.keys(PERSONAL)) {
      assert.ok(
        before.split('\n').some((line) => line.startsWith(`${table}: `) && line.includes(MARK)),
        table,
      )
    }

    assert.equal((await erase('a')).status, 200)

    const left = await dump(server.db)
    assert.deepEqual(traces(left), [])
    assert.deepEqual(traces(server.logLines().join('\n')), [])
    const [place] = await server.db.query('show data_directory')
    const log = join(place!.data_directory!, '../../postgres.log')
    if (existsSync(log)) assert.doesNotMatch(readFileSync(log, 'utf8'), TRACE)
    assert.doesNotMatch(readFileSync(server.ledger, 'utf8'), TRACE)

    const events = await server.db.query('select id, data from events where project_id = $1 order by id', [project.id])
    const data = new Map(events.map(({ id, data }) => [id, JSON.parse(data!)]))
    assert.deepEqual(
      EVENTS.slice(0, 3).map((id) => data.get(id)),
      [{ id: 'subscription-of-a' }, { id: ORDER }, { note: 'of another person' }],
    )
  })

  test('no trace in events of another person’s subscription that was bought in the session of the erased person', async () => {
    await insert(server.db, project, person('visitor'))
    await insert(server.db, project, {
      profiles: [{ id: 'buyer' }],
      subscriptions: [{ id: 'bought', profile_id: 'buyer', session_id: 'session-of-visitor' }],
      events: [
        {
          ...{ id: EVENTS[4], type: 'subscription.created', object_id: 'bought', profile_id: 'buyer' },
          data: { id: 'bought', session: { id: 'session-of-visitor', user_agent: MARK } },
        },
        // An object of another kind may have the same id.
        {
          ...{ id: EVENTS[5], type: 'transaction.created', object_id: 'bought', profile_id: 'buyer', sequence: 2 },
          data: { price: 1999 },
        },
      ],
    })
    await insertAttempt(EVENTS[4]!)
    assert.equal((await erase('visitor')).status, 200)
    assert.deepEqual(traces(await dump(server.db)), [])
    const [other] = await server.db.query('select data from events where id = $1', [EVENTS[5]!])
    assert.deepEqual(JSON.parse(other!.data!), { price: 1999 })
  })

  test('no trace in earlier events of a subscription that has since been moved to another session', async () => {
    await insert(server.db, project, person('former'))
    await insert(server.db, project, {
      profiles: [{ id: 'mover' }],
      sessions: [{ id: 'of-mover', profile_id: 'mover' }],
    })
    const bring = (session_id: string) => {
      const moved = line.subscription({ id: 'moved', profile_id: 'mover', session_id })
      return importLines(server.app, project.id, [moved], { emitEvents: true })
    }
    await bring('session-of-former')
    const [told] = await server.db.query(`select id from events where object_id = 'moved' limit 1`)
    await insertAttempt(told!.id!)
    await bring('of-mover')
    assert.equal((await erase('former')).status, 200)
    assert.deepEqual(traces(await dump(server.db)), [])
  })

  test('no trace of a customer that an import links to an erased profile', async () => {
    await insert(server.db, project, person('linked'))
    await insert(server.db, project, {
      customers: [{ external_id: 'linked', ...PERSONAL.customers }],
      orders: [{ order_id: LINKED_ORDER, external_id: 'linked', ...PERSONAL.orders }],
      events: [{ id: EVENTS[3], type: 'charge.succeeded', object_id: LINKED_ORDER, ...PERSONAL.events }],
    })
    await insertAttempt(EVENTS[3]!)
    assert.equal((await erase('linked')).status, 200)
    const tables = async () => [...new Set(traces(await dump(server.db)).map((line) => line.split(':')[0]))]
    assert.deepEqual(await tables(), ['customers', 'events', 'orders', 'webhook_attempts'])

    const link = { record: 'customer', data: { external_id: 'linked', profile_id: 'linked', email: MARK } }
    const { erased } = await importLines(server.app, project.id, [link])

    assert.deepEqual([erased, await tables()], [1, []])
  })

  async function insertAttempt(event: string) {
    const at = [project.id, ENDPOINT, T]
    await server.db.query(
      `insert into webhook_endpoints (project_id, id, url, created_at, updated_at) values ($1, $2, 'https://x.example', $3, $3)
       on conflict do nothing`,
      at,
    )
    await server.db.query(
      `insert into webhook_deliveries (project_id, endpoint_id, created_at, event_id, status, finished_at, attempts)
       values ($1, $2, $3, $4, 'succeeded', $3, 1)`,
      [...at, event],
    )
    await server.db.query(
      `insert into webhook_attempts (project_id, endpoint_id, attempted_at, event_id, number, duration_ms, status, answer)
       values ($1, $2, $3, $4, 1, 5, 200, $5)`,
      [...at, event, MARK],
    )
  }

  /** Requests that name the person, well and badly, and errors of the database that quote a row. */
  async function mention() {
    await project.get(`/profiles/${MARK}`)
    await project.get('/profiles', { 'filter[email]': MARK, cursor: MARK })
    await project.get(`/nothing/${MARK}`, { [MARK]: MARK })
    await project.post('/profiles/anonymize', { profile_ids: [MARK], [MARK]: MARK })
    await project.post('/profiles/anonymize', { profile_ids: [MARK] })
    await server.api('/profiles/anonymize', { key: project.key, method: 'POST', body: `{"${MARK}": ` })
    const reason = (text: string | null) =>
      server.db.query('update subscriptions set cancellation_reason = $2 where project_id = $1', [project.id, text])
    await reason(MARK)
    await server.db.query('alter table subscriptions add constraint planted check (updated_at < now()) not valid')
    assert.equal((await erase('a')).status, 500)
    await server.db.query('alter table subscriptions drop constraint planted')
    await reason(null)
    await server.db.query('alter table funnels alter column alias type int using null')
    assert.equal((await project.get('/funnels', { 'filter[alias]': MARK })).status, 500)
    await server.db.query('alter table funnels alter column alias type text')
    await assert.rejects(server.db.query('select $1::int', [MARK]))
    await assert.rejects(server.db.query(`select '${MARK}'::int`))
  }
})
