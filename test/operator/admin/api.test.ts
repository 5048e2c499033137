// The operator's API: keys, scopes, strict parameters, its description, and an audit entry for every write.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { test } from 'node:test'
import { auditHeadsPath } from '../../../src/core/audit/audit.ts'
import { verifyAudit } from '../../../src/core/audit/verify.ts'
import { writeCursor } from '../../../src/core/lists/cursor.ts'
import { isReading } from '../../../src/operator/admin/operation.ts'
import { operations } from '../../../src/operator/admin/operations.ts'
import { openAdmin } from '../../support/admin.ts'
import { ORGANIZATION, PROJECT } from '../../support/events.ts'
import { type Json, ok } from '../../support/server.ts'

const { events, admin } = await openAdmin()

const query = (text: string, params: string[] = []) => events.app.db.query(text, params)

test('401 without a key, with a wrong one, an expired one, and a project’s', async () => {
  const expired = await admin.operator('write', 0)
  for (const key of [null, 'operator_wrong', expired.key, events.secretKey]) {
    const { status, headers, body } = await admin.call('GET', '/organizations', undefined, key)
    assert.deepEqual([status, headers.get('www-authenticate'), typeof body.message], [401, 'Bearer', 'string'])
  }
  assert.equal((await admin.call('GET', '/nowhere', undefined, null)).status, 401)
  assert.equal((await admin.call('GET', '/nowhere')).status, 404)
})

test('a key is kept as a hash alone, and when it was used is noted', async () => {
  const { id, key } = await admin.operator('read')
  await admin.call('GET', '/organizations', undefined, key)
  const [row] = await query('select * from operator_keys where id = $1', [id])
  assert.ok(!JSON.stringify(row).includes(key))
  assert.notEqual(row!.last_used_at, null)
})

test('nothing is ignored: unknown parameters, properties, bodies where none is known', async () => {
  const path = `/projects/${PROJECT}/webhooks`
  for (const [method, where, body] of [
    ['GET', `${path}?color=red`, undefined],
    ['GET', `${path}?limit=0`, undefined],
    ['GET', `${path}?cursor=nonsense`, undefined],
    ['POST', path, { url: 'http://127.0.0.1/', colour: 'red' }],
    ['POST', path, { url: 5 }],
    ['POST', path, undefined],
    ['DELETE', `${path}/x`, { really: true }],
  ] as const) {
    assert.equal((await admin.call(method, where, body)).status, 400, `${method} ${where}`)
  }
})

test('405 with Allow for every other method, 404 at a path that is not there, and 401 without a key', async () => {
  for (const method of ['PUT', 'DELETE', 'OPTIONS', 'PROPFIND', 'QUERY']) {
    const refused = await admin.call(method, `/projects/${PROJECT}/webhooks?limit=1`)
    assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD, POST'], method)
    assert.equal(refused.body.message, `${method} is not allowed at this path: use GET, HEAD, POST.`)
    assert.equal((await admin.call(method, `/projects/${PROJECT}/import`)).headers.get('allow'), 'POST')
    assert.equal((await admin.call(method, '/nothing')).status, 404, method)
    assert.equal((await admin.call(method, '')).status, 404, method)
    assert.equal((await fetch(`${admin.adminUrl}/admin/v1/organizations`, { method })).status, 401, method)
    // The dashboard has the methods of its pages, and none of the API's.
    for (const [page, allow] of [
      ['/revenue', 'GET, HEAD'],
      ['/theme', 'POST'],
    ] as const) {
      const response = await fetch(`${admin.adminUrl}${page}`, { method })
      assert.deepEqual([response.status, response.headers.get('allow')], [405, allow], `${method} ${page}`)
    }
  }
})

