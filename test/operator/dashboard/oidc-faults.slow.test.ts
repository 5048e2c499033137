// Signing in with OpenID Connect on bad days: several tabs, long addresses, a provider that is slow, refuses this installation or
// leaves out claims, and proxies.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { get, type IncomingMessage, type ServerResponse } from 'node:http'
import { after, afterEach, before, test } from 'node:test'
import { readConfig } from '../../../src/config.ts'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { openIdentityProvider } from '../../../src/operator/dashboard/identity-provider.ts'
import { tundish } from '../../support/cli.ts'
import { startTestServer, type TestServer } from '../../support/server.ts'
import { CLIENT, openProvider } from './identity-provider.ts'
import { openVisitor } from './oidc-visitor.ts'

const CALLBACK = '/sign-in/oidc/callback'
let provider: Awaited<ReturnType<typeof openProvider>>
let server: TestServer
let byEmail: TestServer

before(async () => {
  provider = await openProvider()
  server = await startTestServer(
    { OIDC_ISSUER: provider.issuer, ...CLIENT, OIDC_ROLES: '{"admins": "owner"}' },
    { worker: false },
  )
  const byAddress = { OIDC_CLAIM: 'email', OIDC_ROLES: '{"Ada@Example.com": "owner"}', PORT: '0', ADMIN_PORT: '0' }
  byEmail = await startTestServer({ ...server.env, ...byAddress }, { worker: false })
  const { host } = new URL(server.adminUrl)
  await provider.serve([
    `${server.adminUrl}${CALLBACK}`,
    `https://${host}${CALLBACK}`,
    `${byEmail.adminUrl}${CALLBACK}`,
  ])
  provider.accounts.set('ada', { name: 'Ada Lovelace', groups: ['admins'] })
})
afterEach(() => {
  provider.state.takenOver = undefined
})
after(async () => {
  await byEmail?.stop()
  await server?.stop()
  await provider?.close()
})

const age = (minutes: number) =>
  server.db.query('update people_sessions set checked_at = db_clock() - make_interval(mins => $1)', [minutes])

/** A visitor who has signed in. */
async function signedIn(login = 'ada', origin = server.adminUrl) {
  const visitor = openVisitor()
  const shown = await visitor.submit(await visitor.begin(origin), login)
  assert.match(shown.body, /Signed in as/)
  const page = async (at = origin) => {
    const { status, body } = await visitor.go(`${at}/projects`)
    // The page of the sign-in is 200 as well.
    assert.ok(status !== 200 || /Signed in as/.test(body), 'signed out')
    return { status, body }
  }
  return { ...visitor, page }
}

async function openVisitorAt(login: string) {
  const visitor = openVisitor()
  return visitor.submit(await visitor.begin(server.adminUrl), login)
}

const sessionCount = async () => Number((await server.db.query('select count(*) as n from people_sessions'))[0]!.n)

/** Visits an address at the process that listens at `origin`, which may be another one behind the same host. */
function visitAt(origin: string, url: URL, cookie: string): Promise<{ status: number; session: string | undefined }> {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; session: string | undefined }>()
  const headers = { host: url.host, cookie, accept: 'text/html' }
  const request = get(`${origin}${url.pathname}${url.search}`, { headers }, (response) => {
    const set = response.headers['set-cookie'] ?? []
    const session = set.map((line) => line.split(';')[0]!).find((pair) => pair.startsWith('tundish_session='))
    response.resume().on('end', () => resolve({ status: response.statusCode!, session }))
  })
  request.on('error', reject)
  return promise
}

/** Counts the requests for tokens, which the provider serves as ever. */
function countTokenRequests(): { taken: number } {
  const seen = { taken: 0 }
  provider.state.takenOver = ({ url }) => {
    if (url?.split('?')[0] === '/token') seen.taken += 1
    return false
  }
  return seen
}

/** Requests to this path of the provider get this response, without one none at all. */
function takeOver(path: string, status?: number, body: object = {}): { taken: number } {
  const seen = { taken: 0 }
  provider.state.takenOver = (request: IncomingMessage, response: ServerResponse) => {
    if (request.url?.split('?')[0] !== path) return false
    seen.taken += 1
    if (status !== undefined)
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
    return true
  }
  return seen
}

