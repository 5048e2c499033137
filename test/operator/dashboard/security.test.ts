// Who may see and do what on the dashboard.
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, test } from 'node:test'
import { endOperator } from '../../../src/core/tenants/operator-keys.ts'
import { actions, pages } from '../../../src/operator/dashboard/routes.ts'
import { makeLink } from '../../../src/operator/dashboard/sessions.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { insert } from '../../support/data.ts'
import { until } from '../../support/time.ts'

const dashboard = await startDashboard()
after(() => dashboard.stop())
const made = await dashboard.operator('write')
const writer: { id: string; key: string; cookie: string } = { ...made, cookie: await dashboard.signIn(made.key) }
const reader: { cookie: string } = { cookie: await dashboard.signInAs('read') }

const filled = (path: string) =>
  path
    .replace(':owner/', 'project/')
    .replace(':owner_id', dashboard.project.id)
    .replace(/:[a-z_]+/g, 'none')

test('without a session every page leads to the sign-in, and no form does anything', async () => {
  for (const path of Object.keys(pages)) {
    const { status, headers, text } = await dashboard.visit(filled(path))
    const to = path === '/' ? '' : `?${new URLSearchParams({ to: filled(path) })}`
    assert.deepEqual([status, headers.get('location'), text], [303, `/sign-in${to}`, ''], path)
  }
  for (const path of Object.keys(actions)) {
    const { status, text } = await dashboard.visit(filled(path), { form: { name: 'x' } })
    assert.equal(status, 401, path)
    assert.match(text, /nothing was done/)
  }
})

test('signing in leads on to the page that was asked for, and to no other host', async () => {
  const { key } = await dashboard.operator('read')
  const wanted = '/charges?project=x&status=failed'
  const { text } = await dashboard.visit(`/sign-in?${new URLSearchParams({ to: wanted })}`)
  const given = /name="to" value="([^"]*)"/.exec(text)![1]!.replaceAll('&amp;', '&')
  assert.equal(given, wanted)
  const wrong = await dashboard.visit('/sign-in', { form: { operator_key: 'wrong', to: given } })
  assert.match(wrong.text, /name="to" value="\/charges\?/)
  const after = async (to: string) =>
    (await dashboard.visit('/sign-in', { form: { operator_key: key, to } })).headers.get('location')
  assert.equal(await after(given), wanted)
  for (const other of ['//evil.example', 'https://evil.example', '/\\evil.example', '', '/\tx'])
    assert.equal(await after(other), '/', other)
})

test('a visit counts as a use of the key that signed in', async () => {
  const { id, key } = await dashboard.operator('read')
  const cookie = await dashboard.signIn(key)
  const { query } = dashboard.server.db
  await query(`update operator_keys set last_used_at = now() - interval '2 days' where id = $1`, [id])
  assert.equal((await dashboard.visit('/', { cookie })).status, 200)
  const [row] = await query(
    `select last_used_at > now() - interval '1 day' as fresh from operator_keys where id = $1`,
    [id],
  )
  assert.equal(row!.fresh, 't')
})

test('a form without a session leads back to its page by way of the sign-in', async () => {
  const referer = `${dashboard.origin}/settings?project=x`
  const { status, text } = await dashboard.visit('/settings/charges', { form: { max: '1' }, headers: { referer } })
  assert.equal(status, 401)
  assert.ok(text.includes('href="/sign-in?to=%2Fsettings%3Fproject%3Dx"'))
})

test('a link of another site opens the page by its own request, and shows nothing itself', async () => {
  const headers = { 'sec-fetch-site': 'cross-site' }
  const { status, headers: sent, text } = await dashboard.visit('/revenue?period=7d', { headers })
  assert.deepEqual([status, sent.get('refresh')], [200, '0; url=/revenue?period=7d'])
  assert.doesNotMatch(text, /class="tile"/)
  const own = { 'sec-fetch-site': 'same-origin' }
  assert.equal((await dashboard.visit('/revenue?period=7d', { headers: own })).status, 303)
})

