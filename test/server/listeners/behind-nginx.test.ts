// The proxy of the guide: nginx passes on what Tundish accepts, and leaves refusals to it.
import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, test } from 'node:test'
import { freePort } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startTestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'

const has = (program: string) => spawnSync('sh', ['-c', `command -v ${program}`]).status === 0
const missing = ['nginx', 'openssl'].filter((program) => !has(program))
const skipped = missing.length > 0 ? `${missing.join(' and ')} is not installed` : undefined

/** The server block of docs/operating.md, for this server and a certificate of our own. Without `http2 on`, which Debian 12 does not know. */
function configOf(folder: string, port: number, server: string): string {
  const guide = readFileSync(join(import.meta.dirname, '../../../docs/operating.md'), 'utf8')
  const example = /```nginx\n(.*?)```/s.exec(guide)![1]!
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (one) => `${one}_temp_path ${folder}/${one};`,
  )
  const ours = example
    .replace('127.0.0.1:8080', new URL(server).host)
    .replace('listen 443 ssl;', `listen 127.0.0.1:${port} ssl;`)
    .replace(/http2 on;.*/, '')
    .replaceAll('/etc/ssl/', `${folder}/`)
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
  const port = await freePort()
  const key = join(folder, 'api.example.com.key')
  const certificate = ['-keyout', key, '-out', join(folder, 'api.example.com.pem'), '-subj', '/CN=api.example.com']
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...certificate], { stdio: 'ignore' })
  const config = join(folder, 'nginx.conf')
  writeFileSync(config, configOf(folder, port, server.url))
  const nginx = spawn('nginx', ['-e', join(folder, 'error.log'), '-c', config], {
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  after(async () => {
    nginx.kill()
    await server.stop()
  })

  async function ask(path: string, body?: string) {
    const headers = { 'Service-Secret': project.key, ...(body && { 'content-type': 'application/json' }) }
    const options = { port, path, headers, method: body ? 'POST' : 'GET', rejectUnauthorized: false, agent: false }
    const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>()
    request(options, async (response) => resolve({ status: response.statusCode!, body: await text(response) }))
      .on('error', reject)
      .end(body)
    return promise
  }
  await until('nginx serves', () =>
    ask('/health/ready').then(
      ({ status }) => status === 200,
      () => false,
    ),
  )

  test('200 with the name of the secret header as it was sent', async () => {
    assert.equal((await ask('/public/v1/profiles')).status, 200)
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
})