test('two tabs that sign in at once are both signed in, in any order', async () => {
  for (const order of [
    [0, 1],
    [1, 0],
  ] as const) {
    const visitor = openVisitor()
    const paths = ['/keys', '/projects']
    const tabs = [await visitor.begin(server.adminUrl, paths[0]), await visitor.begin(server.adminUrl, paths[1])]
    for (const tab of order) {
      const shown = await visitor.submit(tabs[tab]!, 'ada')
      assert.deepEqual([shown.status, shown.url.pathname], [200, paths[tab]], shown.body)
    }
  }
})

test('a sign-in whose form expired because of another tab begins again, and leads to its page', async () => {
  const visitor = openVisitor()
  const { url } = await visitor.submit(await visitor.begin(server.adminUrl, '/projects'), 'ada', CALLBACK)
  url.searchParams.delete('code')
  url.searchParams.set('error', 'temporarily_unavailable')
  const unavailable = await visitor.go(url)
  assert.deepEqual([unavailable.status, /cannot be reached/.test(unavailable.body)], [503, true])
  const next = await visitor.submit(await visitor.begin(server.adminUrl, '/projects'), 'ada', CALLBACK)
  next.url.searchParams.delete('code')
  next.url.searchParams.set('error', 'temporarily_unavailable')
  next.url.searchParams.set('error_description', 'authentication_expired')
  const shown = await visitor.submit(await visitor.go(next.url), 'ada')
  assert.deepEqual([shown.url.pathname, /Signed in as/.test(shown.body)], ['/projects', true], shown.body)
  // It was used up: the provider's response begins no sign-in twice.
  assert.equal((await visitor.go(next.url)).status, 400)
})

test('a way back that is visited again says so, and leads into the dashboard', async () => {
  const visitor = openVisitor()
  const wayBack = await visitor.submit(await visitor.begin(server.adminUrl), 'ada', CALLBACK)
  assert.match((await visitor.go(wayBack.url)).body, /Signed in as/)
  const again = await visitor.go(wayBack.url)
  assert.deepEqual([again.status, /href="\/">Open the dashboard/.test(again.body)], [400, true])
  assert.match(again.body, /has ended before\. Sign in again\. If that does not help, let your browser keep cookies/)
})

