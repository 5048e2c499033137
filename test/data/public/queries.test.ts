// What every endpoint does with its query string: nothing is ignored, nothing is coerced, and date-times are RFC 3339.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { BASICS, insert } from '../../support/data.ts'
import { sendBytes, startTestServer } from '../../support/server.ts'

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
await insert(server.db, project, {
  ...BASICS,
  funnels: [{ id: 'funnel', title: 'Größe & Maß' }],
  subscriptions: [{ id: 'sub', updated_at: '2026-03-01T00:30:00.000001Z' }],
})

describe('a query string', () => {
  const get = (path: string) => server.api(path, { key: project.key })

  for (const [query, message] of [
    ['/funnels?foo=1', 'Unknown query parameter "foo": the parameters are limit, cursor, filter[title]'],
    ['/funnels?Limit=1', 'Unknown query parameter "Limit"'],
    ['/funnels?__proto__=1', 'Unknown query parameter "__proto__"'],
    ['/funnels?toString=1', 'Unknown query parameter "toString"'],
    ['/funnels?=1', 'Unknown query parameter ""'],
    ['/funnels?filter[foo]=1', 'Unknown query parameter "filter[foo]"'],
    ['/funnels?filter%5Bfoo%5D=1', 'Unknown query parameter "filter[foo]"'],
    ['/funnels?filter=1', 'Unknown query parameter "filter"'],
    ['/funnels?filter[title', 'Unknown query parameter "filter[title"'],
    ['/funnels?filter[created_after]=2026-01-01T00:00:00Z', 'Unknown query parameter "filter[created_after]"'],
    [
      '/products?filter[type]=x',
      'Unknown query parameter "filter[type]": the parameters are limit, cursor, filter[updated_at.from], filter[updated_at.to].',
    ],
    ['/transactions?filter[profile_id]=x', 'Unknown query parameter "filter[profile_id]"'],
    ['/funnels/funnel?limit=1', 'Unknown query parameter "limit": this endpoint has none.'],
    ['/sessions/session/replies?limit=1', 'Unknown query parameter "limit": this endpoint has none.'],
    [`/funnels?${'x'.repeat(200)}=1`, `Unknown query parameter "${'x'.repeat(63)}…"`],
    ['/funnels?limit=1&limit=1', 'The query parameter limit is given more than once.'],
    ['/funnels?filter[type]=a&filter%5btype%5d=b', 'The query parameter filter[type] is given more than once.'],
    ['/funnels?filter[title]=', 'filter[title] must not be empty.'],
    ['/funnels?filter[title]', 'filter[title] must not be empty.'],
    ['/subscriptions?filter[email]=', 'filter[email] must not be empty.'],
    ['/funnels?cursor=', 'cursor must not be empty.'],
    ['/funnels?limit=', 'limit must not be empty.'],
    ['/funnels?filter[title]=a%00b', 'The query parameter filter[title] contains the character U+0000.'],
    ['/funnels?filter[title]=%ff', 'The query parameter filter[title] is not valid UTF-8 in percent-encoding.'],
    ['/funnels?filter[title]=%ED%A0%BD', 'The query parameter filter[title] is not valid UTF-8 in percent-encoding.'],
    ['/funnels?filter[title]=100%', 'The query parameter filter[title] is not valid UTF-8 in percent-encoding.'],
    ['/funnels?limit=%e2%82', 'The query parameter limit is not valid UTF-8 in percent-encoding.'],
    ['/funnels?%00=1', 'The name of a query parameter contains the character U+0000.'],
    ['/funnels?%ff=1', 'The name of a query parameter is not valid UTF-8 in percent-encoding.'],
    ['/funnels?filter[deleted]=1', 'filter[deleted] must be one of true, false, got "1".'],
    ['/funnels?filter[deleted]=TRUE', 'filter[deleted] must be one of true, false, got "TRUE".'],
    ['/subscriptions?filter[status]=Active', 'filter[status] must be one of created, trialing,'],
    ['/subscriptions?filter[status]=active%20', 'filter[status] must be one of created, trialing,'],
  ] as const) {
    test(`400 for ${query.slice(0, 60)}`, async () => {
      const response = await get(query)
      assert.deepEqual([response.status, Object.keys(response.body)], [400, ['message']])
      assert.ok(response.body.message.startsWith(message), response.body.message)
    })
  }

  for (const path of ['/health/live', '/health/ready', '/openapi.json', '/docs']) {
    test(`400 for an unknown parameter of ${path}`, async () => {
      const { status, headers, body } = await server.call(`${path}?x=1`)
      assert.deepEqual([status, headers['x-error-code']], [400, 'unknown_parameter'])
      assert.equal(body.message, 'Unknown query parameter "x": this endpoint has none.')
      assert.equal((await server.call(path)).status, 200)
    })
  }

  test('400 for an unknown parameter of the erasure, which then changes nothing', async () => {
    const body = { profile_ids: ['profile'] }
    const response = await server.api('/profiles/anonymize?dry_run=true', { key: project.key, method: 'POST', body })
    assert.equal(response.status, 400)
    assert.equal((await get('/profiles/profile')).body.anonymized_at, null)
  })

  for (const limit of ['0', '101', '020', '2e1', '20%20', '+20', '-1', '20.0', '٢٠', '1'.repeat(30)]) {
    test(`400 for limit=${limit}, naming it`, async () => {
      const response = await get(`/funnels?limit=${limit.startsWith('٢') ? encodeURIComponent(limit) : limit}`)
      assert.equal(response.status, 400)
      assert.match(response.body.message, /^limit must be a whole number from 1 to 100, got ".+"\.$/)
    })
  }

  for (const query of ['filter[type]=default&limit=20', 'filter%5Btype%5D=default', '&&filter%5btype]=default&', '']) {
    test(`200 for "${query}"`, async () => {
      const { status, body } = await get(`/funnels?${query}`)
      assert.deepEqual([status, body.pagination.total], [200, 1])
    })
  }

  test('text outside ASCII is percent-encoded UTF-8; raw it is 400', async () => {
    assert.equal((await get('/funnels?filter[title]=gr%C3%B6%C3%9Fe+%26')).body.pagination.total, 1)
    const raw = `GET /public/v1/funnels?filter[title]=größe HTTP/1.1\r\nHost: x\r\nService-Secret: ${project.key}\r\n\r\n`
    const response = await sendBytes(server.url, raw)
    assert.match(response, /^HTTP\/1.1 400 /)
    assert.match(
      response,
      /"message":"The URL must begin with a slash and contain only visible ASCII characters: percent-encode all others\."/,
    )
  })

  // The one subscription was changed at 2026-03-01T00:30:00.000001Z.
  for (const [text, found] of [
    ['2026-03-01T00:30:00.000001Z', 1],
    ['2026-03-01T00:30:00.000002Z', 0],
    ['2026-03-01T00:30:00Z', 1],
    ['2026-03-01T01:30:00.000001+01:00', 1],
    ['2026-03-01T01:30:00.000002+01:00', 0],
    ['2026-03-01T01:30:00.000001%2B01:00', 1],
    ['2026-02-28T23:59:60Z', 1],
    ['0001-01-01T00:00:00Z', 1],
    ['9999-12-31T23:59:59.999999Z', 0],
  ] as const) {
    test(`filter[updated_at.from]=${text} finds ${found}`, async () => {
      const response = await get(`/subscriptions?filter[updated_at.from]=${text}`)
      assert.deepEqual(
        [response.status, response.body.data?.length, response.body.pagination?.total],
        [200, found, found],
      )
    })
  }

  // What else is no date-time is in test/lib/time.test.ts.
  for (const text of ['2026-03-01T00:30:00.0000011Z', '2026-02-30T00:00:00Z', '2026-03-01', '1772323200', 'now']) {
    test(`400 for the date-time ${text}, naming the filter`, async () => {
      for (const name of ['updated_at.from', 'updated_at.to', 'created_after']) {
        const response = await get(`/subscriptions?filter[${name}]=${text}`)
        assert.equal(response.status, 400)
        assert.ok(response.body.message.startsWith(`filter[${name}] `), response.body.message)
      }
    })
  }
})
