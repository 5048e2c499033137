// Other profiles of an erased person: named by the response, the receipt, the command and the dashboard, and erased on request.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { startDashboard } from '../../support/dashboard.ts'
import { addRow, insert, type Rows } from '../../support/data.ts'
import { ok, type Project } from '../../support/server.ts'

const dashboard = await startDashboard()
after(() => dashboard.stop())

const ORDER = '01900000-0000-7000-8000-0000000000e1'

/** A project where `ada` visited, and paid at the provider as `cus_ada`. */
async function shopWith(more: Rows = {}): Promise<Project> {
  const shop = await dashboard.server.project()
  const rows: Rows = {
    products: [{ id: 'product' }],
    ...more,
    profiles: [
      { id: 'ada', email: 'Ada@Example.com' },
      { id: 'eve', email: 'eve@example.com' },
      ...(more.profiles ?? []),
    ],
  }
  await insert(dashboard.server.db, shop, rows)
  return shop
}

const erase = (shop: Project, ...profile_ids: string[]) => shop.post('/profiles/anonymize', { profile_ids })
const named = async (shop: Project, ...ids: string[]) => {
  const { status, headers } = await erase(shop, ...ids)
  assert.equal(status, 200)
  return headers['x-same-person']
}
const receiptOf = async (shop: Project, id: string) =>
  (await dashboard.server.admin(`/projects/${shop.id}/erasures/${id}`)).body.same_person
const emailOf = async (shop: Project, id: string) => (await shop.get(`/profiles/${id}`)).body.email

test('X-Same-Person names profiles with the same address in another case; without any it is absent', async () => {
  const shop = await shopWith({ profiles: [{ id: 'ada-again', email: 'ADA@example.COM' }] })
  const other = await shopWith()
  assert.equal(await named(shop, 'ada'), 'ada-again')
  assert.equal(await named(shop, 'eve'), undefined)
  assert.equal(await emailOf(shop, 'ada-again'), 'ADA@example.COM')
  assert.equal(await emailOf(other, 'ada'), 'Ada@Example.com')
})

test('people without an address are no twins, though all of them gave the same word or nothing', async () => {
  const shop = await shopWith()
  const created_at = '2026-01-31T09:00:00Z'
  const given = { a: '', b: '', c: ' ', d: ' ', e: 'none', f: 'None' }
  const records = Object.entries(given).map(([id, email]) => ({ record: 'profile', data: { id, created_at, email } }))
  await ok(shop.post('/records', { records }))
  assert.deepEqual([await emailOf(shop, 'a'), await emailOf(shop, 'c')], [null, null])
  for (const id of ['a', 'c', 'e']) assert.equal(await named(shop, id), undefined)
})

test('a header names as many as fit; the count says how many there are, and the receipts name all', async () => {
  const shop = await shopWith()
  const created_at = '2026-01-31T09:00:00Z'
  const many = (name: string) =>
    Array.from({ length: 100 }, (_, n) => ({
      id: `${name}_${n}`.padEnd(64, 'x'),
      created_at,
      email: `${n}@many.example`,
    }))
  for (const name of ['one', 'two'])
    await shop.post('/records', { records: many(name).map((data) => ({ record: 'profile', data })) })
  const { status, headers } = await erase(shop, ...many('one').map(({ id }) => id))
  assert.deepEqual([status, headers['x-same-person-count']], [200, '100'])
  const value = headers['x-same-person'] as string
  assert.ok(value.length <= 3400 && value.length > 3300, String(value.length))
  const twins = new Set(many('two').map(({ id }) => id))
  for (const id of value.split(', ')) assert.ok(twins.has(id), id)
  for (const [n, { id }] of many('one').entries())
    if (n % 33 === 0) assert.deepEqual(await receiptOf(shop, id), [many('two')[n]!.id])
})

test('blanks around an address, as forms send them, are removed: the person is found by it, and twins are', async () => {
  const shop = await shopWith()
  const created_at = '2026-01-31T09:00:00Z'
  const records = [{ record: 'profile', data: { id: 'typed', created_at, email: '\u00a0 EVE@example.com\r\n' } }]
  assert.equal((await shop.post('/records', { records })).body.written, 1)
  assert.equal((await shop.post('/records', { records })).body.unchanged, 1)
  assert.equal(await emailOf(shop, 'typed'), 'EVE@example.com')
  const found = await shop.get('/profiles?filter[email]=eve@example.com')
  assert.deepEqual(found.body.data.map(({ id }: { id: string }) => id).sort(), ['eve', 'typed'])
  assert.equal(await named(shop, 'eve'), 'typed')
})

