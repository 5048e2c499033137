// /openapi.json describes every route that is served, and what the data API really returns is what it declares.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { unconnectedListener } from '../../../scripts/openapi.ts'
import { servedPaths, UNDESCRIBED } from '../../conformance/apis.ts'
import { BASICS, insert } from '../../support/data.ts'
import { type Json, startTestServer } from '../../support/server.ts'
import { describeServer, type Operation } from './description.ts'

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
const description = await describeServer(server)
const operations = description.operations.filter(({ path }) => path.startsWith('/public/v1'))
const everywhere = {
  profile_id: 'profile',
  funnel_id: 'funnel',
  experiment_id: 'experiment',
  session_id: 'session',
}
const session = {
  id: 'session',
  profile_id: 'profile',
  funnel_id: 'funnel',
  experiment_id: 'experiment',
  ip: '192.0.2.1',
}
await insert(server.db, project, {
  ...BASICS,
  funnels: [{ id: 'funnel' }, { id: 'gone', deleted_at: '2026-01-01T00:00:00Z' }],
  profiles: [{ id: 'profile', email: 'ada@example.com' }, { id: 'unknown' }],
  sessions: [session, { id: 'unknown' }],
  replies: [
    { session_id: 'session', value: 'text' },
    { session_id: 'session', value: ['a', 'b'], element_id: 'list' },
    { session_id: 'session', value: null, element_id: 'null' },
  ],
  subscriptions: [{ id: 'subscription', ...everywhere, trial_offer: { days: 7 } }, { id: 'unknown' }],
  transactions: [{ id: 'transaction', ...everywhere, subscription_id: 'subscription' }, { id: 'unknown' }],
})

describe('the description of the data API', () => {
  const kindOf = ({ path }: Operation) => path.split('/')[3]!.replace(/s$/, '')
  const at = ({ path }: Operation, id: string) => path.replace('{id}', id).slice('/public/v1'.length)

  test('exactly the served routes are described', async () => {
    const listener = await unconnectedListener()
    const served = servedPaths(listener.printRoutes({ commonPrefix: false }))
    await listener.close()
    assert.ok(served.length > 15)
    const described = Object.keys(description.document.paths).map((path) => path.replace(/\{(\w+)\}/g, ':$1'))
    assert.deepEqual(served.filter((path) => !UNDESCRIBED.includes(path)).sort(), described.sort())
  })

  test('webhooks refer to no component that only webhooks use, which generators may leave out', async () => {
    const listener = await unconnectedListener()
    const { webhooks, paths, components } = listener.swagger() as Json
    await listener.close()
    const refersTo = (node: unknown) => [...JSON.stringify(node).matchAll(/schemas\/(\w+)"/g)].map(([, name]) => name!)
    const used = new Set(refersTo(paths))
    for (const name of used) for (const inner of refersTo(components.schemas[name])) used.add(inner)
    assert.deepEqual(
      refersTo(webhooks).filter((name) => !used.has(name)),
      [],
    )
  })

  test('the operations of the data API are those of the contract', () => {
    const names = operations.map(({ method, path }) => `${method} ${path.slice('/public/v1'.length)}`)
    assert.deepEqual(names.sort(), [
      'GET /experiments',
      'GET /export',
      'GET /funnels',
      'GET /funnels/{id}',
      'GET /products',
      'GET /products/{id}',
      'GET /profiles',
      'GET /profiles/{id}',
      'GET /replies',
      'GET /sessions',
      'GET /sessions/{id}',
      'GET /sessions/{id}/replies',
      'GET /subscriptions',
      'GET /subscriptions/{id}',
      'GET /transactions',
      'POST /profiles/anonymize',
      'POST /records',
    ])
  })

  test('200: responses match their declarations, with all fields and with nulls', async () => {
    for (const operation of operations.filter(({ method }) => method === 'GET')) {
      for (const id of operation.path.includes('{id}') ? [kindOf(operation), 'unknown'] : ['']) {
        const response = await project.get(at(operation, id))
        if (response.status === 404 && ['funnel', 'product'].includes(kindOf(operation))) continue
        assert.equal(response.status, 200, operation.path)
        description.check(operation, response)
      }
    }
  })

  test('every declared parameter is taken, and refused when it is empty', async () => {
    const samples: Record<string, string> = {
      limit: '1',
      'filter[deleted]': 'true',
      'filter[status]': 'active',
      'filter[created_after]': '2026-01-01T00:00:00Z',
      'filter[updated_at.from]': '2026-01-01T00:00:00Z',
      'filter[updated_at.to]': '2030-01-01T00:00:00Z',
      from: '2026-01-01T00:00:00Z',
      to: '2030-01-01T00:00:00Z',
    }
    // Those of the operation that writes records: write-records.test.ts.
    for (const operation of operations.filter(({ method }) => method === 'GET')) {
      for (const { name } of operation.parameters.filter((one) => one.in === 'query')) {
        const cursor = async () => {
          if (operation.operationId === 'exportRecords')
            return /"cursor":"([^"]+)"/.exec((await project.get('/export')).text)![1]!
          return (await project.get(at(operation, ''), { limit: '1' })).body.pagination.next_cursor
        }
        const value = name === 'cursor' ? ((await cursor()) ?? kindOf(operation)) : (samples[name] ?? 'x')
        const response = await project.get(at(operation, ''), { [name]: value })
        assert.equal(response.status, 200, `${operation.path} ${name}`)
        description.check(operation, response)
        description.check(operation, await project.get(at(operation, ''), { [name]: '' }))
      }
    }
  })

  test('400, 401 and 404 are declared wherever they are returned', async () => {
    for (const operation of operations) {
      const { method } = operation
      const path = at(operation, 'nobody')
      description.check(operation, await server.api(path, { method }))
      description.check(
        operation,
        await server.api(`${path}?nonsense=1`, {
          method,
          key: project.key,
          body: method === 'POST' ? '{}' : undefined,
        }),
      )
      if (path.includes('nobody')) description.check(operation, await server.api(path, { method, key: project.key }))
    }
  })

  test('200, 404, 413 and 415 of an erasure are as declared', async () => {
    const operation = operations.find(({ method }) => method === 'POST')!
    const post = (body: string | object, headers?: string[]) =>
      server.api('/profiles/anonymize', { key: project.key, method: 'POST', body, headers })
    for (const [status, response] of [
      [404, await post({ profile_ids: ['nobody', 'profile'] })],
      [413, await post(' '.repeat(2 * 1024 * 1024))],
      [415, await post('{}', ['Content-Type', 'text/plain'])],
      [200, await post({ profile_ids: ['profile'] })],
    ] as const) {
      assert.equal(response.status, status)
      description.check(operation, response)
    }
    const erased = operations.find(({ path }) => path.endsWith('/sessions/{id}'))!
    description.check(erased, await project.get('/sessions/session'))
  })
})
