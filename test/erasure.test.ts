// Erasing people: all or nothing, every effect field by field, and no trace of them in the database or in any log.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { fold } from '../src/lib/text.ts'
import { BASICS, type Columns, insert, type Rows } from './support/data.ts'
import { differences, dump } from './support/dump.ts'
import { type Json, type Project, startTestServer, type TestServer } from './support/server.ts'

const MARK = 'Zyx@Marker.example'
const T = '2026-01-02T03:04:05.000006Z'
const ORDER = '01900000-0000-7000-8000-0000000000a1'
const UNLINKED_ORDER = '01900000-0000-7000-8000-0000000000a2'
const EVENTS = [1, 2, 3].map((n) => `01900000-0000-7000-8000-0000000000e${n}`)
const ENDPOINT = '01900000-0000-7000-8000-0000000000d1'

// Every column of these tables that holds text is one or the other: a new one has to be decided upon.
const PERSONAL: Record<string, Columns> = {
  profiles: { email: MARK, email_folded: fold(MARK), phone: MARK, password_hash: MARK, integrations: { [MARK]: MARK } },
  sessions: {
    ...{ ip: MARK, user_agent: MARK, postal_code: MARK, tracking_cookies: { a: MARK }, query_params: { [MARK]: 1 } },
    origin: `https://${MARK}@shop.example:8443/${MARK}?q=${MARK}#${MARK}`,
  },
  replies: { value: [MARK] },
  customers: { email: MARK },
  orders: { client_metadata: { note: MARK } },
  events: { data: { note: MARK } },
  webhook_attempts: { answer: MARK },
}
const KEPT: Record<string, string> = {
  profiles: 'project_id id country locale funnel_id',
  sessions: 'project_id id profile_id funnel_id experiment_id locale country region_code city timezone locale_code',
  replies: 'project_id session_id screen_id element_id screen_custom_id element_type element_custom_id',
  customers: 'organization_id external_id project_id profile_id',
  orders:
    'organization_id external_id project_id idempotency_key currency_code status failed_message_for_user psp psp_merchant_id region payment_method_token provider_key resolved_because',
  events: 'project_id type object_id profile_id',
  webhook_attempts: 'project_id error',
}

/** A person with one of everything. */
const person = (id: string, personal = PERSONAL): Rows => {
  const session = { id: `session-of-${id}`, profile_id: id, city: 'Berlin', ...personal.sessions }
  return {
    profiles: [{ id, country: 'DE', ...personal.profiles }],
    sessions: [session],
    replies: [{ session_id: session.id, ...personal.replies }],
    subscriptions: [{ id: `subscription-of-${id}`, profile_id: id, session_id: session.id }],
    transactions: [{ id: `transaction-of-${id}`, profile_id: id }],
  }
}

