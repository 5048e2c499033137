// The operator's API: keys, scopes, strict parameters, its description, and an audit entry for every write.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { auditHeadsPath } from '../../../src/core/audit/audit.ts'
import { verifyAudit } from '../../../src/core/audit/verify.ts'
import { writeCursor } from '../../../src/core/lists/cursor.ts'
import { isReading } from '../../../src/operator/admin/operation.ts'
import { operations } from '../../../src/operator/admin/operations.ts'
import { startAdmin } from '../../support/admin.ts'
import { ORGANIZATION, openEvents, PROJECT } from '../../support/events.ts'
import { storeOrder } from '../../support/imports.ts'

const events = await openEvents()
const admin = await startAdmin(events)
after(async () => {
  await admin.stop()
  await events.close()
})

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

test('the operator’s API is not on the public listener, nor the public one on the operator’s', async () => {
  const headers = { authorization: `Bearer ${admin.key}` }
  assert.notEqual((await fetch(`${admin.url}/admin/v1/organizations`, { headers })).status, 200)
  assert.equal((await fetch(`${admin.adminUrl}/public/v1/funnels`)).status, 404)
})

test('nothing is ignored: unknown parameters, properties, bodies where none is known; methods are refused with Allow', async () => {
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
  const refused = await admin.call('PUT', path, {})
  assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD, POST'])
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

test('a cursor that a caller made up is refused by every list, or is a place in it', async () => {
  const params: Record<string, string> = { organization_id: ORGANIZATION, project_id: PROJECT, event_id: randomUUID() }
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

// What is refused here, after it was entered in the log.
const REFUSED: Record<string, number> = {
  refundOrder: 400,
  resolveOrder: 409,
  connectMerchantAccount: 409,
  adoptLostMovement: 409,
}

// What each operation that writes is called with, by its operationId: a new one without a line here fails the test below.
const WRITES: Record<string, () => Promise<[path: string, body: unknown]>> = {
  createOrganization: async () => ['/organizations', { id: 'audited' }],
  setOrganization: async () => [
    `/organizations/${ORGANIZATION}`,
    { one_off_charge_enabled: true, one_off_charge_max_amount: { '*': 700, JPY: '90000' } },
  ],
  createProject: async () => [`/organizations/${ORGANIZATION}/projects`, { id: 'audited-project', name: 'Audited' }],
  setMerchantAccount: async () => [
    `/organizations/${ORGANIZATION}/merchant-accounts/simulator/m%201`,
    { currencies: ['eur', 'USD'] },
  ],
  createCreditUnit: async () => [`${CREDITS}/units/tokens`, { decimals: 2, low_below: '10' }],
  setCreditUnit: async () => [`${CREDITS}/units/${await unit()}`, { low_below: null }],
  setCreditRule: async () => [
    `${CREDITS}/units/${await unit()}/rules`,
    { currency_code: 'usd', charged: 9.99, amount: '100', expires_after: '90d' },
  ],
  removeCreditRule: async () => {
    const charge = { currency_code: 'USD', charged: 5 }
    const path = `${CREDITS}/units/${await unit()}/rules`
    await admin.call('PUT', path, { ...charge, amount: 1 })
    return [`${path}/remove`, charge]
  },
  setChargeCap: async () => [`${CREDITS}/caps`, { scope: 'customer', per: 'day', currency_code: 'usd', most: '50.5' }],
  removeChargeCap: async () => {
    await admin.call('PUT', `${CREDITS}/caps`, { scope: 'organization', per: 'week', most: 5 })
    return [`${CREDITS}/caps/remove`, { scope: 'organization', per: 'week' }]
  },
  grantCustomerCredits: async () => [
    `${CREDITS}/grant`,
    { external_id: await customer(), unit: await unit(), amount: 5, idempotency_key: 'g' },
  ],
  adjustCustomerCredits: async () => [
    `${CREDITS}/adjust`,
    { external_id: await customer(), unit: await unit(), amount: 5, reason: 'asked', idempotency_key: 'a' },
  ],
  setCustomerTopUp: async () => [
    `${CREDITS}/top-ups`,
    { external_id: await customer(), unit: await unit(), ...TOP_UP },
  ],
  removeCustomerTopUp: async () => {
    const name = { external_id: await customer(), unit: await unit() }
    await admin.call('PUT', `${CREDITS}/top-ups`, { ...name, ...TOP_UP })
    return [`${CREDITS}/top-ups/remove`, name]
  },
  setCredits: async () => [CREDITS, { debt: false }],
  connectMerchantAccount: async () => [
    `/organizations/${ORGANIZATION}/merchant-accounts/stripe/m1/connect`,
    { sandbox: false, secret_key: 'sk_test_12345678' },
  ],
  disconnectMerchantAccount: async () => {
    await insertConnectedAccount('m2')
    return [`/organizations/${ORGANIZATION}/merchant-accounts/stripe/m2/disconnect`, undefined]
  },
  loadSpend: async () => [
    `/projects/${PROJECT}/spend`,
    { rows: [{ day: '2026-01-31', source: 'google', currency: 'USD', amount: '1.00' }] },
  ],
  rebuildFigures: async () => [`/projects/${PROJECT}/figures/rebuild`, undefined],
  startStripeImport: async () => {
    await insertConnectedAccount('m3')
    return [`/projects/${PROJECT}/stripe-imports/m3`, { follow: true, since: '2026-01-01T00:00:00Z' }]
  },
  stopStripeImport: async () => [`/projects/${PROJECT}/stripe-imports/m3`, undefined],
  setOrganizationRateLimit: async () => [`/organizations/${ORGANIZATION}/rate-limit`, { rate_limit: '200/1000' }],
  setProjectRateLimit: async () => [`/projects/${PROJECT}/rate-limit`, { rate_limit: 'off' }],
  setProjectWritePayments: async () => [`/projects/${PROJECT}/write-payments`, { write_payments: true }],
  setProjectReporting: async () => [`/projects/${PROJECT}/reporting`, { time_zone: 'UTC' }],
  createOrganizationKey: async () => [`/organizations/${ORGANIZATION}/keys`, { name: 'second' }],
  createProjectKey: async () => [`/projects/${PROJECT}/keys`, { name: 'second' }],
  rotateOrganizationKey: async () => [
    `/organizations/${ORGANIZATION}/keys/${await keyId('organizations', ORGANIZATION)}/rotate`,
    { overlap_seconds: 60 },
  ],
  rotateProjectKey: async () => [`/projects/${PROJECT}/keys/${await keyId('projects', PROJECT)}/rotate`, {}],
  revokeOrganizationKey: async () => [
    `/organizations/${ORGANIZATION}/keys/${await keyId('organizations', ORGANIZATION)}`,
    undefined,
  ],
  revokeProjectKey: async () => [`/projects/${PROJECT}/keys/${await keyId('projects', PROJECT)}`, undefined],
  createWebhook: async () => [`/projects/${PROJECT}/webhooks`, { url: 'http://127.0.0.1:9/' }],
  setWebhook: async () => [`/projects/${PROJECT}/webhooks/${await webhookId()}`, { kinds: ['charge.failed'] }],
  removeWebhook: async () => [`/projects/${PROJECT}/webhooks/${await webhookId()}`, undefined],
  testWebhook: async () => [`/projects/${PROJECT}/webhooks/${await webhookId()}/test`, undefined],
  putAlert: async () => [`/projects/${PROJECT}/alerts/low`, LOW],
  removeAlert: async () => {
    await admin.call('PUT', `/projects/${PROJECT}/alerts/removed`, LOW)
    return [`/projects/${PROJECT}/alerts/removed`, undefined]
  },
  putAlertSettings: async () => [
    `/projects/${PROJECT}/alert-settings`,
    { digest_hour: 7, quiet_from: 22, quiet_to: 6 },
  ],
  putAlertDestination: async () => [`/projects/${PROJECT}/alert-destinations/team`, CHAT],
  removeAlertDestination: async () => {
    await admin.call('PUT', `/projects/${PROJECT}/alert-destinations/removed`, CHAT)
    return [`/projects/${PROJECT}/alert-destinations/removed`, undefined]
  },
  sendAlertNow: async () => {
    await admin.call('PUT', `/projects/${PROJECT}/alert-destinations/now`, CHAT)
    return [`/projects/${PROJECT}/alert-messages`, { destination_id: 'now' }]
  },
  sendEventAgain: async () => {
    await webhookId()
    return [`/projects/${PROJECT}/events/${await events.event()}/send`, undefined]
  },
  refundOrder: async () => [`/organizations/${ORGANIZATION}/orders/${await orderId()}/refund`, { reason: 'asked' }],
  resolveOrder: async () => [
    `/organizations/${ORGANIZATION}/orders/0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55/resolve`,
    { as: 'failed', because: 'asked' },
  ],
  mergeProfiles: async () => [
    `/projects/${PROJECT}/profiles/${await profileId('pro_leaves')}/merge/${await profileId('pro_remains')}`,
    undefined,
  ],
  adoptLostMovement: async () => [await lostMovement('adopt'), {}],
  acceptLostMovement: async () => [await lostMovement('accept'), { because: 'another installation made it' }],
  closeFinanceMonth: async () => [`/organizations/${ORGANIZATION}/finance/months`, { month: '2015-01' }],
  matchPayout: async () => [await payoutLine('po_matched'), { day: '2026-01-05', amount: '7.50' }],
  unmatchPayout: async () => [await payoutLine('po_unmatched'), undefined],
  confirmRestoredKeys: async () => {
    await query(`insert into instance (name, value) values ('restored 2026-01-01T00:00:00.000000Z', '{}')`)
    return ['/restored-keys/confirm', undefined]
  },
  eraseProfile: async () => [`/projects/${PROJECT}/profiles/${await profileId()}/erase`, undefined],
  importRecords: async () => [
    `/projects/${PROJECT}/import?dry_run=true`,
    '{"record":"funnel","data":{"id":"f","title":"F","created_at":"2026-01-01T00:00:00Z"}}\n',
  ],
}

const LOW = { metric: 'revenue', condition: 'below', threshold: '1000.50' }
const CHAT = { kind: 'slack', address: 'http://127.0.0.1:9/services/secret', receives: ['digest'] }
const CREDITS = `/organizations/${ORGANIZATION}/credits`
const TOP_UP = { below: 5, amount: 5, currency_code: 'usd', grants: 10, most_per_day: 1, most_per_month: 2 }
let units = 0
const unit = async () => {
  const id = `unit-${++units}`
  assert.equal((await admin.call('POST', `${CREDITS}/units/${id}`, {})).status, 200)
  return id
}
const customer = async () => {
  const line = { record: 'customer', data: { external_id: 'audited' } }
  await admin.call('POST', `/projects/${PROJECT}/import`, `${JSON.stringify(line)}\n`)
  return 'audited'
}

const keyId = async (kind: string, id: string) => {
  await admin.call('POST', `/${kind}/${id}/keys`, { name: 'one more' })
  return (await admin.call('GET', `/${kind}/${id}/keys`)).body.data.find((key: { living: boolean }) => key.living).id
}
const profileId = async (id = 'pro_audited') => {
  const line = { record: 'profile', data: { id, created_at: '2026-01-01T00:00:00Z' } }
  await admin.call('POST', `/projects/${PROJECT}/import`, `${JSON.stringify(line)}\n`)
  return id
}
const lostMovement = async (verb: string) => {
  await query(
    `insert into lost_movements (organization_id, psp, psp_merchant_id, transaction_id, type, state, provider_key, amount,
       currency_code, moved_at, found_at)
     values ($1, 'stripe', 'm4', $2, 'charge', 'moved', $2, 1, 'USD', db_clock(), db_clock())`,
    [ORGANIZATION, `pi_${verb}`],
  )
  return `/organizations/${ORGANIZATION}/lost-movements/stripe/m4/pi_${verb}/${verb}`
}
const payoutLine = async (id: string) => {
  await query(
    `insert into provider_payouts (organization_id, psp, psp_merchant_id, payout_id, amount, currency_code, status, is_automatic,
       arrives_on, created_at)
     values ($1, 'stripe', 'm4', $2, 7.5, 'USD', 'paid', true, '2026-01-04', db_clock())`,
    [ORGANIZATION, id],
  )
  return `/organizations/${ORGANIZATION}/finance/payouts/stripe/m4/${id}/bank`
}
const webhookId = () => events.endpoint('http://127.0.0.1:9/')
/** An order that was charged somewhere else, so that a refund is refused: what was tried must be known all the same. */
const insertConnectedAccount = (merchantId: string) =>
  query(
    `insert into merchant_accounts (organization_id, psp, psp_merchant_id, is_sandbox, credentials, credentials_last4,
       connected_at, created_at, updated_at)
     values ($1, 'stripe', $2, true, 'sealed', '5678', db_clock(), db_clock(), db_clock())
     on conflict do nothing`,
    [ORGANIZATION, merchantId],
  )

async function orderId() {
  const id = '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55'
  await storeOrder(events.app.db, { id: PROJECT, organizationId: ORGANIZATION }, id, 'k', 'simulator')
  return id
}

test('every write of the description is in the audit log, and is refused to a read-only key', async () => {
  const description = (await (await fetch(`${admin.adminUrl}/openapi.json`)).json()) as {
    paths: Record<string, Record<string, { operationId: string }>>
  }
  const writes = Object.values(description.paths).flatMap((methods) =>
    Object.entries(methods)
      .filter(([method]) => method !== 'get')
      .map(([method, { operationId }]) => [method.toUpperCase(), operationId] as const),
  )
  assert.deepEqual(writes.map(([, id]) => id).sort(), Object.keys(WRITES).sort())
  const reader = (await admin.operator('read')).key
  for (const [method, id] of writes) {
    const [path, body] = await WRITES[id]!()
    assert.equal((await admin.call(method, path, body, reader)).status, 403, id)
    const [count] = await query('select count(*) as n from audit_log')
    const { status, body: response } = await admin.call(method, path, body)
    assert.equal(status, REFUSED[id] ?? 200, `${id}: ${status} ${response.message}`)
    const rows = await query('select * from audit_log where sequence > $1 order by sequence', [count!.n!])
    assert.ok(rows.length > 0, `${id} is not in the audit log`)
    for (const row of rows) {
      assert.deepEqual([row.actor_kind, row.actor, row.source], ['operator key', admin.operatorId, '127.0.0.1'], id)
    }
    for (const secret of [response.secret_key, response.webhook_secret]) {
      if (secret) assert.ok(!JSON.stringify(rows).includes(secret), `${id} tells a secret`)
    }
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
