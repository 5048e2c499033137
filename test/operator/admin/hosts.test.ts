// The operator's listener serves its own names only: a page in a browser cannot reach it by rebinding its own name.
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { after, test } from 'node:test'
import { ok, send, sendBytes, startTestServer } from '../../support/server.ts'

const agent = new Agent()
const server = await startTestServer({ ADMIN_HOST_NAMES: 'tundish.internal, Admin.Example.com' })
after(() => server.stop())

/** A request as a client would send it that reached the listener by this name. */
async function asked(host: string, path = '/metrics') {
  const { hostname, port } = new URL(server.adminUrl)
  const request = [`GET ${path} HTTP/1.1`, `Host: ${host}`, 'Connection: close', '', ''].join('\r\n')

  const response = await sendBytes(`http://${hostname}:${port}`, request)
  return { status: Number(/^HTTP\/1\.1 ([0-9]+)/.exec(response)?.[1]), response }
}

for (const host of [
  '127.0.0.1',
  '127.0.0.1:8081',
  '[::1]:8081',
  '192.0.2.7:1',
  'localhost',
  'LOCALHOST:8081',
  'me.localhost',
  'tundish.internal:8081',
  'admin.example.com',
  'admin.example.com.',
]) {
  test(`200 for ${host}`, async () => {
    assert.equal((await asked(host)).status, 200)
  })
}

for (const host of [
  'evil.example',
  'evil.example:8081',
  '127.0.0.1.evil.example',
  'localhost.evil.example',
  '',
  'notlocalhost',
  '1.2.3.4.5',
  'tundish.internal.evil.example',
]) {
  test(`421 for ${host || 'an empty name'}, before any key is looked at, on every page`, async () => {
    for (const path of ['/metrics', '/docs', '/openapi.json', '/admin/v1/organizations', '/nothing']) {
      const { status, response } = await asked(host, path)
      assert.equal(status, 421, path)
      assert.match(response, /x-error-code: host_not_allowed\r\n/)
      assert.match(response, /ADMIN_HOST_NAMES/)
    }
  })
}

test('the public listener accepts any name: its key protects it, and it has many', async () => {
  await ok(send(agent, server.url, '/health/live', {}))
})