test('a key that may only read sees every page and no form of a change', async () => {
  for (const path of ['/', '/keys', '/settings', '/projects', '/webhooks', '/merchant-accounts']) {
    const { status, text } = await dashboard.visit(path, { cookie: reader.cookie })
    assert.equal(status, 200, path)
    assert.deepEqual(
      [...text.matchAll(/<form method="post" action="([^"?]+)/g)].map(([, to]) => to),
      ['/theme', '/sign-out'],
      path,
    )
    assert.doesNotMatch(text, />Actions</, path)
  }
  for (const path of Object.keys(actions)) {
    const { status } = await dashboard.visit(filled(path), { cookie: reader.cookie, form: { name: 'x' } })
    assert.equal(status, 403, path)
  }
})

test('403 for a form that another origin sent, or none', async () => {
  const form = { id: 'evil', name: '' }
  const others: Record<string, string>[] = [
    { origin: 'http://evil.example' },
    { origin: 'null' },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { origin: dashboard.origin.replace('127.0.0.1', 'localhost') },
  ]
  for (const headers of others) {
    const { status } = await dashboard.visit('/projects/organizations', { cookie: writer.cookie, form, headers })
    assert.equal(status, 403, JSON.stringify(headers))
  }
  assert.deepEqual(await dashboard.server.db.query(`select id from organizations where id = 'evil'`), [])
})

test('403 that names the proxy if it does not pass on the Host of the browser', async () => {
  const signIn = (headers: Record<string, string>) =>
    dashboard.visit('/sign-in', { form: { operator_key: writer.key }, headers })
  const hint = /Behind a proxy, let it pass on the Host of the browser, with its port/
  const origin = 'https://tundish.internal:8443'
  const withoutHost: Record<string, string>[] = [{ origin }, { origin, 'sec-fetch-site': 'same-origin' }]
  for (const headers of withoutHost) {
    const { status, text } = await signIn(headers)
    assert.equal(status, 403)
    assert.match(text, hint)
  }
  const { text } = await signIn({ origin, 'sec-fetch-site': 'cross-site' })
  assert.doesNotMatch(text, hint)
})

test('421 for a Host that is not the listener’s own', async () => {
  const { adminUrl } = dashboard.server
  const status = await new Promise((resolve, reject) => {
    const url = new URL(adminUrl)
    request({ host: url.hostname, port: url.port, path: '/sign-in', headers: { host: 'evil.example' } }, (response) => {
      response.resume()
      resolve(response.statusCode)
    })
      .on('error', reject)
      .end()
  })
  assert.equal(status, 421)
})

test('scripts and other sites cannot use the cookie, and the database stores only its hash', async () => {
  const { headers } = await dashboard.visit('/sign-in', { form: { operator_key: writer.key } })
  const cookie = headers.get('set-cookie')!
  assert.match(cookie, /^tundish_session=[A-Za-z0-9_-]{43}; Path=\/; Max-Age=43200; HttpOnly; SameSite=Strict$/)
  const token = cookie.split(/[=;]/)[1]!
  const [row] = await dashboard.server.db.query('select string_agg(s::text, $1) as all from dashboard_sessions s', [
    ' ',
  ])
  assert.ok(!row!.all!.includes(token) && !row!.all!.includes(Buffer.from(token).toString('hex')))
})

