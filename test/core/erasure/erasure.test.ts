// Erasing people: all or nothing, every effect field by field, and who is told.
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { after, describe, test } from 'node:test'
import { BASICS, insert } from '../../support/data.ts'
import { differences, dump } from '../../support/database.ts'
import { type Json, type Project, startTestServer } from '../../support/server.ts'
import { MARK, PERSONAL, person } from './person.ts'

const LATE = '01900000-0000-7000-8000-0000000000f1'

const server = await startTestServer({}, { worker: false })
after(() => server.stop())

describe('erasing', () => {
  let project: Project
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

  test('tries again during concurrent writes, and in the end asks the caller to', async () => {
    await fresh('a')
    const clash = async (times: number) => {
      await server.db.query(`
        create sequence clashes; create function clash() returns trigger language plpgsql as $$ begin
          if nextval('clashes') <= ${times} then raise 'deadlock detected' using errcode = '40P01'; end if;
          return new;
        end $$;
        create trigger clash before update on profiles for each row execute function clash()`)
      const before = await dump(server.db)
      const { status, headers, body } = await erase('a')
      await server.db.query('drop trigger clash on profiles; drop function clash; drop sequence clashes')
      return { status, retryAfter: headers['retry-after'], message: body.message, before }
    }
    const { before, ...response } = await clash(3)
    assert.deepEqual(response, {
      status: 503,
      retryAfter: '1',
      message: 'A concurrent request changed the same data. Nothing was written: try again.',
    })
    assert.deepEqual(differences(before, await dump(server.db)), [])
    assert.equal((await clash(2)).status, 200)
  })

  test('404 with each unknown id once, in the order given, and nothing is changed or written down', async () => {
    const others = await server.project()
    await insert(server.db, others, { profiles: [{ id: 'theirs' }] })
    await fresh('a')
    const ledger = () => (existsSync(server.ledger) ? readFileSync(server.ledger, 'utf8') : '')
    const [before, ledgerBefore] = [await dump(server.db), ledger()]
    const long = 'x'.repeat(300)
    const response = await erase('zz', 'a', 'theirs', 'zz', 'A', 'ä ö', long)
    assert.deepEqual(
      [response.status, response.body],
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
    ['https://shop.example\\ada@x/path', 'https://shop.example'],
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

  test('a sync sees the profile, its sessions and its subscriptions, and no others', async () => {
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

  test('a sync sees a subscription whose session shows nothing, for its e-mail is gone', async () => {
    await fresh('a')
    await insert(server.db, project, { subscriptions: [{ id: 'without-session', profile_id: 'a', session_id: null }] })
    const from = await clock()
    await erase('a')
    const { data } = (await project.get('/subscriptions', { 'filter[updated_at.from]': from })).body
    assert.deepEqual(data.map(({ id }: Json) => id).sort(), ['subscription-of-a', 'without-session'])
  })

  test('a sync sees another profile’s subscription that shows the user agent of a session', async () => {
    await fresh('a', 'b')
    const shown = { profile_id: 'b', session_id: 'session-of-a' }
    await insert(server.db, project, {
      sessions: [{ id: 'plain', profile_id: 'a' }],
      subscriptions: [
        { id: 'shows', ...shown },
        { id: 'shows-nothing', ...shown, session_id: 'plain' },
      ],
    })
    const from = await clock()
    await erase('a')
    const { data } = (await project.get('/subscriptions', { 'filter[updated_at.from]': from })).body
    assert.deepEqual(data.map(({ id }: Json) => id).sort(), ['shows', 'subscription-of-a'])
    assert.equal((await get('/subscriptions/shows')).session.user_agent, null)
  })

  test('erasing again changes nothing but the audit log, and what keeps stale replicas from being read', async () => {
    await fresh('a')
    await erase('a')
    const before = await dump(server.db)
    assert.equal((await erase('a')).status, 200)
    assert.deepEqual(differences(before, await dump(server.db), ['audit_log', 'audit_head', 'erasure_marks']), [])
  })

  test('erasing again wipes what was added to the profile in between', async () => {
    await fresh('a')
    await erase('a')
    await insert(server.db, project, {
      sessions: [{ id: 'late', profile_id: 'a' }],
      replies: [{ session_id: 'late', value: MARK }],
      customers: [{ external_id: 'late', profile_id: 'a', email: MARK }],
      orders: [{ order_id: LATE, external_id: 'late', ...PERSONAL.orders }],
      events: [{ id: LATE, type: 'charge.succeeded', object_id: LATE, ...PERSONAL.events }],
    })
    assert.equal((await erase('a')).status, 200)
    const left = (await dump(server.db)).split('\n').filter((line) => line.includes(project.id) && line.includes(MARK))
    assert.deepEqual(left, [])
  })

  test('sends the project’s endpoints one event with only the id', async () => {
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
})
