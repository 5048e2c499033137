// The proxy of the guide: nginx passes on what Tundish accepts, and leaves refusals to it.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:http2'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { freePort } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startTestServer, times } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'

const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0
const missing = ['nginx', 'openssl'].filter((program) => !has(program))
const skipped = missing.length > 0 ? `${missing.join(' and ')} is not installed` : undefined

interface Response {
  status: number
  headers: IncomingHttpHeaders
  body: string
}

interface Ports {
  api: number
  dashboard: number
}

/** The server blocks of docs/operating.md, for this server and a certificate of our own. */
function configOf(folder: string, ports: Ports, { url, adminUrl }: { url: string; adminUrl: string }): string {
  const guide = readFileSync(join(import.meta.dirname, '../../../docs/operating.md'), 'utf8')
  const examples = [...guide.matchAll(/```nginx\n(.*?)```/gs)].map(([, example]) => example!)
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (one) => `${one}_temp_path ${folder}/${one};`,
  )
  const ours = examples
    .join('\n')
    .replace('127.0.0.1:8080', new URL(url).host)
    .replace('127.0.0.1:8081', new URL(adminUrl).host)
    // As Debian 12 writes it.
    .replace('listen 443 ssl;', `listen 127.0.0.1:${ports.api} ssl http2;`)
    .replace(/http2 on;.*/, '')
    .replace('listen 10.0.0.5:443 ssl;', `listen 127.0.0.1:${ports.dashboard} ssl;`)
    .replaceAll(/\/etc\/ssl\/(api\.example\.com|tundish\.internal)/g, `${folder}/api.example.com`)
  return `daemon off; pid ${folder}/pid; error_log ${folder}/error.log;
${process.getuid!() === 0 ? 'user root;' : ''}
events {}
http { ${temporary.join(' ')}
${ours} }
`
}

describe(titled('behind nginx, as the guide says', skipped), { skip: skipped !== undefined }, async () => {
  if (skipped) return
  const server = await startTestServer({ TRUST_PROXY: '127.0.0.1' })
  const project = await server.project()
  const folder = temporaryFolder()
  const ports = { api: await freePort(), dashboard: await freePort() }
  const key = join(folder, 'api.example.com.key')
  const certificate = ['-keyout', key, '-out', join(folder, 'api.example.com.pem'), '-subj', '/CN=api.example.com']
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...certificate], { stdio: 'ignore' })
  const config = join(folder, 'nginx.conf')
  writeFileSync(config, configOf(folder, ports, server))
  const nginx = spawn('nginx', ['-e', join(folder, 'error.log'), '-c', config], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  after(async () => {
    nginx.kill()
    await server.stop()
  })

  async function send(port: number, path: string, headers: Record<string, string>, body?: string) {
    const options = { port, path, headers, method: body ? 'POST' : 'GET', rejectUnauthorized: false, agent: false }
    const { promise, resolve, reject } = Promise.withResolvers<Response>()
    request(options, async (response) =>
      resolve({ status: response.statusCode!, headers: response.headers, body: await text(response) }),
    )
      .on('error', reject)
      .end(body)
    return promise
  }
  const ask = (path: string, body?: string) =>
    send(ports.api, path, { 'Service-Secret': project.key, ...(body && { 'content-type': 'application/json' }) }, body)
  await until('nginx serves', () =>
    ask('/health/ready').then(
      ({ status }) => status === 200,
      () => false,
    ),
  )

  test('200 with the name of the secret header as it was sent', async () => {
    assert.equal((await ask('/public/v1/profiles')).status, 200)
  })

  test('200 over HTTP/2, which sends the name of the secret header in lower case', async () => {
    const session = connect(`https://127.0.0.1:${ports.api}`, { rejectUnauthorized: false })
    const stream = session.request({ ':path': '/public/v1/profiles', 'service-secret': project.key })
    const [{ ':status': status }] = await once(stream, 'response')
    stream.resume()
    await once(stream, 'close')
    session.close()
    assert.equal(status, 200)
  })

  test('413 and 414 in the words of the API', async () => {
    const { status, body } = await ask('/public/v1/records', 'x'.repeat(1_200_000))
    assert.deepEqual([status, JSON.parse(body).message], [413, 'The body is larger than 1 MiB.'])
    const long = await ask(`/public/v1/profiles?x=${'x'.repeat(13_000)}`)
    assert.deepEqual([long.status, JSON.parse(long.body).message], [414, 'The URL is longer than 12288 bytes.'])
    assert.equal((await ask(`/public/v1/profiles?x=${'x'.repeat(12_000)}`)).status, 400)
  })

  test('404 for what the operator’s listener serves', async () => {
    assert.equal((await ask('/metrics')).status, 404)
  })

  describe('the dashboard', () => {
    const host = `127.0.0.1:${ports.dashboard}`
    const operator = server.db.tx((query) => createOperator(query, { name: 'test', scope: 'write' }))

    test('accepts the form of its sign-in, and gives a cookie for TLS only', async () => {
      const headers = { host, origin: `https://${host}`, 'content-type': 'application/x-www-form-urlencoded' }
      const form = new URLSearchParams({ operator_key: (await operator).key }).toString()
      const response = await send(ports.dashboard, '/sign-in', headers, form)
      assert.equal(response.status, 303, response.body)
      assert.match(response.headers['set-cookie']![0]!, /; Secure$/)
    })

    test('passes on an import of several megabytes', async () => {
      const headers = { host, authorization: `Bearer ${(await operator).key}`, 'content-type': 'application/x-ndjson' }
      const created_at = '2026-01-01T00:00:00Z'
      const email = (n: number) => `${'x'.repeat(50)}${n}@example.com`
      const lines = times(15_000, (n) =>
        JSON.stringify({ record: 'profile', data: { id: `pro_${n}`, email: email(n), created_at } }),
      ).join('\n')
      assert.ok(lines.length > 2 * 1024 * 1024)
      const response = await send(
        ports.dashboard,
        `/admin/v1/projects/${project.id}/import?dry_run=true`,
        headers,
        lines,
      )
      assert.equal(response.status, 200, response.body)
    })
  })
})
