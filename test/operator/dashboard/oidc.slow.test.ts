// Signing in with OpenID Connect in a browser, at a provider on loopback: who gets in, who does not, and who is out again.
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { after, afterEach, before, describe, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import { openIdentityProvider } from '../../../src/operator/dashboard/identity-provider.ts'
import { noBrowser, type OpenBrowser, openBrowser } from '../../support/browser.ts'
import { startTestServer, type TestServer } from '../../support/server.ts'
import { titled } from '../../support/titled.ts'
import { CLIENT, openProvider } from './identity-provider.ts'

const CALLBACK = '/sign-in/oidc/callback'

describe(titled('signing in with OpenID Connect', noBrowser), { skip: noBrowser }, () => {
  let provider: Awaited<ReturnType<typeof openProvider>>
  let server: TestServer
  let other: TestServer
  let byEmail: TestServer
  let opened: OpenBrowser
  let project: string
  const roles = () => ({
    admins: 'owner',
    helpdesk: { role: 'support', projects: [project], refund_limits: ['50 USD'] },
    figures: 'analyst',
  })

  before(async () => {
    provider = await openProvider()
    // Its groups name a project, which the database has to have first.
    project = 'shop'
    const settings = { OIDC_ISSUER: provider.issuer, ...CLIENT, OIDC_ROLES: JSON.stringify(roles()) }
    server = await startTestServer(settings, { worker: false })
    other = await startTestServer({ ...server.env, PORT: '0', ADMIN_PORT: '0' }, { worker: false })
    await server.admin('/organizations', { method: 'POST', body: { id: 'acme' } })
    await server.admin('/organizations/acme/projects', { method: 'POST', body: { id: project } })
    await server.admin('/organizations', { method: 'POST', body: { id: 'others' } })
    await server.admin('/organizations/others/projects', { method: 'POST', body: { id: 'elsewhere' } })
    const byAddress = { OIDC_CLAIM: 'email', OIDC_ROLES: '{"admin@example.com": "owner"}', PORT: '0', ADMIN_PORT: '0' }
    byEmail = await startTestServer({ ...server.env, ...byAddress }, { worker: false })
    await provider.serve([`${server.adminUrl}${CALLBACK}`, `${byEmail.adminUrl}${CALLBACK}`])
    provider.accounts.set('ada', { name: 'Ada Lovelace', groups: ['staff', 'admins'] })
    provider.accounts.set('grace', { name: 'Grace Hopper', groups: ['helpdesk'] })
    provider.accounts.set('eve', { name: 'Eve <b>', groups: ['staff'] })
    opened = await openBrowser()
  })
  afterEach(() => opened?.leavePages())
  after(async () => {
    await opened?.close()
    await other?.stop()
    await byEmail?.stop()
    await server?.stop()
    await provider?.close()
  })

  /** A new browser profile. Contexts stay open: this browser ends when one is closed. */
  async function visitor(): Promise<{ context: BrowserContext; page: Page }> {
    const context = await opened.browser.newContext()
    return { context, page: await context.newPage() }
  }

  /** Signs in at the provider, up to where it sends the browser back. */
  async function atProvider(page: Page, login: string, to = '/', origin = server.adminUrl): Promise<void> {
    await page.goto(`${origin}${to}`)
    await page.click('text=Sign in with 127.0.0.1')
    await page.fill('input[name=login]', login)
    await page.fill('input[name=password]', 'any')
    await page.click('button[type=submit]')
    await page.click('button[type=submit]:has-text("Continue")')
  }

  /** The address with the code, which the browser did not visit. */
  async function codeOf(page: Page, login: string): Promise<URL> {
    const caught = Promise.withResolvers<string>()
    provider.state.caught = caught.resolve
    await atProvider(page, login)
    const url = new URL(await caught.promise)
    provider.state.caught = undefined
    return url
  }

  const sessions = async () => Number((await server.db.query('select count(*) as n from people_sessions'))[0]!.n)
  const age = (minutes: number) =>
    server.db.query('update people_sessions set checked_at = db_clock() - make_interval(mins => $1)', [minutes])
  const text = async (page: Page) => (await page.textContent('body'))!.replaceAll(/\s+/g, ' ')

  /** The address leads to a page that signs nobody in. */
  async function isRefused(page: Page, address: URL, status: number, sentence: RegExp): Promise<void> {
    const before = await sessions()
    const response = await page.goto(address.href)
    assert.equal(response!.status(), status, await text(page))
    assert.match(await text(page), sentence)
    assert.equal(await sessions(), before)
    await page.goto(`${server.adminUrl}/keys`)
    assert.match(page.url(), /\/sign-in/)
  }

  test('a person signs in, lands on the page they wanted, and their name is in the audit log', async () => {
    const { page } = await visitor()
    await atProvider(page, 'ada', `/keys?project=${project}`)
    await page.waitForURL(`${server.adminUrl}/keys?project=${project}`)
    assert.match(await text(page), /Signed in as Ada Lovelace owner/)
    await page.click('summary:has-text("Create a key") >> nth=0')
    await page.fill('input[name=name] >> nth=0', 'made by a person')
    await page.click('form button:text-is("Create a key") >> nth=0')
    await page.waitForSelector('text=is shown only now')
    const { body } = await server.admin('/audit?limit=1')
    const { action, actor_kind, actor } = body.data[0]
    assert.deepEqual([action, actor_kind, actor], ['key.created', 'person', 'Ada Lovelace (ada)'])
    // Another process knows the session too.
    await page.goto(`${other.adminUrl}/keys?project=${project}`)
    assert.match(await text(page), /Signed in as Ada Lovelace/)
    await page.click('button:text("Sign out")')
    await page.goto(`${server.adminUrl}/keys`)
    assert.match(page.url(), /\/sign-in/)
  })

  test('a group gives its role and its reach', async () => {
    const { page } = await visitor()
    await atProvider(page, 'grace')
    await page.waitForURL(`${server.adminUrl}/`)
    const shown = await text(page)
    assert.match(shown, /Grace Hopper support\s*Reaches shop/)
    assert.doesNotMatch(shown, /elsewhere|Audit log/)
  })

  test('an unmapped group: a page that says so, and no session', async () => {
    const { page } = await visitor()
    const address = await codeOf(page, 'eve')
    await isRefused(page, address, 403, /Eve <b>, none of your groups at 127[^ ]+ has a role here\. Ask the owner/)
  })

  test('an address gives a role only if the provider has verified it, also later', async () => {
    const account = { name: 'Mallory', groups: ['admins'], email: 'admin@example.com' }
    for (const unverified of [{}, { email_verified: false }]) {
      provider.accounts.set('mallory', { ...account, ...unverified })
      const { page } = await visitor()
      await atProvider(page, 'mallory', '/', byEmail.adminUrl)
      assert.match(await text(page), /Mallory, 127[^ ]+ has not verified your e-mail address/)
      await page.goto(`${byEmail.adminUrl}/keys`)
      assert.match(page.url(), /\/sign-in/)
    }
    provider.accounts.set('mallory', { ...account, email_verified: true })
    const { page } = await visitor()
    await atProvider(page, 'mallory', '/', byEmail.adminUrl)
    await page.waitForURL(`${byEmail.adminUrl}/`)
    assert.match(await text(page), /Mallory owner/)
    provider.accounts.set('mallory', { ...account, email_verified: false })
    await age(6)
    await page.goto(`${byEmail.adminUrl}/`)
    assert.match(page.url(), /\/sign-in/)
  })

  test('a replayed code, in the same browser and with its cookie back', async () => {
    const { page, context } = await visitor()
    const address = await codeOf(page, 'ada')
    const cookies = (await context.cookies()).filter(({ name }) => name === 'tundish_sign_in')
    assert.equal(cookies.length, 1)
    assert.deepEqual([cookies[0]!.httpOnly, cookies[0]!.sameSite], [true, 'Lax'])
    await page.goto(address.href)
    await page.waitForURL(`${server.adminUrl}/`)
    await page.click('button:text("Sign out")')
    await isRefused(page, address, 400, /was not begun in this browser, took too long, or has ended before/)
    await context.addCookies(cookies)
    await isRefused(page, address, 403, /failed, and nobody was signed in/)
    const stolen = await visitor()
    await isRefused(stolen.page, address, 400, /was not begun in this browser/)
  })

  test('a changed state, another issuer in the response, and an error of the provider', async () => {
    for (const [name, value] of [
      ['state', 'another'],
      ['iss', 'https://evil.example'],
      ['code', 'another'],
    ] as const) {
      const { page } = await visitor()
      const address = await codeOf(page, 'ada')
      address.searchParams.set(name, value)
      await isRefused(page, address, 403, /failed, and nobody was signed in/)
    }
    const { page } = await visitor()
    const address = await codeOf(page, 'ada')
    address.searchParams.delete('code')
    address.searchParams.set('error', 'access_denied')
    await isRefused(page, address, 403, /failed, and nobody was signed in/)
  })

  test('an expired token, another issuer, audience or nonce in it, another signature and none', async () => {
    const now = Math.floor(Date.now() / 1000)
    const faults: Record<string, (claims: Record<string, unknown>) => Record<string, unknown>> = {
      expired: (claims) => ({ ...claims, iat: now - 7200, exp: now - 3600 }),
      issuer: (claims) => ({ ...claims, iss: 'https://evil.example' }),
      audience: (claims) => ({ ...claims, aud: 'another client' }),
      nonce: (claims) => ({ ...claims, nonce: 'another' }),
    }
    for (const [name, fault] of [...Object.entries(faults), ['signature'] as const, ['none'] as const]) {
      const { page } = await visitor()
      const address = await codeOf(page, 'ada')
      if (fault) provider.state.fault = fault
      else if (name === 'none') provider.state.unsigned = true
      else provider.state.key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
      await isRefused(page, address, 403, /failed, and nobody was signed in/)
      assert.ok(server.logLines().at(-1) !== undefined, name)
      Object.assign(provider.state, { fault: undefined, key: undefined, unsigned: undefined })
    }
    // Nothing but the faults was the reason.
    const { page } = await visitor()
    await atProvider(page, 'ada')
    await page.waitForURL(`${server.adminUrl}/`)
  })

  test('a way back to another site, and a redirect address that is not registered', async () => {
    for (const to of ['//evil.example/', 'https://evil.example/', '/\\evil.example']) {
      const { page } = await visitor()
      await page.goto(`${server.adminUrl}/sign-in/oidc?${new URLSearchParams({ to })}`)
      await page.fill('input[name=login]', 'ada')
      await page.fill('input[name=password]', 'any')
      await page.click('button[type=submit]')
      await page.click('button[type=submit]:has-text("Continue")')
      await page.waitForURL(`${server.adminUrl}/`)
    }
    const { page } = await visitor()
    const sent = await fetch(`${server.adminUrl}/sign-in/oidc`, { redirect: 'manual' })
    const address = new URL(sent.headers.get('location')!)
    assert.equal(address.searchParams.get('redirect_uri'), `${server.adminUrl}${CALLBACK}`)
    address.searchParams.set('redirect_uri', `https://evil.example${CALLBACK}`)
    assert.equal((await page.goto(address.href))!.status(), 400)
    assert.match(await text(page), /redirect_uri/)
  })

  test('a provider that names another issuer, or does not respond', async () => {
    const settings = { issuer: provider.issuer, clientId: 'tundish', clientSecret: 'x', claim: 'groups', roles: [] }
    const clock = { monotonicMs: () => 0 }
    const begin = (issuer: string) =>
      openIdentityProvider({ ...settings, issuer, scope: undefined, prompt: undefined }, clock).begin(
        `${server.adminUrl}${CALLBACK}`,
      )
    const wrong = await begin(provider.issuer.replace('127.0.0.1', 'localhost'))
    assert.ok('why' in wrong && wrong.why === 'refused', JSON.stringify(wrong))
    const nothing = await begin('http://127.0.0.1:9')
    assert.ok('why' in nothing && nothing.why === 'unreachable', JSON.stringify(nothing))
  })

  test('a removed person is out with the next confirmation, and one of another group has its role', async () => {
    provider.accounts.set('bob', { name: 'Bob', groups: ['admins'] })
    const { page } = await visitor()
    await atProvider(page, 'bob')
    await page.waitForURL(`${server.adminUrl}/`)
    provider.accounts.set('bob', { name: 'Bob', groups: ['figures'] })
    await page.goto(`${server.adminUrl}/keys`)
    assert.match(await text(page), /Bob owner/)
    await age(6)
    await page.goto(`${server.adminUrl}/`)
    assert.match(await text(page), /Bob analyst/)
    provider.accounts.set('bob', { name: 'Bob', groups: [] })
    await age(6)
    await page.goto(`${server.adminUrl}/`)
    assert.match(page.url(), /\/sign-in/)

    provider.accounts.set('bob', { name: 'Bob', groups: ['admins'] })
    const again = await visitor()
    await atProvider(again.page, 'bob')
    await again.page.waitForURL(`${server.adminUrl}/`)
    provider.accounts.delete('bob')
    await age(6)
    await again.page.goto(`${server.adminUrl}/`)
    assert.match(again.page.url(), /\/sign-in/)
  })

  test('one process alone confirms a session, and a refresh token is used once', async () => {
    const { page, context } = await visitor()
    await atProvider(page, 'ada')
    await page.waitForURL(`${server.adminUrl}/`)
    const cookie = (await context.cookies()).filter(({ name }) => name === 'tundish_session')[0]!
    const get = async (origin: string) =>
      (await fetch(`${origin}/projects`, { headers: { cookie: `${cookie.name}=${cookie.value}` }, redirect: 'manual' }))
        .status
    for (const minutes of [6, 60]) {
      await age(minutes)
      const before = provider.state.refreshes
      const all = [server, other, server, other, server, other].map(({ adminUrl }) => get(adminUrl))
      assert.deepEqual(await Promise.all(all), [200, 200, 200, 200, 200, 200])
      assert.equal(provider.state.refreshes, before + 1)
    }
  })

  test('a provider that is away: the session lives for a quarter of an hour, then 503, and again when it is back', async () => {
    const { page } = await visitor()
    await atProvider(page, 'ada')
    await page.waitForURL(`${server.adminUrl}/`)
    await provider.pause()
    await age(10)
    assert.equal((await page.goto(`${server.adminUrl}/projects`))!.status(), 200)
    await age(15)
    const response = await page.goto(`${server.adminUrl}/projects`)
    assert.equal(response!.status(), 503)
    assert.match(await text(page), /identity provider cannot be reached/)
    await provider.start()
    assert.equal((await page.goto(`${server.adminUrl}/projects`))!.status(), 200)
  })
})