const BY_CUSTOMER: Record<string, Rows> = {
  'a customer of it is named like the other profile': {
    customers: [{ external_id: 'twin', profile_id: 'ada' }],
  },
  'it is named like a customer of the other profile': {
    customers: [{ external_id: 'ada', profile_id: 'twin' }],
  },
  'a session of the other profile led to a subscription of it': {
    sessions: [{ id: 'session', profile_id: 'twin' }],
    subscriptions: [{ id: 'sub', profile_id: 'ada', session_id: 'session' }],
  },
  'a session of it led to a transaction of the other profile': {
    sessions: [{ id: 'session', profile_id: 'ada' }],
    transactions: [{ id: 'trn', profile_id: 'twin', session_id: 'session' }],
  },
  'a customer of it has the address of the other profile': {
    customers: [{ external_id: 'user-1', profile_id: 'ada', email: 'TWIN@example.com' }],
  },
}
for (const [what, rows] of Object.entries(BY_CUSTOMER)) {
  test(`X-Same-Person names the other profile: ${what}`, async () => {
    const shop = await shopWith({ ...rows, profiles: [{ id: 'twin', email: 'twin@example.com' }] })
    assert.equal(await named(shop, 'ada'), 'twin')
    assert.deepEqual(await receiptOf(shop, 'ada'), ['twin'])
  })
}

test('X-Same-Person names the profile of a customer whose payments the provider knows by the id of it', async () => {
  const shop = await shopWith({
    profiles: [{ id: 'cus_ada' }],
    customers: [{ external_id: 'user-1', profile_id: 'ada' }],
  })
  await addRow(dashboard.server.db, 'report_transactions', {
    ...{ organization_id: shop.organizationId, external_id: 'user-1', imported: true, order_id: ORDER },
    ...{ amount: 5, currency_code: 'USD', status: 'succeeded', psp: 'stripe', psp_transaction_type: 'sale' },
    psp_customer_id: 'cus_ada',
  })
  assert.equal(await named(shop, 'cus_ada'), 'ada')
  assert.equal(await named(shop, 'ada'), undefined)
})

test('the receipt names a twin until it is erased, and so does a repeated erasure', async () => {
  const shop = await shopWith({ profiles: [{ id: 'twin', email: 'ada@example.com' }] })
  assert.equal(await named(shop, 'ada', 'eve'), 'twin')
  assert.equal(await named(shop, 'ada'), 'twin')
  assert.deepEqual([await receiptOf(shop, 'ada'), await receiptOf(shop, 'eve')], [['twin'], []])
  await erase(shop, 'twin')
  assert.deepEqual(await receiptOf(shop, 'ada'), [])
  assert.equal(await named(shop, 'ada'), undefined)
})

test('with_twins erases them in the same transaction and enters them in the ledger; their own twins are named', async () => {
  const shop = await shopWith({
    profiles: [
      { id: 'twin', email: 'ada@example.com' },
      { id: 'far', email: 'far@example.com' },
    ],
    customers: [{ external_id: 'far', profile_id: 'twin' }],
  })
  const path = `/projects/${shop.id}/profiles/ada/erase`
  const { status, body } = await dashboard.server.admin(path, { method: 'POST', body: { with_twins: true } })
  assert.deepEqual([status, body], [200, { id: 'ada', erased: ['ada', 'twin'], same_person: ['far'] }])
  assert.deepEqual([await emailOf(shop, 'twin'), await emailOf(shop, 'far')], [null, 'far@example.com'])
  assert.match(readFileSync(dashboard.server.ledger, 'utf8'), new RegExp(`"${shop.id}","profile_id":"twin"`))
})

test('the page of a person names the twins, and its form erases them with the person', async () => {
  const cookie = await dashboard.signInAs('write')
  const shop = await shopWith({ profiles: [{ id: 'twin', email: 'ada@example.com' }] })
  const page = await dashboard.visit(`/people/ada?project=${shop.id}`, { cookie })
  assert.match(page.text, /Probably the same person.*\/people\/twin\?project=[^>]*>.*has the same e-mail address/s)
  assert.match(page.text, /name="with_twins"/)
  const form = { confirm: 'ada', with_twins: '1' }
  const { status } = await dashboard.visit(`/people/ada/erase?project=${shop.id}`, { cookie, form })
  assert.equal(status, 303)
  assert.equal(await emailOf(shop, 'twin'), null)
})

test('the page of a receipt names the twins that were not erased', async () => {
  const cookie = await dashboard.signInAs('write')
  const shop = await shopWith({ profiles: [{ id: 'twin', email: 'ada@example.com' }] })
  await erase(shop, 'ada')
  const page = await dashboard.visit(`/erasures/ada?project=${shop.id}`, { cookie })
  assert.match(page.text, /Not erased: other profiles.*twin/s)
})