test('a way back that is visited several times at once, also at another process, signs in once and for all', async () => {
  const other = await startTestServer({ ...server.env, PORT: '0', ADMIN_PORT: '0' }, { worker: false })
  try {
    const tokenRequests = countTokenRequests()
    const visitor = openVisitor()
    const { url } = await visitor.submit(await visitor.begin(server.adminUrl), 'ada', CALLBACK)
    const cookie = visitor.cookie(server.adminUrl, 'tundish_sign_in')
    const visits = [server, other, server, other].map(({ adminUrl }) => visitAt(adminUrl, url, cookie))
    const seen = await Promise.all(visits)
    assert.deepEqual(
      seen.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    assert.equal(new Set(seen.map(({ session }) => session)).size, 1)
    assert.equal(tokenRequests.taken, 1)
    // It is still a session when the provider is asked again.
    await age(6)
    const response = await fetch(`${server.adminUrl}/projects`, { headers: { cookie: seen[0]!.session! } })
    assert.match(await response.text(), /Signed in as/)
  } finally {
    await other.stop()
  }
})

test('a sign-in that the provider refuses at one of two visits at once begins no session', async () => {
  const seenTokens = takeOver('/token', 400, { error: 'invalid_grant' })
  const visitor = openVisitor()
  const { url } = await visitor.submit(await visitor.begin(server.adminUrl), 'ada', CALLBACK)
  const cookie = visitor.cookie(server.adminUrl, 'tundish_sign_in')
  const before = await sessionCount()
  const seen = await Promise.all([1, 2].map(() => visitAt(server.adminUrl, url, cookie)))
  for (const { status, session } of seen) assert.deepEqual([status >= 400, session], [true, undefined])
  assert.ok(seenTokens.taken >= 1)
  assert.equal(await sessionCount(), before)
})

test('a key that the provider has replaced a moment after it was read is looked up by the sign-ins and sessions with the next one', async () => {
  const { page } = await signedIn()
  const { privateKey: key } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  Object.assign(provider.state, { key, kid: 'the next one' })
  const { e, n } = key.export({ format: 'jwk' })
  const seen = takeOver('/jwks', 200, { keys: [{ kty: 'RSA', e, n, kid: 'the next one', alg: 'RS256', use: 'sig' }] })
  try {
    await signedIn()
    await age(60)
    await page()
    assert.equal(seen.taken, 1)
  } finally {
    Object.assign(provider.state, { key: undefined, kid: undefined })
  }
})

test('consent is asked for with offline_access alone, and OIDC_PROMPT replaces it', async () => {
  const promptOf = async (more: Record<string, string>) => {
    const one = await startTestServer({ ...server.env, ...more, PORT: '0', ADMIN_PORT: '0' }, { worker: false })
    try {
      const { headers } = await fetch(`${one.adminUrl}/sign-in/oidc`, { redirect: 'manual' })
      return new URL(headers.get('location')!).searchParams.get('prompt')
    } finally {
      await one.stop()
    }
  }
  assert.equal(await promptOf({}), 'consent')
  assert.equal(await promptOf({ OIDC_SCOPE: 'openid profile' }), null)
  assert.equal(await promptOf({ OIDC_PROMPT: 'select_account' }), 'select_account')
  assert.equal(await promptOf({ OIDC_PROMPT: 'login consent' }), 'login consent')
})

test('after a sign-in to a page with a long address, that page without its query', async () => {
  for (const [length, search] of [
    [1500, `?word=${'x'.repeat(1500)}`],
    [3500, ''],
  ] as const) {
    const visitor = openVisitor()
    const shown = await visitor.submit(
      await visitor.begin(server.adminUrl, `/projects?word=${'x'.repeat(length)}`),
      'ada',
    )
    assert.deepEqual([shown.status, shown.url.pathname, shown.url.search], [200, '/projects', search])
  }
})

test('a client secret that was changed there ends no session, and opens it again when it is known', async () => {
  const visitor = await signedIn()
  const stale = await startTestServer(
    { ...server.env, OIDC_CLIENT_SECRET: 'of yesterday', PORT: '0', ADMIN_PORT: '0' },
    { worker: false },
  )
  try {
    visitor.share(server.adminUrl, stale.adminUrl)
    await age(10)
    assert.equal((await visitor.page(stale.adminUrl)).status, 200)
    await age(15)
    const refused = await visitor.page(stale.adminUrl)
    assert.equal(refused.status, 503)
    assert.match(refused.body, /identity provider refuses this installation; the log has the reason/)
    assert.match(
      stale.logLines().join('\n'),
      /client secret\.[^\n]*check OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET/,
    )
  } finally {
    await stale.stop()
  }
  for (const [status, error] of [
    [400, 'invalid_client'],
    [401, 'unauthorized_client'],
    [401, 'access_denied'],
  ] as const) {
    takeOver('/token', status, { error })
    assert.equal((await visitor.page()).status, 503, error)
  }
  provider.state.takenOver = undefined
  assert.equal((await visitor.page()).status, 200)
})

test('a form whose session cannot be confirmed does nothing, and its page says so', async () => {
  const visitor = await signedIn()
  takeOver('/token', 503, { error: 'server_error' })
  await age(15)
  const shown = await visitor.go(`${server.adminUrl}/projects/organizations`, { id: 'not-made' })
  assert.equal(shown.status, 503)
  assert.match(shown.body, /Nothing was done\..*Back to the form/)
  assert.doesNotMatch(shown.body, /may have been made/)
})

test('a browser that keeps no cookies is told so after the sign-in with a key', async () => {
  const { key } = await createOperator(server.db.query, { name: 'Ada', role: 'owner' })
  const form = openVisitor({}, { keepsCookies: false })
  const shown = await form.go(`${server.adminUrl}/sign-in`, { operator_key: key, to: '/projects' })
  assert.deepEqual([shown.status, shown.url.pathname, shown.url.searchParams.get('to')], [200, '/sign-in', '/projects'])
  assert.match(shown.body, /your browser did not keep the cookie of the session/)
  const first = await form.go(`${server.adminUrl}/projects`)
  assert.doesNotMatch(first.body, /did not keep the cookie/)
})

test('limits of requests and failures of the provider end no session', async () => {
  const visitor = await signedIn()
  for (const [status, error] of [
    [429, 'too_many_requests'],
    [400, 'temporarily_unavailable'],
    [503, 'server_error'],
  ] as const) {
    takeOver('/token', status, { error })
    await age(15)
    assert.equal((await visitor.page()).status, 503)
  }
  provider.state.takenOver = undefined
  assert.equal((await visitor.page()).status, 200)
})

test('a response that is cut off, or a page of a proxy, is a provider that cannot be reached', async () => {
  const responses: ((response: ServerResponse) => void)[] = [
    (response) => response.writeHead(200, { 'content-type': 'application/json', 'content-length': '99' }).write('{"a'),
    (response) => response.writeHead(200, { 'content-type': 'text/html' }).write('<html>'),
  ]
  for (const begin of responses) {
    const visitor = await signedIn()
    provider.state.takenOver = ({ url }, response) => {
      if (url !== '/token') return false
      begin(response)
      setTimeout(() => response.destroy(), 50)
      return true
    }
    const shown = await openVisitorAt('ada')
    assert.deepEqual([shown.status, /cannot be reached\. Try again/.test(shown.body)], [503, true], shown.body)
    await age(15)
    assert.match((await visitor.page()).body, /identity provider cannot be reached/)
    provider.state.takenOver = undefined
    assert.equal((await visitor.page()).status, 200)
  }
})

test('a confirmation that fails after the refresh token was used continues with the new one', async () => {
  const visitor = await signedIn()
  takeOver('/me', 503)
  await age(15)
  assert.equal((await visitor.page()).status, 503)
  provider.state.takenOver = undefined
  assert.equal((await visitor.page()).status, 200)
})

test('pages do not wait one after another for a provider that does not respond', async () => {
  const account = { name: 'Ada', email: 'ada@example.com', email_verified: true }
  provider.accounts.set('waiting', account)
  // Whose provider has not failed before.
  const visitor = await signedIn('waiting', byEmail.adminUrl)
  const seen = takeOver('/token')
  await age(6)
  for (let page = 0; page < 3; page += 1) assert.equal((await visitor.page()).status, 200)
  assert.equal(seen.taken, 1)
})

test('an address gives its role in whatever case the provider writes it; no other letters do', async () => {
  const account = { name: 'Ada', email_verified: true }
  provider.accounts.set('upper', { ...account, email: 'ADA@EXAMPLE.COM' })
  await signedIn('upper', byEmail.adminUrl)
  // The sign of the kelvin in lower case is a k.
  provider.accounts.set('other', { ...account, email: 'ada@example.co\u212a' })
  const visitor = openVisitor()
  assert.equal((await visitor.submit(await visitor.begin(byEmail.adminUrl), 'other')).status, 403)
})

test('without the claim: a page that names it, and the log has what was sent', async () => {
  provider.accounts.set('bare', { name: 'Grace' })
  for (const [origin, claim] of [
    [server.adminUrl, 'groups'],
    [byEmail.adminUrl, 'email'],
  ] as const) {
    const visitor = openVisitor()
    const shown = await visitor.submit(await visitor.begin(origin), 'bare')
    assert.equal(shown.status, 403)
    assert.match(
      shown.body,
      new RegExp(`Grace, 127[^ ]+ did not send the claim &quot;${claim}&quot;, so it gives you no role`),
    )
  }
  assert.match(server.logLines().join('\n'), /"why":"no claim","detail":"Grace","sent":\[[^\]]*"name"[^\]]*"sub"\]/)
})

