// Nothing of one project can be seen or touched with another's key, on any operation that /openapi.json describes.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Columns, insert, type Rows } from '../../support/data.ts'
import { startTestServer } from '../../support/server.ts'
import { describeServer, type Operation } from './description.ts'

const SECRET = 'theirs'

/** One of everything, marked in every text. */
function marked(mark: string): Rows {
  const of = (more: Columns): Columns => ({ id: mark, ...more })
  const refers = { profile_id: mark, funnel_id: mark, session_id: mark, experiment_id: mark, funnel_locale: mark }
  return {
    funnels: [of({ title: mark, alias: mark, type: mark, tags: [mark] })],
    experiments: [of({ title: mark, alias: mark })],
    profiles: [of({ email: `${mark}@example.com`, phone: mark, funnel_id: mark, integrations: { crm: mark } })],
    sessions: [of({ profile_id: mark, funnel_id: mark, experiment_id: mark, user_agent: mark, ip: mark })],
    replies: [{ session_id: mark, value: mark, element_id: mark, screen_id: mark }],
    products: [of({ name: mark, metadata: { mark }, prices: [{ id: mark }] })],
    subscriptions: [of({ ...refers, product_id: mark, psp_id: mark, payment_provider: mark })],
    transactions: [of({ ...refers, subscription_id: mark })],
  }
}

const server = await startTestServer()
after(() => server.stop())
const ours = await server.project()
// Of the same organization too: the project is the tenant.
const theirs = await server.project(ours.organizationId)
await insert(server.db, ours, marked('mine'))
await insert(server.db, theirs, marked(SECRET))
const { operations } = await describeServer(server)
const reads = operations.filter(({ method, path }) => method === 'GET' && path.startsWith('/public/v1'))
assert.ok(reads.length >= 12)

describe('two tenants', () => {
  const pathOf = ({ path }: Operation, id = '') => path.slice('/public/v1'.length).replace('{id}', id)

  test('the secret text is in every response to its owner, so that this test can fail', async () => {
    for (const operation of reads) {
      const { status, text } = await theirs.get(pathOf(operation, SECRET))
      assert.equal(status, 200)
      assert.ok(text.includes(SECRET), operation.path)
    }
  })

  test('lists show and count only our objects', async () => {
    for (const operation of reads.filter(({ path }) => !path.includes('{id}'))) {
      const { text, body } = await ours.get(pathOf(operation))
      assert.ok(!text.includes(SECRET), operation.path)
      // The export has lines and no total.
      if (operation.path.endsWith('/export')) continue
      assert.deepEqual([body.data.length, body.pagination.total], [1, 1])
    }
  })

  test('filters by their objects find nothing', async () => {
    for (const operation of reads) {
      for (const { name, schema } of operation.parameters.filter(({ name }) => name.startsWith('filter['))) {
        if (schema.type !== 'string' || schema.format || schema.enum) continue
        const value = name === 'filter[email]' ? `${SECRET}@example.com` : SECRET
        const query = { [name]: value, ...(operation.path.endsWith('/funnels') && { 'filter[deleted]': 'true' }) }
        const { text } = await ours.get(pathOf(operation), query)
        assert.equal(text, '{"data":[],"pagination":{"has_more":false,"total":0}}', `${operation.path} ${name}`)
        assert.equal((await theirs.get(pathOf(operation), query)).body.pagination.total, 1)
      }
    }
  })

  test('their objects have the same responses as objects that do not exist', async () => {
    for (const operation of reads.filter(({ path }) => path.includes('{id}'))) {
      const [real, none] = [await ours.get(pathOf(operation, SECRET)), await ours.get(pathOf(operation, 'nobody'))]
      assert.deepEqual([real.status, real.text], [404, none.text.replace('nobody', SECRET)])
      const names = (headers: object) => Object.keys(headers).sort()
      assert.deepEqual(names(real.headers), names(none.headers))
    }
  })

  test('400 for the id of their item as a cursor, as for one that does not exist', async () => {
    for (const operation of reads) {
      // The export takes no ids.
      if (operation.path.endsWith('/export') || !operation.parameters.some(({ name }) => name === 'cursor')) continue
      const [real, none] = [SECRET, 'nobody'].map((cursor) => ours.get(pathOf(operation), { cursor }))
      const { status, text } = await real!
      assert.deepEqual([status, text], [400, (await none!).text.replaceAll('nobody', SECRET)], operation.path)
      assert.notEqual((await theirs.get(pathOf(operation), { cursor: SECRET })).text, text, operation.path)
    }
  })

  test('404 for erasing their profiles, and none is erased', async () => {
    const response = await ours.post('/profiles/anonymize', { profile_ids: ['mine', SECRET] })
    assert.deepEqual([response.status, response.body.not_found], [404, [SECRET]])
    for (const [project, id] of [
      [ours, 'mine'],
      [theirs, SECRET],
    ] as const) {
      const { body } = await project.get(`/profiles/${id}`)
      assert.deepEqual([body.email, body.anonymized_at], [`${id}@example.com`, null])
    }
  })

  test('two projects may use the same ids; each sees and erases its own', async () => {
    const [one, other] = [await server.project(), await server.project()]
    await insert(server.db, one, marked('same'))
    await insert(server.db, other, { ...marked('same'), replies: [] })
    assert.equal((await one.get('/sessions/same/replies')).body.length, 1)
    assert.equal((await other.get('/sessions/same/replies')).body.length, 0)
    assert.equal((await one.post('/profiles/anonymize', { profile_ids: ['same'] })).status, 200)
    assert.equal((await one.get('/profiles/same')).body.email, null)
    assert.equal((await other.get('/profiles/same')).body.email, 'same@example.com')
    assert.equal((await other.get('/sessions/same')).body.attributes.ip, 'same')
  })
})
