// The proxy of the guide: Caddy restores the case of the secret header, overwrites claimed addresses, and leaves refusals to Tundish.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { connect as connectTls } from 'node:tls'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { freePort } from '../../support/cli.ts'
import { insert } from '../../support/data.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startTestServer, times } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'

const skipped = spawnSync('caddy', ['version']).status === 0 ? undefined : 'caddy is not installed'

// Another address than that of the proxy, which is trusted.
const CALLER = '127.0.0.2'

/** The example of docs/operating.md for a server at `url`, on a port of this machine, with a certificate that Caddy makes. */
function siteOf(port: number, url: string): string {
  const guide = readFileSync(join(import.meta.dirname, '../../../docs/operating.md'), 'utf8')
  const [, example] = /```caddyfile\n(.*?)```/s.exec(guide)!
  return example!
    .replace('api.example.com {', `https://localhost:${port} {\nbind 127.0.0.1\ntls internal\n`)
    .replace('127.0.0.1:8080', new URL(url).host)
}

async function send(port: number, path: string, headers: Record<string, string>, body?: string) {
  const from = { host: '127.0.0.1', port, localAddress: CALLER, servername: 'localhost', ALPNProtocols: ['h2'] }
  const createConnection = () => connectTls({ ...from, rejectUnauthorized: false })
  const session = connect(`https://localhost:${port}`, { createConnection })
  try {
    const stream = session.request({ ':path': path, ':method': body ? 'POST' : 'GET', ...headers })
    stream.end(body)
    const responding = Promise.race([
      once(stream, 'response'),
      once(session, 'error').then(([error]) => Promise.reject(error)),
    ])
    const [response] = (await responding) as [IncomingHttpHeaders & IncomingHttpStatusHeader]
    return { status: response[':status'], headers: response, body: await text(stream) }
  } finally {
    session.close()
  }
}

describe(titled('behind Caddy, as the guide says', skipped), { skip: skipped !== undefined }, async () => {
  if (skipped) return
  const server = await startTestServer({ TRUST_PROXY: '127.0.0.1' })
  const project = await server.project()
  const folder = temporaryFolder()
  const [api, dashboard] = [await freePort(), await freePort()]
  const config = join(folder, 'Caddyfile')
  const globals = `{\nadmin off\nauto_https disable_redirects\nskip_install_trust\nstorage file_system ${folder}/storage\n}\n`
  writeFileSync(config, `${globals}${siteOf(api, server.url)}${siteOf(dashboard, server.adminUrl)}`)
  const caddy = spawn('caddy', ['run', '--config', config, '--adapter', 'caddyfile'], {
    env: { ...process.env, HOME: folder },
    stdio: 'ignore',
  })
  after(async () => {
    caddy.kill()
    await server.stop()
  })
  const operator = await server.db.tx((query) => createOperator(query, { name: 'test', scope: 'write' }))
  const ask = (path: string, headers: Record<string, string> = {}, body?: string) =>
    send(api, path, { 'service-secret': project.key, ...headers }, body)
  await until('Caddy serves', () =>
    ask('/health/ready').then(
      ({ status }) => status === 200,
      () => false,
    ),
  )

  test('200 over HTTP/2, which sends the name of the secret header in lower case', async () => {
    assert.equal((await ask('/public/v1/profiles')).status, 200)
  })

  test('413 and 414 in the words of the API', async () => {
    const large = await ask('/public/v1/records', { 'content-type': 'application/json' }, 'x'.repeat(1_200_000))
    assert.deepEqual([large.status, JSON.parse(large.body).message], [413, 'The body is larger than 1 MiB.'])
    const long = await ask(`/public/v1/profiles?x=${'x'.repeat(13_000)}`)
    assert.deepEqual([long.status, JSON.parse(long.body).message], [414, 'The URL is longer than 12288 bytes.'])
  })

  test('the audit log has the address of the caller, not one that its headers claim', async () => {
    await insert(server.db, project, { profiles: [{ id: 'ada' }] })
    const claimed = { forwarded: 'for=192.0.2.1', 'x-forwarded-for': '192.0.2.1', 'content-type': 'application/json' }
    const { status } = await ask('/public/v1/profiles/anonymize', claimed, JSON.stringify({ profile_ids: ['ada'] }))
    const entries = await server.db.query("select source from audit_log where action = 'profiles.erased'")
    assert.deepEqual([status, entries], [200, [{ source: CALLER }]])
  })

  test('the dashboard accepts the form of its sign-in, and gives a cookie for TLS only', async () => {
    const headers = { origin: `https://localhost:${dashboard}`, 'content-type': 'application/x-www-form-urlencoded' }
    const form = new URLSearchParams({ operator_key: operator.key }).toString()
    const response = await send(dashboard, '/sign-in', headers, form)
    assert.equal(response.status, 303, response.body)
    assert.match(response.headers['set-cookie']![0]!, /; Secure$/)
  })

  test('the operator’s listener gets an import of several megabytes', async () => {
    const headers = { authorization: `Bearer ${operator.key}`, 'content-type': 'application/x-ndjson' }
    const line = { id: 'ada', email: `${'x'.repeat(50)}@example.com`, created_at: '2026-01-01T00:00:00Z' }
    const lines = times(20_000, () => JSON.stringify({ record: 'profile', data: line })).join('\n')
    assert.ok(lines.length > 2 * 1024 * 1024)
    const path = `/admin/v1/projects/${project.id}/import?dry_run=true`
    const response = await send(dashboard, path, headers, lines)
    assert.equal(response.status, 200, response.body)
  })
})