test('pages, CSV files, refusals and redirects are not cached, and allow only resources of the listener', async () => {
  const { cookie } = writer
  const { id } = dashboard.project
  const asked: [string, Parameters<typeof dashboard.visit>[1]][] = [
    ['/sign-in', {}],
    ['/', {}],
    ...Object.keys(pages).map((path): [string, object] => [filled(path), { cookie }]),
    ['/projects?csv=projects', { cookie }],
    ['/projects?csv=none', { cookie }],
    ['/?project=none', { cookie }],
    [`/keys/project/${id}`, { cookie, form: { name: 'of the headers' } }],
    [`/keys/project/${id}`, { cookie, form: { name: '' } }],
    ['/settings/rates', { cookie, form: { owner: 'project', rate_limit: 'default' } }],
  ]
  for (const [path, given] of asked) {
    const { status, headers } = await dashboard.visit(path, given)
    assert.equal(headers.get('cache-control'), 'no-store', `${path} ${status}`)
    assert.match(headers.get('content-security-policy')!, /^default-src 'none'; script-src 'self'; style-src 'self';/)
    assert.ok(!/unsafe|data:|\*/.test(headers.get('content-security-policy')!))
    assert.equal(headers.get('x-frame-options'), 'DENY')
  }
})

test('a link signs in once, also after a HEAD', async () => {
  const token = await dashboard.server.db.tx((query) => makeLink(query, writer.id))
  await fetch(`${dashboard.origin}/sign-in?token=${token}`, { method: 'HEAD' })
  const [one, two] = await Promise.all([
    dashboard.visit(`/sign-in?token=${token}`),
    dashboard.visit(`/sign-in?token=${token}`),
  ])
  assert.deepEqual([one.status, two.status].sort(), [200, 401])
  const cookie = (one.status === 200 ? one : two).headers.get('set-cookie')!.split(';')[0]!
  assert.equal((await dashboard.visit('/', { cookie })).status, 200)
  const again = await dashboard.visit(`/sign-in?token=${token}`)
  assert.deepEqual([again.status, again.text.includes('Open the dashboard')], [401, false])
  // In the browser that has followed it.
  const mine = await dashboard.visit(`/sign-in?token=${token}`, { cookie })
  assert.equal(mine.status, 401)
  assert.match(mine.text, /already used\..*href="\/">Open the dashboard/s)
})

test('signing out ends the session, and revoking the key ends all of its sessions at once', async () => {
  const { id, key } = await dashboard.operator('write')
  const [first, second] = [await dashboard.signIn(key), await dashboard.signIn(key)]
  await dashboard.visit('/sign-out', { cookie: first!, form: {} })
  assert.equal((await dashboard.visit('/', { cookie: first! })).status, 303)
  assert.equal((await dashboard.visit('/', { cookie: second! })).status, 200)
  await dashboard.server.db.tx((query) => endOperator(query, id))
  assert.equal((await dashboard.visit('/', { cookie: second! })).status, 303)
})

test('names and other data are escaped', async () => {
  const evil = '<script>alert(1)</script>"\''
  const { status, text } = await dashboard.visit(`/people?q=${encodeURIComponent(evil)}`, { cookie: writer.cookie })
  assert.equal(status, 200)
  assert.ok(!text.includes('<script>alert'))
  assert.ok(text.includes('&lt;script&gt;alert(1)'))
})

test('an erasure needs the typed ID, and no page shows what it removed', async () => {
  const { server, project, visit } = dashboard
  await insert(server.db, project, {
    profiles: [{ id: 'pro_1', email: 'ada@example.com', phone: '+49123' }],
    sessions: [{ id: 'ses_1', profile_id: 'pro_1', ip: '192.0.2.77' }],
    replies: [{ session_id: 'ses_1', screen_id: 'wish', element_id: 'wish', value: 'to sleep like an owl' }],
  })
  const page = `/people/pro_1?project=${project.id}`
  const { cookie } = writer
  for (const text of [/ada@example\.com/, /192\.0\.2\.77/, /to sleep like an owl/])
    assert.match((await visit(page, { cookie })).text, text)
  const wrong = await visit(`/people/pro_1/erase?project=${project.id}`, { cookie, form: { confirm: 'pro_2' } })
  assert.equal(wrong.status, 400)
  assert.match((await visit(page, { cookie })).text, /ada@example\.com/)
  const right = await visit(`/people/pro_1/erase?project=${project.id}`, { cookie, form: { confirm: 'pro_1' } })
  assert.deepEqual([right.status, right.headers.get('location')], [303, `/erasures/pro_1?project=${project.id}`])
  const others = ['/people?q=pro_1&csv=found', '/audit', '/erasures', '/webhooks', '/subscriptions']
  for (const path of [page, right.headers.get('location')!, ...others]) {
    const { status, text } = await visit(path, { cookie })
    assert.equal(status, 200, path)
    assert.ok(!/ada@example|\+49123|192\.0\.2\.77|like an owl/.test(text), path)
  }
  assert.match((await visit('/people?q=ada@example.com', { cookie })).text, /No results for/)
  const [entry] = await server.db.query(`select actor_kind, actor from audit_log where action = 'profile.erase_asked'`)
  assert.deepEqual(entry, { actor_kind: 'operator key', actor: writer.id })
})