test('without a role: the log has the groups as they were sent', async () => {
  const groups = ['/admins', { name: 'admins' }, 'a'.repeat(200)] as string[]
  provider.accounts.set('path', { name: 'Alan', groups })
  const shown = await openVisitorAt('path')
  assert.equal(shown.status, 403)
  const line = server.logLines().findLast((one) => one.includes('"why":"no role"'))
  const { detail, sent } = JSON.parse(line!)
  assert.deepEqual([detail, sent.slice(0, 2), sent[2].length], ['Alan', ['/admins', '{"name":"admins"}'], 100])
})

test('the log has the reason of a response that is not what the standard says, and no page fails', async () => {
  const reason = () => JSON.parse(server.logLines().findLast((line) => line.includes('"why":"refused"'))!).detail
  takeOver('/token', 400, { error: 'invalid_grant', error_description: ['The code has expired.'] })
  assert.equal((await openVisitorAt('ada')).status, 403)
  assert.equal(reason(), `${provider.issuer} answers "invalid_grant": ["The code has expired."]`)
  takeOver('/token', 400, { error: 'invalid_grant', error_description: 'Срок действия кода истёк.' })
  assert.equal((await openVisitorAt('ada')).status, 403)
  assert.equal(reason(), `${provider.issuer} answers "invalid_grant": Срок действия кода истёк.`)
  takeOver('/token', 400, { error: 'invalid_grant', error_description: [] })
  assert.equal((await openVisitorAt('ada')).status, 403)
  assert.equal(reason(), `${provider.issuer} answers "invalid_grant".`)
  provider.state.takenOver = undefined
  provider.state.fault = ({ nonce: _, ...claims }) => claims
  assert.equal((await openVisitorAt('ada')).status, 403)
  provider.state.fault = undefined
  assert.equal(reason(), 'JWT "nonce" (nonce) claim missing')
  const { oidc } = readConfig(server.env)
  takeOver('/.well-known/openid-configuration', 200, { issuer: provider.issuer })
  assert.deepEqual(await openIdentityProvider(oidc!, { monotonicMs: () => 0 }).begin(`${server.adminUrl}${CALLBACK}`), {
    why: 'refused',
    detail: 'authorization server metadata does not contain a valid "as.authorization_endpoint"',
    ofInstallation: true,
  })
})

