// An identity provider whose certificate is of a private authority: what the doctor and the log say, and how it is trusted.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { makeCertificate } from '../../lib/pg/certificate.ts'
import { tundish } from '../../support/cli.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { startTestServer, type TestServer } from '../../support/server.ts'

const certificate = makeCertificate('localhost')
const folder = temporaryFolder()
const authority = join(folder, 'authority.pem')
let issuer: string
let server: TestServer

// As much of a provider as the doctor asks for.
const provider = createServer(certificate, ({ url }, response) => {
  const isToken = url === '/token'
  const document = { issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token` }
  response.writeHead(isToken ? 400 : 200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(isToken ? { error: 'invalid_grant' } : document))
})

before(async () => {
  writeFileSync(authority, certificate.cert)
  await once(provider.listen(0, 'localhost'), 'listening')
  issuer = `https://localhost:${(provider.address() as AddressInfo).port}`
  const client = { OIDC_CLIENT_ID: 'tundish', OIDC_CLIENT_SECRET: 'secret', OIDC_ROLES: '{"admins": "owner"}' }
  server = await startTestServer({ OIDC_ISSUER: issuer, ...client }, { worker: false })
})
after(async () => {
  await server?.stop()
  provider.closeAllConnections()
  provider.close()
})

/** The doctor's finding with these settings in addition, all of them in a file. */
async function finding(settings: Record<string, string> = {}) {
  const file = join(folder, 'tundish.env')
  const lines = Object.entries({ ...server.env, ...settings }).map(([name, value]) => `${name}='${value}'`)
  writeFileSync(file, lines.join('\n'))
  const { stdout, stderr } = await tundish(['--env-file', file, 'doctor', '--json'])
  const findings: { check: string; level: string; message: string }[] = JSON.parse(stdout).findings
  const { level, message } = findings.find(({ check }) => check === 'sign-in')!
  return { text: `${level}: ${message}`, stderr }
}

test('the doctor and the log say that the certificate is not trusted', async () => {
  assert.match((await finding()).text, /^warning: localhost:\d+ cannot be used \(self-signed certificate/)
  assert.equal((await fetch(`${server.adminUrl}/sign-in/oidc`)).status, 503)
  assert.match(
    server.logLines().join('\n'),
    /"why":"unreachable","detail":"https:\/\/localhost:\d+: self-signed certif/,
  )
})

test('NODE_EXTRA_CA_CERTS of --env-file is trusted, and a file that cannot be read is only a warning', async () => {
  const { text } = await finding({ NODE_EXTRA_CA_CERTS: authority })
  assert.match(text, /^ok: localhost:\d+ accepts this installation/)
  const missing = await finding({ NODE_EXTRA_CA_CERTS: '/nowhere' })
  assert.match(missing.text, /^warning: localhost:\d+ cannot be used \(self-signed/)
  assert.match(missing.stderr, /Warning: .*\/nowhere/)
})