test('the page Sync lists a reader with its window', async () => {
  const { project, visit } = dashboard
  const window = { 'filter[updated_at.from]': '2020-01-01T00:00:00Z', 'filter[updated_at.to]': '2026-02-03T04:05:00Z' }
  // Only for its horizon: no reader.
  const horizon = { 'filter[updated_at.to]': '1970-01-01T00:00:00Z', limit: '1' }
  assert.equal((await project.get('/subscriptions', horizon)).status, 200)
  assert.equal((await project.get('/profiles', window)).status, 200)
  const exported = { from: '2020-01-01T00:00:00Z', to: '2026-02-04T04:05:00Z' }
  assert.equal((await project.get('/export', exported)).status, 200)
  await until('the reader to show up', async () => {
    const { text } = await visit(`/sync?project=${project.id}`, { cookie: writer.cookie })
    assert.doesNotMatch(text, /1 Jan 1970/)
    return /profiles.*3 Feb 2026, 04:05.* d <span class="badge warn">behind<.*export<.*4 Feb 2026, 04:05/s.test(text)
  })
})

const SECURE: [Record<string, string>, boolean][] = [
  [{}, false],
  [{ 'x-forwarded-proto': 'https' }, true],
  [{ forwarded: 'proto=https' }, true],
  [{ forwarded: 'For="[2001:db8::1]:4711"; Proto="HTTPS", for=10.0.0.1;proto=http' }, true],
  [{ forwarded: 'for=192.0.2.9;proto=http, for=10.0.0.1;proto=https' }, false],
  [{ forwarded: 'for=192.0.2.9;by=https' }, false],
  [{ 'x-forwarded-proto': 'http', forwarded: 'proto=https' }, true],
  [{ 'x-forwarded-proto': 'https', forwarded: 'proto=http' }, true],
]

test('the cookie of the session is for TLS alone if either header of a proxy says that the browser uses it', async () => {
  for (const [headers, isSecure] of SECURE) {
    const sent = await dashboard.visit('/sign-in', { form: { operator_key: writer.key }, headers })
    assert.deepEqual([headers, /; Secure$/.test(sent.headers.get('set-cookie')!)], [headers, isSecure])
  }
})

test('404 with the reason below a path prefix, whether the proxy removes the prefix or not', async () => {
  for (const path of ['/', '/sign-in', '/revenue']) {
    const { status, text } = await dashboard.visit(path, { headers: { 'x-forwarded-prefix': '/tundish' } })
    assert.equal(status, 404)
    assert.match(text, /cannot be served below the path \/tundish\. Behind a proxy .* needs a host name without a path/)
    assert.doesNotMatch(text, /href="\/"/)
  }
  const { status, text } = await dashboard.visit('/tundish/revenue', { headers: { accept: 'text/html' } })
  assert.equal(status, 404)
  assert.match(text, /needs a host name without a path/)
  assert.equal((await dashboard.visit('/sign-in', { headers: { 'x-forwarded-prefix': '/' } })).status, 200)
})
