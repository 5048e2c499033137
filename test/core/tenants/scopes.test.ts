// Scoped keys: what each opens, on every operation of both listeners, and that they never sign webhooks.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { signingKeys } from '../../../src/core/events/signing-keys.ts'
import { line } from '../../support/imports.ts'
import { type ApiResponse, ok, startTestServer } from '../../support/server.ts'

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
const organization = project.organizationId

async function make(owner: string, scope?: string[], more = {}): Promise<string> {
  const body = await ok(
    server.admin(`${owner}/keys`, { method: 'POST', body: { name: 'Quiz server', scope, ...more } }),
  )
  assert.deepEqual(body.scopes, scope ?? null)
  assert.equal(body.webhook_secret === undefined, scope !== undefined || owner.startsWith('/org'))
  return body.secret_key
}

interface Described {
  paths: Record<string, Record<string, { operationId: string; security?: object[]; responses: object }>>
}

/** Every operation of a listener with the key, in both headers and as a bearer; by its id. Fails for an undeclared status. */
async function tryAll(url: string, document: string, key: string): Promise<Map<string, ApiResponse>> {
  const described = (await (await fetch(`${url}${document}`)).json()) as Described
  const responses = new Map<string, ApiResponse>()
  for (const [path, methods] of Object.entries(described.paths)) {
    const filled = path.replaceAll('{org_id}', organization).replaceAll(/\{[^}]+\}/g, 'some')
    for (const [method, { operationId, security, responses: declared }] of Object.entries(methods)) {
      if (!security || security.length === 0) continue
      const response = await fetch(`${url}${filled}`, {
        method: method.toUpperCase(),
        headers: {
          'Service-Secret': key,
          'service-secret-key': key,
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
        },
        ...(method !== 'get' && { body: '{}' }),
      })
      assert.ok(String(response.status) in declared, `${operationId}: ${response.status} is not declared`)
      const text = await response.text()
      const body = text.startsWith('{') ? JSON.parse(text) : {}
      responses.set(operationId, { status: response.status, headers: Object.fromEntries(response.headers), text, body })
    }
  }
  return responses
}

test('a write key can write records, and nothing else on any operation of both listeners', async () => {
  const key = await make(`/projects/${project.id}`, ['write'])
  const put = await server.api('/records', { method: 'POST', key, body: { records: [line.profile()] } })
  assert.deepEqual([put.status, put.body.written], [200, 1])
  const responses = new Map([
    ...(await tryAll(server.url, '/openapi.json', key)),
    ...(await tryAll(server.adminUrl, '/openapi.json', key)),
  ])
  assert.ok(responses.size > 100, `${responses.size} operations were tried`)
  for (const [operation, { status, headers }] of responses) {
    if (operation === 'writeRecords') assert.equal(status, 400)
    else
      assert.ok(
        status === 401 || (status === 403 && headers['x-error-code'] === 'scope_missing'),
        `${operation}: ${status}`,
      )
  }
})

test('a report key of an organization is 403 where it lacks the scope, and 401 at the data API', async () => {
  const key = await make(`/organizations/${organization}`, ['report'])
  const responses = await tryAll(server.url, '/openapi.json', key)
  assert.equal(responses.get('listFunnels')?.status, 401)
  for (const operation of ['createOneOffCharge', 'createRefund'])
    assert.equal(responses.get(operation)?.status, 403, operation)
})

test('404 and 405 for a scoped key as for any other: no key could do it', async () => {
  const key = await make(`/projects/${project.id}`, ['write'])
  for (const [method, path, code] of [
    ['POST', '/records/', 'path_not_found'],
    ['GET', '/nothing', 'path_not_found'],
    ['GET', '/records', 'method_not_allowed'],
    ['DELETE', '/products', 'method_not_allowed'],
  ] as const) {
    const { headers } = await server.api(path, { method, key })
    assert.equal(headers['x-error-code'], code, `${method} ${path}`)
  }
  const charge = await make(`/organizations/${organization}`, ['charge'])
  const { status } = await server.call(`/${organization}/v1/my_assets`, { headers: ['service-secret-key', charge] })
  assert.equal(status, 405)
})

