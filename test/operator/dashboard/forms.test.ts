// What forms of the dashboard do: each is the operation that the API has, with its rules and its audit entry.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createProject } from '../../../src/core/tenants/tenants.ts'
import { Html, textOf } from '../../../src/operator/dashboard/html.ts'
import { startDashboard } from '../../support/dashboard.ts'
import { addRow } from '../../support/data.ts'
import { openStripeSimulator, TEST_KEY } from '../../support/simulators.ts'

const ACCOUNT = 'acct_1TundishDialect0'
const SECRET = 'whsec_ofTheDashboard'

const stripe = await openStripeSimulator()
const dashboard = await startDashboard({ STRIPE_API_URL: stripe.url })
const cookie = await dashboard.signInAs('write')
const [row] = await dashboard.server.db.query('select organization_id as id from projects where id = $1', [
  dashboard.project.id,
])
const organization = row!.id!
after(async () => {
  await dashboard.stop()
  await stripe.cleanUp()
})

const see = (path: string) => dashboard.visit(path, { cookie })
const send = (path: string, form: Record<string, string>) => dashboard.visit(path, { cookie, form })
const actions = async () =>
  (await dashboard.server.db.query('select action from audit_log order by sequence')).map(({ action }) => action)

test('an account is connected and disconnected; its secrets are on no page and in no audit entry', async () => {
  const form = { psp: 'stripe', psp_merchant_id: ACCOUNT, secret_key: TEST_KEY, webhook_secrets: SECRET }
  const wrong = await send('/merchant-accounts/connect', { ...form, sandbox: '' })
  assert.deepEqual([wrong.status, /mark the merchant account as a sandbox/.test(wrong.text)], [409, true])
  const connected = await send('/merchant-accounts/connect', { ...form, sandbox: '1' })
  assert.equal(connected.status, 200, connected.text)
  assert.match(connected.text, new RegExp(`/${organization}/v1/providers/stripe/${ACCOUNT}/events`))
  const seen = [connected.text, (await see('/merchant-accounts')).text, (await see('/audit')).text]
  for (const text of seen) assert.ok(!text.includes(TEST_KEY) && !text.includes(SECRET))
  assert.match(seen[1]!, /…0000/)
  const [entries] = await dashboard.server.db.query('select string_agg(a::text, $1) as all from audit_log a', [' '])
  assert.ok(!entries!.all!.includes(TEST_KEY) && !entries!.all!.includes(SECRET))
  const gone = await send('/merchant-accounts/disconnect', { psp: 'stripe', psp_merchant_id: ACCOUNT })
  assert.equal(gone.status, 303)
  assert.doesNotMatch((await see('/merchant-accounts')).text, /…0000/)
  const [account] = await dashboard.server.db.query('select credentials from merchant_accounts')
  assert.equal(account!.credentials, null)
  assert.deepEqual((await actions()).slice(-3), [
    'merchant_account.connect_asked',
    'merchant_account.connect_asked',
    'merchant_account.disconnected',
  ])
})

test('400 with a sentence for what the API would refuse, and nothing is changed', async () => {
  const before = await actions()
  const owner = `/keys/project/${dashboard.project.id}`
  const cases: [path: string, form: Record<string, string>, sentence: RegExp][] = [
    [owner, { name: 'x'.repeat(1000) }, /name must/],
    [owner, { name: '' }, /name must/],
    [owner, { name: 'a\u0000b' }, /U\+0000/],
    ['/settings/rates', { owner: 'project', rate_limit: 'fast' }, /A rate limit must be/],
    ['/settings/erasures', { erase_at_provider: 'everywhere' }, /erase_at_provider must be/],
    ['/settings/charges', { enabled: '1', max: 'much' }, /much/],
    ['/settings/charges', { enabled: '1', max: '' }, /max must be an amount such as 500/],
    ['/merchant-accounts', { psp: 'simulator', psp_merchant_id: 'a', currencies: 'EURO' }, /currencies/],
  ]
  for (const [path, form, sentence] of cases) {
    const { status, text } = await send(path, form)
    assert.equal(status, 400, `${path} ${JSON.stringify(form)}`)
    assert.match(text, sentence)
  }
  assert.deepEqual(await actions(), before)
})