test('lists are bounded and walked by cursors; a cursor of another list is refused', async () => {
  for (let n = 0; n < 5; n += 1) await events.event({ object_id: `walked-${n}` })
  const walked: string[] = []
  let cursor = ''
  for (let pages = 0; pages < 10; pages += 1) {
    const { body } = await admin.call('GET', `/projects/${PROJECT}/events?limit=2${cursor && `&cursor=${cursor}`}`)
    walked.push(...body.data.map((event: { object_id: string }) => event.object_id))
    cursor = body.pagination.next_cursor ?? ''
    if (!body.pagination.has_more) break
  }
  assert.deepEqual(
    walked,
    [4, 3, 2, 1, 0].map((n) => `walked-${n}`),
  )
  const { body } = await admin.call('GET', `/projects/${PROJECT}/events?limit=2`)
  const elsewhere = `/projects/${PROJECT}/events?limit=2&type=charge.failed&cursor=${body.pagination.next_cursor}`
  assert.equal((await admin.call('GET', elsewhere)).status, 400)
})

test('every row of a list is on one page, however long the names are that order it', async () => {
  const longest = 'x'.repeat(63)
  const credits = `/organizations/${ORGANIZATION}/credits`
  const call = (...given: Parameters<typeof admin.call>) => ok(admin.call(...given))
  await call('POST', `${credits}/units/${longest}`, {})
  for (const [n, letter] of ['a', 'é', '猫', 'b'].entries()) {
    const customer = { external_id: letter.repeat(256) }
    const money = { currency_code: 'USD', amount: 9, grants: 10, most_per_day: 1, most_per_month: 1 }
    await call('POST', `/projects/${PROJECT}/import`, JSON.stringify({ record: 'customer', data: customer }))
    await call('PUT', `${credits}/top-ups`, { ...customer, unit: longest, below: 1, ...money })
    const charged = { currency_code: 'USD', charged: `12345678901234${n}.99` }
    await call('PUT', `${credits}/units/${longest}/rules`, { ...charged, amount: 1 })
    await query(`insert into waiting_links values ($1, 'subscription', $2, 'experiment_id', 'exp_1', db_clock())`, [
      PROJECT,
      `${longest}${n}`,
    ])
  }
  for (const [path, key] of [
    [`${credits}/top-ups`, 'external_id'],
    [`${credits}/rules`, 'charged'],
    [`/projects/${PROJECT}/waiting-links`, 'id'],
  ] as const) {
    const whole = (await admin.call('GET', path)).body.data
    const walked: object[] = []
    for (let cursor = '', pages = 0; pages < 10; pages += 1) {
      const body = await ok(admin.call('GET', `${path}?limit=1${cursor && `&cursor=${cursor}`}`))
      walked.push(...body.data)
      cursor = body.pagination.next_cursor
      if (!body.pagination.has_more) break
    }
    assert.deepEqual([walked, new Set(whole.map((one: Json) => one[key])).size], [whole, 4], path)
  }
})

test('a cursor that a caller made up is refused by every list, or is a place in it', async () => {
  const params: Record<string, string> = {
    organization_id: ORGANIZATION,
    project_id: PROJECT,
    event_id: await events.event(),
  }
  const lists = operations.filter((one) => isReading(one) && one.query?.properties['cursor'])
  assert.ok(lists.length >= 14)
  for (const { id, path } of lists) {
    const names = [...path.matchAll(/:(\w+)/g)].map(([, name]) => name!)
    const where = names.reduce((text, name) => text.replace(`:${name}`, params[name]!), path)
    const given = path.endsWith('/stuck') ? { minutes: 10 } : {}
    const binding = JSON.stringify([id, names.map((name) => params[name]), given])
    const statuses = new Set<number>()
    for (const key of [randomUUID(), '7', '9'.repeat(20), 'x']) {
      const cursor = writeCursor({ at: '2026-01-01T00:00:00.000000Z', id: key, total: 0 }, binding)
      const { status, body } = await admin.call('GET', `${where}?cursor=${cursor}`)
      if (status !== 200) assert.match(body.message, /^cursor must be a next_cursor of this list/, `${id} after ${key}`)
      statuses.add(status)
    }
    assert.ok(statuses.has(200), `${id} takes no cursor`)
  }
})

