// Behind an address in front of several shards, no shard responds as if it were all.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { startTestServer } from '../../support/server.ts'

const server = await startTestServer({}, { worker: false })
after(() => server.stop())
const made = await server.db.tx((query) => createOperator(query, { name: 'Ada', scope: 'write' }))
const key = made.key

// As HAProxy sends a request for which it finds no shard.
const OF_NO_SHARD = { 'x-tundish-shard': 'none' }

async function ask(path: string, { method = 'GET', headers = {} as Record<string, string> } = {}) {
  const response = await fetch(server.adminUrl + path, {
    method,
    headers: { authorization: `Bearer ${key}`, ...headers },
  })
  const text = await response.text()
  const code = response.headers.get('x-error-code')
  return { status: response.status, code, text }
}

/** Every operation as `GET /admin/v1/search`, by the description. */
async function operations(): Promise<string[]> {
  const { text } = await ask('/openapi.json')
  const { paths } = JSON.parse(text) as { paths: Record<string, object> }
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
}

const COMMANDS: Record<string, string> = {
  'GET /admin/v1/search': 'tundish shards run --in FOLDER --merge -- search',
  'GET /admin/v1/organizations': 'tundish shards run --in FOLDER --merge -- org list',
  'POST /admin/v1/organizations': 'tundish org create',
  'POST /admin/v1/restored-keys/confirm': 'tundish keys confirm',
  'GET /admin/v1/projects': 'tundish shards run --in FOLDER --merge -- project list',
  'GET /admin/v1/operators': 'tundish shards run --in FOLDER --merge -- operator list',
  'GET /admin/v1/orders/stuck': 'tundish shards run --in FOLDER --merge -- order stuck',
  'GET /admin/v1/refunds/stuck': 'tundish shards run --in FOLDER --merge -- refund stuck',
  'GET /admin/v1/deliveries/failing': 'tundish shards run --in FOLDER --merge -- delivery failing',
  'GET /admin/v1/erasures/ledgers': 'tundish shards run --in FOLDER --merge -- profile ledgers',
  'GET /admin/v1/audit': 'tundish shards run --in FOLDER --merge -- audit list',
  'GET /admin/v1/audit/verify': 'tundish shards run --in FOLDER --merge -- audit verify',
}

test('421 with the command for every operation that concerns all shards, and for no other', async () => {
  const refused: Record<string, string> = {}
  for (const operation of await operations()) {
    const [method, path] = operation.split(' ') as [string, string]
    const { status, code, text } = await ask(path.replaceAll(/\{[a-z_]+\}/g, randomUUID()), {
      method,
      headers: OF_NO_SHARD,
    })
    if (status !== 421) continue
    assert.equal(code, 'concerns_all_shards')
    refused[operation] = /"(tundish .*?)"/.exec(JSON.parse(text).message)![1]!
  }
  assert.deepEqual(refused, COMMANDS)
})

test('401 before it is refused, and an organization of another shard is not found', async () => {
  const { status } = await ask('/admin/v1/search?q=x', { headers: { ...OF_NO_SHARD, authorization: 'Bearer wrong' } })
  assert.equal(status, 401)
  const other = await ask('/admin/v1/organizations/other', { headers: OF_NO_SHARD })
  assert.deepEqual([other.status, other.code], [404, 'object_not_found'])
})

test('421 for metrics; the reference and the guides are the same on all', async () => {
  const { status, text } = await ask('/metrics', { headers: OF_NO_SHARD })
  assert.equal(status, 421)
  assert.match(JSON.parse(text).message, /^Each shard has its own metrics/)
  for (const path of ['/openapi.json', '/docs', '/docs/guides'])
    assert.equal((await ask(path, { headers: OF_NO_SHARD })).status, 200, path)
})

test('a shard at its own address responds to all of it', async () => {
  for (const path of ['/admin/v1/organizations', '/admin/v1/audit', '/metrics'])
    assert.equal((await ask(path)).status, 200, path)
})