test('a refused form is shown again with what was typed, but no secret, and leads back to its page also the second time', async () => {
  const page = `/merchant-accounts?project=${dashboard.project.id}`
  const typed = { psp: 'primer', psp_merchant_id: 'a "b" <c>', sandbox: '', secret_key: 'sk_typed' }
  const again = async (form: Record<string, string>, referer: string, path = '/merchant-accounts/connect') =>
    (await dashboard.visit(path, { cookie, form, headers: { referer: dashboard.origin + referer } })).text
  for (const text of [await again(typed, page), await again({ ...typed, back: page }, '/merchant-accounts/connect')]) {
    assert.match(text, /<h1>That did not work<\/h1>/)
    assert.match(text, /<details open class="action-form">.*Connect an account/)
    assert.match(text, /<option value="primer" selected>/)
    assert.ok(text.includes('name="psp_merchant_id" type="text" value="a &quot;b&quot; &lt;c&gt;"'), text)
    assert.ok(text.includes(`<input type="hidden" name="back" value="${page}">`))
    assert.ok(text.includes(`<a class="button" href="${page}">Back to the form</a>`))
    assert.ok(!text.includes('sk_typed'))
  }
  // Of two forms that are sent to one path, the one with the same hidden fields.
  const settings = `/settings?project=${dashboard.project.id}`
  const rate = await again({ owner: 'project', rate_limit: 'fast' }, settings, '/settings/rates')
  assert.match(rate, /name="owner" value="project">.*name="rate_limit" type="text" value="fast"/s)
  assert.doesNotMatch(rate, /name="owner" value="organization"/)
  const key = await again({ name: '', scope: 'write' }, `/keys`, `/keys/project/${dashboard.project.id}`)
  assert.match(key, /value="write" checked>/)
  assert.doesNotMatch(key, /value="read" checked>/)
  for (const referer of ['/nothing', '/people/none', '/people/%', '/sign-in'])
    assert.match(await again(typed, referer), /<p class="failed"[^>]*>[^<]+<\/p><p class="row">/, referer)
})

test('a refusal names the field by the label that the form has', async () => {
  const { id } = dashboard.project
  const cases: [page: string, path: string, form: Record<string, string>, sentence: string][] = [
    ['/settings', '/settings/reporting', { time_zone: 'Mars', currency: 'EUR' }, '“Time zone” must be a name of'],
    [
      '/settings',
      '/settings/charges',
      { max: '5', currency: 'EURO' },
      '“Currency” must be a currency such as EUR, got',
    ],
    ['/settings', '/settings/charges', { max: 'much' }, '“Largest amount” must be an amount such as 500, got'],
    ['/keys', `/keys/project/${id}`, { name: '' }, '“Name” must not be empty, got'],
    ['/keys', `/keys/project/${id}`, { name: 'a', rate_limit: 'fast' }, '“Rate limit” must be requests per second'],
    ['/merchant-accounts', '/merchant-accounts', { psp: 'x', psp_merchant_id: '' }, '“Account ID” must have 1 to 256'],
    [
      '/merchant-accounts',
      '/merchant-accounts',
      { psp_merchant_id: 'a', currencies: 'EURO' },
      '“Currencies” must have',
    ],
    ['/webhooks', '/webhooks/new', { url: 'here' }, '“URL” must be a URL and begin with https://'],
    ['/alerts', '/alerts/hours', { quiet_from: '4' }, '“Quiet from” and “Quiet until” must be given together.'],
    ['/alerts', '/alerts/new', { alert_id: 'a', metric: 'sales', condition: 'below' }, '“Threshold” is required.'],
  ]
  for (const [page, path, form, sentence] of cases) {
    const headers = { referer: `${dashboard.origin}${page}?project=${id}` }
    const { status, text } = await dashboard.visit(`${path}?project=${id}`, { cookie, form, headers })
    const said = textOf(new Html(/role="alert">(.*?)<\/p>/.exec(text)?.[1] ?? ''))
    assert.deepEqual([status, said.slice(0, sentence.length)], [400, sentence], path)
  }
})