test('the audit log has what was before and after a change, and is intact; a read-only key adds nothing to it', async () => {
  const profile = (id: string) =>
    JSON.stringify({ record: 'profile', data: { id, created_at: '2026-01-01T00:00:00Z' } })
  await admin.call('POST', `/projects/${PROJECT}/import`, `${profile('pro_leaves')}\n${profile('pro_remains')}\n`)
  await query(`insert into instance (name, value) values ('restored 2026-01-01T00:00:00.000000Z', '{}')`)
  const limits = { one_off_charge_enabled: true, one_off_charge_max_amount: { '*': 700, JPY: '90000' } }
  const reader = (await admin.operator('read')).key
  for (const [method, path, body, action] of [
    ['PATCH', `/organizations/${ORGANIZATION}`, limits, 'organization.set'],
    // Those of which the matrix of tenants has no successful call.
    ['POST', `/organizations/${ORGANIZATION}/credits/units/tokens`, { decimals: 2 }, 'credit_unit.created'],
    ['POST', `/projects/${PROJECT}/profiles/pro_leaves/merge/pro_remains`, undefined, 'profile.merge_asked'],
    ['POST', '/restored-keys/confirm', undefined, 'keys.confirmed'],
  ] as const) {
    const count = async () => Number((await query('select count(*) as n from audit_log'))[0]!.n)
    const before = await count()
    assert.equal((await admin.call(method, path, body, reader)).status, 403, path)
    assert.equal(await count(), before, path)
    await ok(admin.call(method, path, body))
    const rows = await query('select action, actor from audit_log where sequence > $1', [String(before)])
    assert.deepEqual(rows[0], { action, actor: admin.operatorId })
  }
  const verdict = await verifyAudit(events.app.db, events.app.seal, auditHeadsPath(events.app.config))
  assert.deepEqual(verdict.wrong, [])
  assert.deepEqual((await admin.call('GET', '/audit/verify')).body, verdict)
  const { body } = await admin.call('GET', `/audit?target=organization%20${ORGANIZATION}`)
  const entry = body.data.find((one: { action: string }) => one.action === 'organization.set')
  assert.equal(entry.before.one_off_charge_enabled, false)
  assert.deepEqual(entry.after, {
    erase_at_provider: 'off',
    one_off_charge_enabled: true,
    one_off_charge_max_amount: { '*': '700', JPY: '90000' },
  })
})

test('the query of the URL of a webhook or an alert, which may be a secret, is in no entry of the audit log', async () => {
  const url = (token: string) => `https://example.com/hook?token=${token}`
  const project = `/projects/${PROJECT}`
  const { body: made } = await admin.call('POST', `${project}/webhooks`, { url: url('t0pSecret1') })
  assert.equal(made.url, url('t0pSecret1'))
  const { body: set } = await admin.call('PATCH', `${project}/webhooks/${made.id}`, { url: url('t0pSecret2') })
  assert.equal(set.url, url('t0pSecret2'))
  const alert = { kind: 'webhook', address: url('t0pSecret3') }
  const { body: destination } = await admin.call('PUT', `${project}/alert-destinations/secret`, alert)
  assert.equal(destination.address, alert.address)
  await admin.call('DELETE', `${project}/webhooks/${made.id}`)
  await admin.call('DELETE', `${project}/alert-destinations/secret`)
  const entries = await query(`select action, before::text, after::text from audit_log a where a::text like '%/hook%'`)
  assert.deepEqual(entries.map(({ action }) => action).sort(), [
    'alert_destination.removed',
    'alert_destination.set',
    'webhook.created',
    'webhook.removed',
    'webhook.set',
  ])
  for (const { before, after } of entries)
    for (const one of [before, after].filter((kept) => typeof kept === 'string')) {
      assert.doesNotMatch(one, /t0pSecret/)
      assert.match(one, /https:\/\/example\.com\/hook\?…/)
    }
})

