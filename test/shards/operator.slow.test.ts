// The operator's side of three shards behind one address of HAProxy.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { loadMaps, readMaps } from '../../src/operations/shards/haproxy.ts'
import { fillShop } from '../failover/shop.ts'
import { succeeded, tundish } from '../support/cli.ts'
import { type Json, ok, send, sendBytes } from '../support/server.ts'
import { HAPROXY } from './haproxy-path.ts'
import { type Installation, mapsLoaded, NAMES, openInstallation } from './installation.ts'

const skip = HAPROXY ? false : 'needs HAProxy'
const agent = new Agent()
let installation: Installation
let key: string

before(async () => {
  if (skip) return
  installation = await openInstallation()
  for (const name of NAMES) await fillShop(installation.shards[name].env, `${name}-shop`)
  const { folder } = installation.shards.a.cluster
  const file = `${folder}/operator.key`
  const words = ['operator', 'create', '--name', 'Ada', '--scope', 'write', '--key-file', file]
  await succeeded(tundish(['shards', 'run', '--in', installation.settings, '--', ...words]))
  key = readFileSync(file, 'utf8').trim()
  await mapsLoaded(installation)
})
after(async () => {
  agent.destroy()
  await installation?.close()
})

/** A call of the operator's API at HAProxy. */
async function ask(path: string, { method, body }: { method?: string; body?: object } = {}) {
  const headers = ['Authorization', `Bearer ${key}`]
  const response = await send(agent, installation.operatorUrl, `/admin/v1${path}`, { method, headers, body })
  return { status: response.status, code: response.headers['x-error-code'], body: response.body as Json }
}

/** A response of HAProxy's operator's side to a request by this host name, with the head. */
function askAs(host: string, path: string): Promise<string> {
  const lines = [`GET ${path} HTTP/1.1`, `Host: ${host}`, `Authorization: Bearer ${key}`, 'Connection: close', '', '']
  return sendBytes(installation.operatorUrl, lines.join('\r\n'))
}

test('organizations and projects are found on their shards', { skip }, async () => {
  for (const name of NAMES) {
    assert.equal((await ask(`/organizations/${name}-shop`)).body.id, `${name}-shop`)
    assert.equal((await ask(`/projects/${name}-shop-app`)).body.organization_id, `${name}-shop`)
    const { body } = await ask(`/projects/${name}-shop-app/profiles/user-1`)
    assert.equal(body.profile.id, 'user-1')
  }
  const { status, code } = await ask('/projects/nowhere')
  assert.deepEqual([status, code], [404, 'object_not_found'])
})

test('a change is made on the shard of its organization, and a new project is found', { skip }, async () => {
  await ok(ask('/organizations/b-shop/projects', { method: 'POST', body: { id: 'b-second' } }))
  await mapsLoaded(installation)
  assert.equal((await ask('/projects/b-second')).status, 200)
  const audit = await installation.shards.b.cluster.query(
    `select source from audit_log where action = 'project.created' and target = 'project b-second'`,
  )
  assert.deepEqual(audit, [{ source: '127.0.0.1' }])
})

test('the caller is the one that HAProxy names, whatever it says in Forwarded', { skip }, async () => {
  const from = ['X-Forwarded-For', '192.0.2.9', 'Forwarded', 'for=192.0.2.1']
  const given = { method: 'POST', headers: ['Authorization', `Bearer ${key}`, ...from], body: { id: 'a-named' } }
  await ok(send(agent, installation.operatorUrl, '/admin/v1/organizations/a-shop/projects', given))
  const audit = await installation.shards.a.cluster.query(
    `select source from audit_log where action = 'project.created' and target = 'project a-named'`,
  )
  assert.deepEqual(audit, [{ source: '192.0.2.9' }])
})

test('headers up to MAX_HEADER_BYTES, and the refusal of larger ones by Tundish', { skip }, async () => {
  const withHeader = (length: number) => {
    const headers = ['Authorization', `Bearer ${key}`, 'X-Long', 'x'.repeat(length)]
    return send(agent, installation.operatorUrl, '/admin/v1/organizations/a-shop', { headers })
  }
  assert.equal((await withHeader(15_800)).status, 200)
  const { status, headers } = await withHeader(17_000)
  assert.deepEqual([status, headers['x-error-code']], [431, 'headers_too_large'])
})

test('421 for what concerns all shards; by the name of a shard it is asked of this one', { skip }, async () => {
  const { status, code } = await ask('/organizations')
  assert.deepEqual([status, code], [421, 'concerns_all_shards'])
  for (const name of NAMES) {
    const list = await askAs(`${name}.localhost`, '/admin/v1/organizations')
    assert.deepEqual(
      [...list.matchAll(/"id":"([a-z]+-shop)"/g)].map(([, id]) => id),
      [`${name}-shop`],
    )
  }
})

test('the dashboard is that of the shard in the host name; without one all are shown', { skip }, async () => {
  assert.match(await askAs('127.0.0.1', '/'), /^HTTP\/1\.1 200 .*<h1>Shards<\/h1>/s)
  assert.match(await askAs('c.localhost', '/'), /^HTTP\/1\.1 303 .*^location: \/sign-in\r$/ms)
})

test('503 for an organization and its projects while it moves', { skip }, async () => {
  const { cluster } = installation.shards.c
  await cluster.query(`insert into instance (name, value) values ('move c-shop', '{"to": "a", "keys": {}}')`)
  await mapsLoaded(installation)
  for (const path of ['/organizations/c-shop', '/projects/c-shop-app', '/projects/c-shop-app/state']) {
    const { status, code } = await ask(path)
    assert.deepEqual([status, code], [503, 'database_unavailable'])
  }
  assert.equal((await ask('/organizations/a-shop')).status, 200)
  await cluster.query(`delete from instance where name = 'move c-shop'`)
  await mapsLoaded(installation)
  assert.equal((await ask('/projects/c-shop-app')).status, 200)
})

test('the operator’s side is not on the public address, nor the public one on the operator’s', { skip }, async () => {
  const headers = ['Authorization', `Bearer ${key}`]
  const { status } = await send(agent, installation.url, '/admin/v1/organizations/a-shop', { headers })
  assert.notEqual(status, 200)
  const other = await send(agent, installation.operatorUrl, '/public/v1/products', {})
  assert.equal(other.status, 404)
})

test('503 for what is on a shard that HAProxy does not know yet, never another shard', { skip }, async () => {
  const { maps, url } = installation
  const socket = join(maps, '../haproxy.sock')
  const places = readMaps(maps)
  const elsewhere = (map: Map<string, string>) => new Map([...map.keys()].map((id) => [id, 'later']))
  const { organizations, projects, keys } = places
  const unknown = { organizations: elsewhere(organizations), projects: elsewhere(projects), keys: elsewhere(keys) }
  await loadMaps(socket, maps, unknown)
  try {
    // Without its rule any of the three would be asked in turn.
    for (let n = 0; n < 3; n++) {
      assert.equal((await ask('/projects/c-shop-app')).status, 503)
      assert.equal((await fetch(`${url}/c-shop/v1/my_assets`, { method: 'POST' })).status, 503)
    }
    assert.equal((await fetch(`${url}/nobody/v1/my_assets`, { method: 'POST' })).status, 401)
  } finally {
    await loadMaps(socket, maps, places)
  }
  assert.equal((await ask('/projects/c-shop-app')).status, 200)
})