test('settings of charges, erasures and rates are saved, each with its audit entry', async () => {
  const before = (await actions()).length
  await send('/settings/charges', { enabled: '1', max: '50', currency: 'eur' })
  await send('/settings/charges', { enabled: '1', max: '12.345', currency: 'kwd' })
  await send('/settings/erasures', { erase_at_provider: 'on' })
  await send('/settings/rates', { owner: 'organization', rate_limit: '7/9' })
  await send('/settings/rates', { owner: 'project', rate_limit: 'off' })
  const [row] = await dashboard.server.db.query(
    `select one_off_charge_enabled as enabled, erase_at_provider, rate_limit || '/' || rate_limit_burst as rate
     from organizations where id = $1`,
    [organization],
  )
  assert.deepEqual(row, { enabled: 't', erase_at_provider: 'on', rate: '7/9' })
  const { text } = await see('/settings')
  assert.match(text, /50 EUR/)
  assert.match(text, /12\.345 KWD/)
  assert.match(text, /clear the customer’s data/)
  assert.deepEqual((await actions()).slice(before), [
    'organization.set',
    'organization.set',
    'organization.set',
    'rate_limit.set',
    'rate_limit.set',
  ])
})

/** What a browser sends of the form of a page with one field typed anew. */
async function filledIn(page: string, path: string, typed: Record<string, string>) {
  const { text } = await see(page)
  const form = text.match(/<form\b.*?<\/form>/gs)!.find((one) => one.includes(` action="${path}`))!
  const inputs = [...form.matchAll(/<input\b[^>]* name="([^"]*)"[^>]* value="([^"]*)"/g)]
  const selects = [...form.matchAll(/<select name="([^"]*)">.*?<option value="([^"]*)" selected/gs)]
  return {
    ...Object.fromEntries([...inputs, ...selects].map(([, name, value]) => [name!, textOf(new Html(value!))])),
    ...typed,
  }
}

test('a form that is older than a change of another field does not set that field back', async () => {
  const cases: [page: string, path: string, changes: Record<string, string>[], saved: string][] = [
    [
      '/settings',
      '/settings/charges',
      [{ enabled: '1' }, { max: '70' }],
      `one_off_charge_enabled || ' ' || (one_off_charge_max_amount ->> '*')`,
    ],
    [
      '/settings',
      '/settings/charges',
      [{ enabled: '' }, { max: '71', currency: 'CHF' }],
      `one_off_charge_enabled || ' ' || (one_off_charge_max_amount ->> 'CHF')`,
    ],
    [
      '/settings',
      '/settings/reporting',
      [{ time_zone: 'Europe/Madrid' }, { currency: 'EUR' }],
      `time_zone || ' ' || reporting_currency`,
    ],
    [
      '/alerts',
      '/alerts/hours',
      [{ digest_hour: '7' }, { quiet_from: '22', quiet_to: '6' }],
      `concat_ws(' ', digest_hour, quiet_from, quiet_to)`,
    ],
    [
      '/alerts',
      '/alerts/hours',
      [{ quiet_from: '', quiet_to: '' }, { quiet_to: '5' }],
      `concat_ws(' ', digest_hour, quiet_from, quiet_to)`,
    ],
  ]
  const expected = ['true 70', 'false 71', 'Europe/Madrid EUR', '7 22 6', '7 22 5']
  for (const [n, [page, path, changes, saved]] of cases.entries()) {
    const tabs = await Promise.all(changes.map((typed) => filledIn(page, path, typed)))
    for (const form of tabs) assert.equal((await send(path, form)).status, 303, path)
    const [row] = await dashboard.server.db.query(
      `select ${saved} as saved from organizations o join projects p on p.organization_id = o.id
       left join alert_settings s on s.project_id = p.id where p.id = $1`,
      [dashboard.project.id],
    )
    assert.equal(row!.saved, expected[n], path)
  }
})