test('the audit log has what was before each of concurrent changes, and before a removal', async () => {
  const target = `credits of organization ${ORGANIZATION}`
  const entriesOf = async (about: string) =>
    (await admin.call('GET', `/audit?target=${encodeURIComponent(about)}`)).body.data.toReversed()
  const organization = `/organizations/${ORGANIZATION}`
  const numbers = Array.from({ length: 8 }, (_, n) => n)
  const money = { currency_code: 'USD', charged: '5' }
  await admin.call('POST', `${organization}/credits/units/audited`, { decimals: 2 })
  for (const [about, path, bodyOf] of [
    [
      `${target}: cap organization month`,
      'credits/caps',
      (n: number) => ({ scope: 'organization', per: 'month', most: n }),
    ],
    [
      `merchant account simulator audited of organization ${ORGANIZATION}`,
      'merchant-accounts/simulator/audited',
      (n: number) => ({ region: String(n) }),
    ],
    [
      `${target}: rule USD 5.00 audited`,
      'credits/units/audited/rules',
      (n: number) => ({ ...money, amount: n + 1, expires_after: '1d' }),
    ],
  ] as const) {
    const calls = await Promise.all(numbers.map((n) => admin.call('PUT', `${organization}/${path}`, bodyOf(n))))
    assert.deepEqual(new Set(calls.map(({ status }) => status)), new Set([200]))
    const entries = await entriesOf(about)
    assert.equal(entries.length, numbers.length, about)
    const text = (one: Json) =>
      JSON.stringify(one, (_key, value) => (typeof value === 'number' ? String(value) : value))
    assert.deepEqual(
      entries.map(({ before }: Json) => text(before)),
      [null, ...entries.slice(0, -1).map(({ after }: Json) => after)].map(text),
      about,
    )
  }
  await admin.call('POST', `${organization}/credits/units/audited/rules/remove`, money)
  const [set, removed] = (await entriesOf(`${target}: rule USD 5.00 audited`)).slice(-2)
  assert.deepEqual([removed.action, removed.before.amount], ['credit_rule.removed', set.after.amount])
})

test('a currency that is given twice is stored once', async () => {
  const path = `/organizations/${ORGANIZATION}/merchant-accounts/simulator/offers`
  const { body } = await admin.call('PUT', path, { currencies: ['usd', 'EUR', 'USD'] })
  assert.deepEqual(body.currencies, ['USD', 'EUR'])
})

test('people and subscriptions are found by an address with a + that is not encoded', async () => {
  const created_at = '2026-01-01T00:00:00Z'
  const terms = { status: 'active', renews: true, price: 1, currency: 'USD', billing_interval: 'month' }
  const lines = [
    { record: 'profile', data: { id: 'pro_plus', created_at, email: 'Plus+tag@example.com' } },
    { record: 'product', data: { id: 'prod_plus', created_at, name: 'Plus', status: 'active' } },
    {
      record: 'subscription',
      data: {
        id: 'sub_plus',
        created_at,
        ...terms,
        billing_interval_count: 1,
        profile_id: 'pro_plus',
        product_id: 'prod_plus',
      },
    },
  ]
  const imported = lines.map((one) => JSON.stringify(one)).join('\n')
  assert.equal((await admin.call('POST', `/projects/${PROJECT}/import`, imported)).status, 200)
  for (const email of ['plus+tag@example.com', 'plus%2Btag@example.com'])
    for (const [records, id] of [
      ['profiles', 'pro_plus'],
      ['subscriptions', 'sub_plus'],
    ] as const) {
      const { body } = await admin.call('GET', `/projects/${PROJECT}/${records}?email=${email}`)
      assert.deepEqual(
        body.data.map((one: Json) => one.id),
        [id],
        `${records} of ${email}`,
      )
    }
})
