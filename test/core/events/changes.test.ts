// Which events a change of subscriptions and transactions makes, and that they tell what the API returns.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Change, emitRecordEvents, emitSubscriptionEvents } from '../../../src/core/events/changes.ts'
import { insert } from '../../support/data.ts'
import { column } from '../../support/rows.ts'
import { startTestServer } from '../../support/server.ts'

const server = await startTestServer({}, { worker: false })
after(() => server.stop())
const project = await server.project()
await insert(server.db, project, {
  funnels: [{ id: 'funnel-1' }],
  profiles: [{ id: 'profile-1', email: 'ada@example.com' }],
  products: [{ id: 'product-1' }],
  subscriptions: ['a', 'b', 'c', 'd'].map((id) => ({
    id: `sub-${id}`,
    profile_id: 'profile-1',
    product_id: 'product-1',
    funnel_id: 'funnel-1',
    status: id === 'a' ? 'created' : 'active',
    renewed_at: '2026-01-02T03:04:05.1Z',
  })),
  transactions: [{ id: 'trn-1', profile_id: 'profile-1', funnel_id: 'funnel-1' }],
})

async function emit(changes: Change[]) {
  await server.db.query('delete from events')
  await server.db.tx((query) => emitSubscriptionEvents(query, project.id, changes))
  return server.db.query('select type, object_id, sequence, profile_id, data from events order by object_id, sequence')
}
const types = (rows: Record<string, string | null>[]) => rows.map(({ object_id, type }) => `${object_id} ${type}`)

test('a new subscription is an event of its creation, and one of its state if that is another than created', async () => {
  const rows = await emit(['sub-a', 'sub-b'].map((id) => ({ id, before: null })))
  assert.deepEqual(types(rows), [
    'sub-a subscription.created',
    'sub-b subscription.created',
    'sub-b subscription.active',
  ])
  assert.deepEqual(column(rows, 'sequence'), ['1', '1', '2'])
})

test('a new state is an event of its name, a later period is a renewal, anything else is no event', async () => {
  const before = { status: 'active', renewed_at: '2026-01-02 03:04:05.1+00', period_starts_at: null }
  const rows = await emit([
    { id: 'sub-b', before: { ...before, status: 'trialing' } },
    { id: 'sub-c', before: { ...before, renewed_at: '2026-01-02 03:04:05.09+00' } },
    { id: 'sub-d', before },
  ])
  assert.deepEqual(types(rows), ['sub-b subscription.active', 'sub-c subscription.renewed'])
})

test('the data is the object as the API returns it', async () => {
  const [told] = await emit([{ id: 'sub-b', before: null }])
  const { body } = await project.get('/subscriptions/sub-b')
  assert.equal(body.profile.email, 'ada@example.com')
  assert.deepEqual(JSON.parse(told!.data!), body)
  assert.equal(told!.profile_id, 'profile-1')
  await server.db.tx((query) => emitRecordEvents(query, project.id, 'transaction.created', ['trn-1', 'trn-unknown']))
  const list = await project.get('/transactions')
  const [paid] = await server.db.query(`select data, object_id from events where type = 'transaction.created'`)
  assert.deepEqual(JSON.parse(paid!.data!), list.body.data[0])
})

test('the event of an erasure has only the id; earlier events are wiped', async () => {
  const [told] = await emit([{ id: 'sub-b', before: null }])
  assert.match(told!.data!, /ada@example\.com/)
  assert.equal((await project.post('/profiles/anonymize', { profile_ids: ['profile-1'] })).status, 200)
  const rows = await server.db.query('select type, data from events order by created_at, sequence')
  assert.deepEqual(
    rows.map(({ type, data }) => [type, JSON.parse(data!)]),
    [
      ['subscription.created', { id: 'sub-b' }],
      ['subscription.active', { id: 'sub-b' }],
      ['profile.anonymized', { id: 'profile-1' }],
    ],
  )
  const log = await server.db.query('select actor_kind, actor, action, target, before, after from audit_log')
  assert.deepEqual(log, [
    {
      actor_kind: 'project key',
      actor: project.id,
      action: 'profiles.erased',
      target: `project ${project.id}`,
      before: null,
      after: '{"profile_ids":["profile-1"]}',
    },
  ])
  await project.post('/profiles/anonymize', { profile_ids: ['profile-1'] })
  assert.equal((await server.db.query('select 1 from events')).length, 3, 'an erasure that was made is not told again')
})

test('an erasure wipes the events of a session that was moved to the profile later', async () => {
  await insert(server.db, project, {
    profiles: [{ id: 'first' }, { id: 'second' }],
    sessions: [{ id: 'moved', profile_id: 'first', ip: '192.0.2.7' }],
  })
  await server.db.tx((query) => emitRecordEvents(query, project.id, 'session.created', ['moved']))
  await server.db.query(`update sessions set profile_id = 'second' where id = 'moved'`)
  assert.equal((await project.post('/profiles/anonymize', { profile_ids: ['second'] })).status, 200)
  const [row] = await server.db.query(`select data from events where type = 'session.created'`)
  assert.deepEqual(JSON.parse(row!.data!), { id: 'moved' })
})