test('the log has the reason of the provider, and of a session that will be short', async () => {
  const reason = 'AADSTS7000222: The provided client secret keys are expired.\r\nTrace ID: 1'
  takeOver('/token', 400, { error: 'invalid_request', error_description: reason })
  assert.equal((await openVisitorAt('ada')).status, 403)
  assert.match(
    server.logLines().join('\n'),
    /answers \\"invalid_request\\": AADSTS7000222: The provided client secret keys are expired\. Trace ID: 1"/,
  )
  provider.state.takenOver = undefined
  const warned = () => server.logLines().filter((line) => line.includes('gave no refresh token')).length
  assert.match((await openVisitorAt('ada')).body, /Signed in as/)
  assert.equal(warned(), 0)
  provider.state.withoutRefresh = true
  const visitor = await signedIn()
  provider.state.withoutRefresh = undefined
  assert.equal(warned(), 1)
  await age(6)
  assert.equal((await visitor.page()).status, 200)
})

test('behind two proxies the way back has the scheme that the browser used', async () => {
  for (const proto of ['https, http', 'https,https', 'HTTPS']) {
    const response = await fetch(`${server.adminUrl}/sign-in/oidc`, {
      headers: { 'x-forwarded-proto': proto },
      redirect: 'manual',
    })
    const back = new URL(new URL(response.headers.get('location')!).searchParams.get('redirect_uri')!)
    assert.deepEqual([proto, back.protocol], [proto, 'https:'])
    assert.match(response.headers.get('set-cookie')!, /; Secure$/)
  }
})

test('a provider that does not decode the client id and the secret knows them, as Google does not', async () => {
  const client = { OIDC_CLIENT_ID: '42-ab_c.apps.example.com', OIDC_CLIENT_SECRET: "GOCSPX-a_b.c~d!e*f'(/=:" }
  const expected = Buffer.from(Object.values(client).join(':')).toString('base64')
  provider.state.takenOver = ({ url, headers }, response) => {
    if (url !== '/token') return false
    const isKnown = headers.authorization === `Basic ${expected}`
    response.writeHead(isKnown ? 400 : 401, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ error: isKnown ? 'invalid_grant' : 'invalid_client' }))
    return true
  }
  const { stdout } = await tundish(['doctor'], { ...server.env, ...client })
  assert.match(stdout, /127[^ ]+ accepts this installation/)
})

test('the doctor finds a provider that does not know this installation, is another one, or is away', async () => {
  const finding = async (env: Record<string, string> = {}) => {
    const { stdout } = await tundish(['doctor', '--json'], { ...server.env, ...env })
    const { findings } = JSON.parse(stdout) as { findings: { check: string; level: string; message: string }[] }
    const [{ level, message }] = findings.filter(({ check }) => check === 'sign-in') as [(typeof findings)[0]]
    return `${level}: ${message}`
  }
  assert.match(await finding(), /^ok: 127\.0\.0\.1:\d+ accepts this installation\.$/)
  assert.match(
    await finding({ OIDC_CLIENT_SECRET: 'of yesterday' }),
    /^failed: .* does not accept this installation as its client "tundish"\. People cannot sign in/,
  )
  takeOver('/token', 401, { error: 'unauthorized_client' })
  assert.match(await finding(), /^failed: .* does not accept this installation as its client/)
  takeOver('/token', 400, { error: 'unauthorized_client' })
  assert.match(await finding(), /^warning: .* gives this installation no refresh tokens/)
  provider.state.takenOver = undefined
  assert.match(
    await finding({ OIDC_ISSUER: provider.issuer.replace('127.0.0.1', 'localhost') }),
    /^failed: The discovery document at http:\/\/localhost:\d+ names another issuer/,
  )
  assert.match(await finding({ OIDC_ISSUER: 'http://127.0.0.1:9' }), /^warning: 127\.0\.0\.1:9 cannot be used \(/)
})
