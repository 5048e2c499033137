// What every response has in common: request ids, error bodies, 404 and 405, and no word of what is inside.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { BASICS, insert } from '../../support/data.ts'
import { sendBytes, startTestServer } from '../../support/server.ts'

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
await insert(server.db, project, BASICS)

describe('every response', () => {
  const call = (method: string, path: string, headers: string[] = []) =>
    server.api(path, { key: project.key, method, headers })

  describe('has a request id', () => {
    for (const id of ['x', '~!@#$%^&*()', 'x'.repeat(128)]) {
      test(`the caller's: ${id.slice(0, 20)}, in the log line too`, async () => {
        const response = await call('GET', '/funnels', ['X-Request-Id', id])
        assert.equal(response.headers['x-request-id'], id)
        assert.ok(server.logLines().some((line) => JSON.parse(line).request_id === id))
      })
    }
    for (const [what, headers] of [
      ['none', []],
      ['an empty one', ['X-Request-Id', '']],
      ['129 characters', ['X-Request-Id', 'x'.repeat(129)]],
      ['a space', ['X-Request-Id', 'a b']],
      ['a letter outside ASCII', ['X-Request-Id', 'ä']],
      ['two', ['X-Request-Id', 'a', 'X-Request-Id', 'b']],
    ] as const) {
      test(`a new one for ${what}`, async () => {
        const { headers: given } = await call('GET', '/funnels', [...headers])
        assert.match(String(given['x-request-id']), UUID)
      })
    }

    test('whatever the status', async () => {
      const id = ['X-Request-Id', 'mine']
      const responses = [
        await server.api('/funnels', { headers: id }),
        await call('GET', '/nothing', id),
        await call('POST', '/funnels', id),
        await call('GET', '/funnels?x=1', id),
        await call('POST', '/profiles/anonymize', id),
        await server.call('/nothing', { headers: id }),
        await server.call('/health/live', { headers: id }),
        await server.call('/openapi.json', { headers: id }),
        await server.call('/docs', { headers: id }),
      ]
      assert.deepEqual(
        responses.map(({ status, headers }) => `${status} ${headers['x-request-id']}`),
        [401, 404, 405, 400, 400, 404, 200, 200, 200].map((status) => `${status} mine`),
      )
    })

    test('and tells caches not to keep it, which would give it to other keys', async () => {
      const responses = [
        await call('GET', '/funnels'),
        await call('GET', '/nothing'),
        await server.api('/funnels'),
        await server.call('/nothing/v1/refunds'),
        await server.call('/health/ready'),
      ]
      assert.deepEqual(
        responses.map(({ status, headers }) => `${status} ${headers['cache-control']}`),
        [200, 404, 401, 401, 200].map((status) => `${status} no-store`),
      )
      assert.equal((await server.call('/docs/reference.js')).headers['cache-control'], 'max-age=3600')
    })

    test('even if the request was not HTTP', async () => {
      for (const [bytes, status] of [
        ['NONSENSE\r\n\r\n', 400],
        ['GET / HTTP/1.1\r\nHost: x\r\nBad Name: x\r\n\r\n', 400],
        [`GET / HTTP/1.1\r\nHost: x\r\nA: ${'x'.repeat(17_000)}\r\n\r\n`, 431],
      ] as const) {
        const response = await sendBytes(server.url, bytes)
        assert.ok(response.startsWith(`HTTP/1.1 ${status} `), response)
        const id = /\r\nX-Request-Id: (\S+)\r\n/.exec(response)?.[1] ?? ''
        assert.match(id, UUID)
        assert.match(response, /\r\n\r\n\{"message":".+\."\}$/)
        assert.ok(server.logLines().some((line) => line.includes(id)))
      }
    })
  })

  describe('404', () => {
    for (const path of [
      '/nothing',
      '/',
      '',
      '/funnels/',
      '/funnels/funnel/x',
      '/sessions/nobody/replies',
      '/transactions/nobody',
      '/funnels/%00',
      '/funnels/%ff',
      '/funnels/100%',
      `/funnels/${'x'.repeat(65)}`,
      `/funnels/${'x'.repeat(10_000)}`,
      '/funnels/f%C3%BCr',
      '/funnels/../funnels',
      '/my_assets',
    ]) {
      test(`for ${path.slice(0, 40) || 'the root'}`, async () => {
        const { status, body, text } = await call('GET', path)
        assert.deepEqual([status, Object.keys(body)], [404, ['message']])
        assert.match(body.message, /^(This path does not exist|There is no [a-z]+ with the id ".*")\.$/s)
        assert.ok(text.length < 500)
      })
    }

    test('calls each kind of object by its name', async () => {
      for (const noun of ['funnel', 'profile', 'session', 'subscription', 'product']) {
        const { body } = await call('GET', `/${noun}s/nobody`)
        assert.equal(body.message, `There is no ${noun} with the id "nobody".`)
      }
    })

    test('for any method and body, without a word about either', async () => {
      for (const path of ['/nothing', '/my_assets', '']) {
        for (const method of ['POST', 'DELETE', 'OPTIONS', 'PROPFIND']) {
          const headers = ['Content-Type', 'text/plain']
          const response = await server.api(path, { key: project.key, method, body: '{', headers })
          assert.equal(response.status, 404, `${method} ${path}`)
        }
      }
    })
  })

  describe('405 with Allow', () => {
    for (const [path, allow] of [
      ['/funnels', 'GET, HEAD'],
      ['/funnels/funnel', 'GET, HEAD'],
      ['/profiles', 'GET, HEAD'],
      ['/profiles/profile', 'GET, HEAD'],
      ['/profiles/anonymize', 'GET, HEAD, POST'],
      ['/sessions/session/replies', 'GET, HEAD'],
      ['/transactions', 'GET, HEAD'],
    ] as const) {
      test(`for every other method of ${path}, whatever the body`, async () => {
        const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'QUERY']
        for (const method of methods.filter((one) => !allow.split(', ').includes(one))) {
          const body = ['GET', 'TRACE'].includes(method) ? undefined : '{'
          const response = await server.api(path, { key: project.key, method, body })
          assert.deepEqual([method, response.status, response.headers.allow], [method, 405, allow])
          assert.deepEqual(response.body, { message: `${method} is not allowed at this path: use ${allow}.` })
        }
      })
    }

    test('HEAD responds as GET does, without the body', async () => {
      for (const path of ['/funnels', '/funnels/funnel', '/sessions/session/replies', '/funnels/nobody']) {
        const [head, get] = [await call('HEAD', path), await call('GET', path)]
        assert.deepEqual([head.status, head.text], [get.status, ''])
        for (const name of ['content-type', 'content-length']) assert.equal(head.headers[name], get.headers[name])
      }
    })
  })

  test('500 reveals no internals; the log has them under the request id', async () => {
    await server.db.query('alter table products rename to products_away')
    const response = await call('GET', '/products', ['X-Request-Id', 'broken'])
    await server.db.query('alter table products_away rename to products')
    assert.deepEqual([response.status, response.text], [500, '{"message":"Internal error."}'])
    const logged = server.logLines().filter((line) => line.includes('"request_id":"broken"'))
    assert.ok(logged.some((line) => JSON.parse(line).err?.code === '42P01'))
  })

  test('the log names the route and the tenant, never the URL or the key', async () => {
    await call('GET', '/profiles?filter[email]=ada@example.com')
    await call('GET', '/profiles/pro_of_ada')
    await call('GET', '/path_of_ada')
    const lines = server.logLines().join('')
    assert.match(
      lines,
      new RegExp(`"tenant":"${project.id}","method":"GET","route":"/public/v1/profiles/:id","status":404`),
    )
    assert.doesNotMatch(lines, /of_ada|ada@/)
    assert.ok(!lines.includes(project.key) && !lines.includes('filter'))
  })

  test('no CORS headers, not for a preflight either', async () => {
    const headers = ['Origin', 'https://shop.example', 'Access-Control-Request-Method', 'GET']
    for (const path of [
      '/public/v1/funnels',
      '/public/v1/nothing',
      '/openapi.json',
      '/docs',
      '/health/live',
      '/org-1/v1/my_assets',
    ]) {
      for (const method of ['OPTIONS', 'GET']) {
        for (const key of [undefined, project.key]) {
          const response = await server.call(path, { method, headers, key })
          const cors = Object.keys(response.headers).filter((name) => name.startsWith('access-control-'))
          assert.deepEqual(cors, [], `${method} ${path}`)
        }
      }
    }
  })
})