test('403 names the scope and the key; each scope opens what it says', async () => {
  const read = await make(`/projects/${project.id}`, ['read'])
  const erase = await make(`/projects/${project.id}`, ['erase'])
  const post = (path: string, key: string, body: object) => server.api(path, { method: 'POST', key, body })
  assert.equal((await server.api('/profiles', { key: read })).status, 200)
  const refused = await post('/records', read, { records: [line.profile()] })
  assert.deepEqual([refused.status, refused.headers['x-error-code']], [403, 'scope_missing'])
  assert.equal(refused.body.message, 'The key "Quiz server" (read) lacks the scope "write".')
  assert.equal((await server.api('/profiles', { key: erase })).status, 403)
  assert.equal((await post('/profiles/anonymize', erase, { profile_ids: ['profile'] })).status, 200)
  assert.equal((await post('/profiles/anonymize', read, { profile_ids: ['profile'] })).status, 403)

  const bill = async (path: string, key: string, body?: object) =>
    (
      await server.call(`/${organization}/v1${path}`, {
        ...(body && { method: 'POST', body }),
        headers: ['service-secret-key', key],
      })
    ).status
  const paths = { charge: '/payment/one_off_charge', refund: '/payment/refund', report: '/transaction_report' }
  const opened = {
    spend: 'charge',
    hold: 'charge',
    capture: 'charge',
    release: 'charge',
    balance: 'report',
    entries: 'report',
    'top_up/set': 'charge',
    'top_up/remove': 'charge',
    'top_up/list': 'report',
  }
  const credits = { ...opened, grant: 'a full key', adjust: 'a full key' }
  for (const scope of ['charge', 'refund', 'report']) {
    const key = await make(`/organizations/${organization}`, [scope])
    for (const [needed, path] of Object.entries(paths))
      assert.equal((await bill(path, key, { no: 1 })) === 403, needed !== scope, `${scope} at ${path}`)
    assert.equal((await bill('/refunds', key)) === 403, scope !== 'report', `${scope} at /refunds`)
    for (const [path, needed] of Object.entries(credits))
      assert.equal((await bill(`/credits/${path}`, key, { no: 1 })) === 403, needed !== scope, `${scope} at ${path}`)
  }
})

test('scoped keys sign no webhooks, are listed with scopes, keep them when rotated, and end', async () => {
  const key = await make(`/projects/${project.id}`, ['write', 'read'].toSorted(), { expires_seconds: 90 * 86_400 })
  const signing = (await signingKeys({ db: server.db, seal: server.app.seal }, new Set([project.id]))).get(project.id)
  assert.deepEqual(signing, [project.key])
  const { body } = await server.admin(`/projects/${project.id}/keys`)
  const found = body.data.find(({ last_four }: { last_four: string }) => last_four === key.slice(-4))
  assert.equal(found.scopes, 'read,write')
  assert.ok(Date.parse(found.expires_at) > Date.now() + 89 * 86_400_000)
  const path = `/projects/${project.id}/keys/${found.id}`
  const rotated = (await server.admin(`${path}/rotate`, { method: 'POST', body: {} })).body
  assert.deepEqual([rotated.scopes, rotated.expires_at], [['read', 'write'], found.expires_at])
  assert.equal((await server.api('/profiles', { key })).status, 401)
  assert.equal((await server.api('/profiles', { key: rotated.secret_key })).status, 200)
  const bad = await server.admin(`/projects/${project.id}/keys`, {
    method: 'POST',
    body: { name: 'x', scope: ['charge'] },
  })
  assert.equal(bad.status, 400)
})

test('a key that is rotated again during the overlap has a successor that ends when the key was to end, not with the overlap', async () => {
  const keys = `/projects/${project.id}/keys`
  for (const settings of [{}, { expires_seconds: 90 * 86_400 }]) {
    const { body: made } = await server.admin(keys, { method: 'POST', body: { name: 'twice', ...settings } })
    const rotate = async (overlap_seconds: number) =>
      (await server.admin(`${keys}/${made.id}/rotate`, { method: 'POST', body: { overlap_seconds } })).body
    const [first, second] = [await rotate(3600), await rotate(7200)]
    assert.equal(first.expires_at, made.expires_at)
    assert.equal(second.expires_at, made.expires_at)
    assert.equal(second.previous_expires_at, first.previous_expires_at)
    await ok(server.admin(`${keys}/${made.id}`, { method: 'DELETE' }))
    assert.equal((await server.api('/funnels', { key: second.secret_key })).status, 200)
  }
})

test('a key has a lower rate than the others, also after a rotation; the lower of it and that of the project holds', async () => {
  const mine = await server.project()
  const path = `/projects/${mine.id}`
  const create = (rate_limit: unknown) =>
    server.admin(`${path}/keys`, { method: 'POST', body: { name: 'slow', scope: ['read'], rate_limit } })
  const policy = async (key: string) => (await server.api('/funnels', { key })).headers['ratelimit-policy']
  const made = (await create('3/2')).body
  assert.equal(made.rate_limit, '3/2')
  assert.equal(await policy(made.secret_key), '"key";q=2;w=1')
  assert.notEqual(await policy(mine.key), '"key";q=2;w=1')
  const several = await Promise.all(Array.from({ length: 12 }, () => server.api('/funnels', { key: made.secret_key })))
  assert.ok(several.some(({ status }) => status === 429))
  const listed = (await server.admin(`${path}/keys`)).body.data
  assert.deepEqual(listed.map(({ rate_limit }: { rate_limit: string | null }) => rate_limit).sort(), ['3/2', null])
  const rotated = (await server.admin(`${path}/keys/${made.id}/rotate`, { method: 'POST', body: {} })).body
  assert.equal(rotated.rate_limit, '3/2')
  await server.admin(`${path}/rate-limit`, { method: 'PUT', body: { rate_limit: '1/1' } })
  assert.equal(await policy(rotated.secret_key), '"key";q=1;w=1')
  await server.admin(`${path}/rate-limit`, { method: 'PUT', body: { rate_limit: 'off' } })
  assert.equal(await policy((await create('7')).body.secret_key), '"key";q=35;w=5')
  for (const bad of ['off', 'default', '0', '3/0', '1000001', 'fast', '', 3])
    assert.equal((await create(bad)).status, 400)
})