describe('erasing', () => {
  let server: TestServer
  let project: Project
  before(async () => {
    server = await startTestServer({}, { worker: false })
  })
  after(() => server.stop())

  const fresh = async (...ids: string[]) => {
    project = await server.project()
    await insert(server.db, project, BASICS)
    for (const id of ids) await insert(server.db, project, person(id))
    return project
  }
  const erase = (...profile_ids: string[]) => project.post('/profiles/anonymize', { profile_ids })
  const get = async (path: string) => (await project.get(path)).body

  test('says how many profiles were anonymized; a duplicate counts once, one erased before counts too', async () => {
    await fresh('a', 'b')
    for (const [ids, message] of [
      [['a'], '1 profile anonymized.'],
      [['a', 'b'], '2 profiles anonymized.'],
      [['b', 'a', 'b', 'b'], '2 profiles anonymized.'],
      [['a', 'a'], '1 profile anonymized.'],
    ] as const) {
      const { status, body } = await erase(...ids)
      assert.deepEqual([status, body], [200, { message }])
    }
  })

  test('takes a thousand at once', async () => {
    await fresh()
    const profiles = Array.from({ length: 1000 }, (_, n) => ({ id: `p-${n}`, email: `${n}@example.com` }))
    await insert(server.db, project, { profiles })
    const { status, body } = await erase(...profiles.map(({ id }) => id))
    assert.deepEqual([status, body.message], [200, '1000 profiles anonymized.'])
    const [row] = await server.db.query('select count(email) as n from profiles where project_id = $1', [project.id])
    assert.equal(row?.n, '0')
  })

  test('404 with each unknown id once, in the order given, and nothing is changed or written down', async () => {
    const others = await server.project()
    await insert(server.db, others, { profiles: [{ id: 'theirs' }] })
    await fresh('a')
    const ledger = () => (existsSync(server.ledger) ? readFileSync(server.ledger, 'utf8') : '')
    const [before, ledgerBefore] = [await dump(server.db), ledger()]
    const long = 'x'.repeat(300)
    const answer = await erase('zz', 'a', 'theirs', 'zz', 'A', 'ä ö', long)
    assert.deepEqual(
      [answer.status, answer.body],
      [
        404,
        {
          message: '5 of the profiles do not exist in this project: nothing was changed.',
          not_found: ['zz', 'theirs', 'A', 'ä ö', long],
        },
      ],
    )
    assert.equal(
      (await erase('nobody')).body.message,
      '1 of the profiles does not exist in this project: nothing was changed.',
    )
    assert.deepEqual(differences(before, await dump(server.db)), [])
    assert.equal(ledger(), ledgerBefore)
  })

  test('field by field', async () => {
    await fresh('a', 'b')
    const paths = ['/profiles/a', '/sessions/session-of-a', '/subscriptions/subscription-of-a', '/transactions']
    const before = await Promise.all(paths.map(get))
    const repliesBefore = await get('/sessions/session-of-a/replies')
    const bystander = () => Promise.all(paths.slice(0, 3).map((path) => get(path.replace(/a$/, 'b'))))
    const bystanderBefore = await bystander()
    const started = await clock()
    assert.equal((await erase('a')).status, 200)

    const [profile, session, subscription, transactions] = await Promise.all(paths.map(get))
    const { anonymized_at } = profile
    assert.ok(anonymized_at >= started && anonymized_at <= (await clock()))
    for (const one of [profile, session, subscription]) assert.ok(one.updated_at >= anonymized_at)
    const wiped = { email: null, phone: null, integrations: {} }
    assert.deepEqual(profile, { ...before[0], ...wiped, anonymized_at, updated_at: profile.updated_at })
    const reply = { ...before[1].replies[0], value: null }
    assert.deepEqual(session, {
      ...{ ...before[1], updated_at: session.updated_at, user_agent: null, origin: 'https://shop.example:8443' },
      ...{ query_params: {}, tracking_cookies: {}, replies: [reply] },
      attributes: { ...before[1].attributes, ip: null, postal_code: null },
    })
    assert.deepEqual(await get('/sessions/session-of-a/replies'), [{ ...repliesBefore[0], state: { value: null } }])
    assert.deepEqual(subscription, {
      ...before[2],
      updated_at: subscription.updated_at,
      profile: { ...before[2].profile, email: null },
      session: { ...before[2].session, user_agent: null },
    })
    assert.deepEqual(transactions, before[3])
    assert.deepEqual(await bystander(), bystanderBefore)
  })

  for (const [origin, left] of [
    ['https://shop.example/path?mail=x', 'https://shop.example'],
    ['HTTPS://me:secret@shop.example:8443?x', 'HTTPS://shop.example:8443'],
    ['https://a@b@shop.example/', 'https://shop.example'],
    ['https://shop.example#me', 'https://shop.example'],
    ['http://[2001:db8::1]/x', 'http://[2001:db8::1]'],
    ['android-app://com.example/x', 'android-app://com.example'],
    ['shop.example/path', null],
    ['about me', null],
    ['//shop.example/x', null],
  ] as const) {
    test(`of the origin ${origin} it leaves ${left}`, async () => {
      await fresh()
      await insert(server.db, project, { profiles: [{ id: 'a' }], sessions: [{ id: 's', profile_id: 'a', origin }] })
      await erase('a')
      assert.equal((await get('/sessions/s')).origin, left)
    })
  }

  test('a sync sees the profile, its sessions and its subscriptions, and nobody else', async () => {
    await fresh('a', 'b')
    // Of one only an answer is personal, of the other nothing.
    await insert(server.db, project, {
      sessions: ['answered', 'blank'].map((id) => ({ id, profile_id: 'a', locale: 'de' })),
      replies: [{ session_id: 'answered', value: 'x' }, { session_id: 'blank' }],
    })
    const from = await clock()
    await erase('a')
    const changed = async (list: string) =>
      (await project.get(list, { 'filter[updated_at.from]': from })).body.data.map(({ id }: Json) => id)
    assert.deepEqual(await changed('/profiles'), ['a'])
    assert.deepEqual((await changed('/sessions')).sort(), ['answered', 'session-of-a'])
    assert.deepEqual(await changed('/subscriptions'), ['subscription-of-a'])
    assert.deepEqual(await changed('/transactions'), [])
    assert.equal((await project.get('/profiles', { 'filter[email]': MARK })).body.pagination.total, 1)
  })

  test('erasing again changes nothing but the audit log', async () => {
    await fresh('a')
    await erase('a')
    const before = await dump(server.db)
    assert.equal((await erase('a')).status, 200)
    assert.deepEqual(differences(before, await dump(server.db), ['audit_log', 'audit_head']), [])
  })

  test('every text column of the tables with people is either wiped or kept on purpose', async () => {
    for (const [table, personal] of Object.entries(PERSONAL)) {
      const columns = await server.db.query(
        `select column_name as name from information_schema.columns
         where table_name = $1 and data_type in ('text', 'json', 'jsonb', 'character varying', 'bytea')`,
        [table],
      )
      const known = [...Object.keys(personal), ...KEPT[table]!.split(' ')]
      assert.deepEqual(columns.map(({ name }) => name!).sort(), known.sort(), table)
    }
  })

  test('no trace is left: not in any table, not in our log, not in PostgreSQL’s', async () => {
    await fresh('a')
    await insert(server.db, project, {
      customers: [{ external_id: 'user', profile_id: 'a', ...PERSONAL.customers }],
      orders: [{ order_id: ORDER, external_id: 'user', ...PERSONAL.orders }],
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
        { id: EVENTS[2], type: 'charge.succeeded', object_id: UNLINKED_ORDER, data: { note: 'of somebody else' } },
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

    // Other tests' people are in other projects.
    const left = (await dump(server.db))
      .split('\n')
      .filter((line) => line.includes(`"${project.id}"`) || line.includes(`"${project.organizationId}"`))
    assert.ok(left.length > 10)
    const trace = /zyx|marker/i
    assert.deepEqual(
      left.filter((line) => trace.test(line)),
      [],
    )
    assert.deepEqual(
      server.logLines().filter((line) => trace.test(line)),
      [],
    )
    const [place] = await server.db.query('show data_directory')
    const log = join(place!.data_directory!, '../../postgres.log')
    if (existsSync(log)) assert.doesNotMatch(readFileSync(log, 'utf8'), trace)
    assert.doesNotMatch(readFileSync(server.ledger, 'utf8'), trace)

    const events = await server.db.query('select id, data from events where project_id = $1 order by id', [project.id])
    const data = new Map(events.map(({ id, data }) => [id, JSON.parse(data!)]))
    assert.deepEqual(
      EVENTS.map((id) => data.get(id)),
      [{ id: 'subscription-of-a' }, { id: ORDER }, { note: 'of somebody else' }],
    )
  })

  test('tells the project’s endpoints by an event with the id alone, once', async () => {
    await fresh('a')
    await Promise.all(Array.from({ length: 5 }, () => erase('a')))
    await erase('a')
    const events = await server.db.query('select type, data from events where project_id = $1', [project.id])
    assert.deepEqual(
      events.map(({ type, data }) => [type, JSON.parse(data!)]),
      [['profile.anonymized', { id: 'a' }]],
    )
  })

  async function clock(): Promise<string> {
    const [row] = await server.db.query(`select to_char(db_clock(), 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as now`)
    return row!.now!
  }

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