test('a receipt says what became of the erasure at the payment provider', async () => {
  const { server, project } = dashboard
  await send('/settings/erasures', { erase_at_provider: 'delete' })
  const customer = { organization_id: organization, external_id: 'cus_OfTheReceipt', profile_id: 'pro_1' }
  await addRow(server.db, 'profiles', { project_id: project.id, id: 'pro_1' })
  await addRow(server.db, 'customers', { project_id: project.id, ...customer })
  assert.match((await see('/people/pro_1')).text, /asked to delete the customer/)
  await send('/people/pro_1/erase', { confirm: 'pro_1' })
  assert.match((await see('/erasures')).text, /pending<\/span> 1 of 1/)
  const { text } = await see('/erasures/pro_1')
  assert.match(text, /At payment providers/)
  assert.match(text, /cus_OfTheReceipt.*deleted.*pending/s)
})

test('an organization with several projects is seen as a whole, and one without any can be chosen', async () => {
  const { server, project } = dashboard
  await createProject(server.db, server.app.seal, { id: 'other', organization, name: 'The other shop' })
  const { status, text } = await see(`/?project=all:${organization}`)
  assert.equal(status, 200)
  assert.match(text, new RegExp(`<option value="all:${organization}" selected>All projects</option>`))
  for (const path of [
    '/revenue',
    '/charges',
    '/refunds',
    '/keys',
    '/merchant-accounts',
    '/settings',
    '/projects',
    '/funnels',
  ])
    assert.equal((await see(`${path}?project=all:${organization}`)).status, 200, path)
  const sync = await see(`/sync?project=all:${organization}`)
  assert.match(sync.text, /Choose a project/)
  assert.ok(sync.text.includes(`href="/sync?project=${project.id}"`))
  await send('/projects/organizations', { id: 'fresh', name: 'Fresh' })
  const fresh = await see('/keys?project=all:fresh')
  assert.match(fresh.text, /Keys of the organization Fresh/)
  assert.equal((await see('/?project=all:none')).status, 404)
})

test('every address of a page names its project, so that a kept link shows the same when projects are added', async () => {
  const { project } = dashboard
  const { text } = await see(`/charges?project=${project.id}`)
  const links = [...text.matchAll(/href="(\/(?!docs|assets|favicon)[^"]*)"/g)].map(([, href]) => href!)
  assert.ok(links.length > 10)
  for (const href of links) assert.match(href, new RegExp(`project=${project.id}\\b`))
})

test('another period keeps what is chosen on the page, and drops the place in its list', async () => {
  const { text } = await see('/revenue?split=product&period=12m')
  assert.match(text, /href="\/revenue\?[^"]*split=product[^"]*period=90d[^"]*"/)
  assert.match(text, /<input type="hidden" name="split" value="product">/)
  const list = await see('/charges?status=failed')
  assert.match(list.text, /href="\/charges\?[^"]*status=failed[^"]*period=90d[^"]*"/)
  assert.match(list.text, /name="back" value="\/charges\?[^"]*status=failed[^"]*"/)
})

test('no text is next to a new key, where it could be copied with it', async () => {
  const { id } = dashboard.project
  const { text } = await dashboard.visit(`/keys/project/${id}`, { cookie, form: { name: 'reporting' } })
  assert.match(text, /The key “reporting” was created\. It is shown only now/)
  const [key, secret] = [...text.matchAll(/<dd><code class="secret">([^<]+)<\/code> <button [^>]*data-copy="([^"]+)"/g)]
  assert.match(key![1]!, /^secret_/)
  assert.match(secret![1]!, /^whsec_/)
  for (const [, shown, copied] of [key!, secret!]) assert.equal(shown, copied)
  assert.doesNotMatch(text, /<\/code>\s*<span/)
})

test('the page after a project or an organization was created leads to it', async () => {
  const organization_id = dashboard.project.organizationId
  const made = await dashboard.visit('/projects/new', {
    cookie,
    form: { organization_id, id: 'garden', name: 'Garden' },
  })
  assert.match(made.text, /The project “Garden” was created\. Its first key is shown only now/)
  assert.match(made.text, /<a class="button" href="\/\?project=garden">Open the project</)
  const owner = await dashboard.visit('/projects/organizations', { cookie, form: { id: 'gardeners' } })
  assert.match(owner.text, /The organization “gardeners” was created/)
  assert.match(owner.text, /href="\/\?project=all%3Agardeners">Open the organization</)
})
