// Roles × operations × reach, generated from the list of operations: an operation without a declaration fails here.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Reach, type RefundLimits, ROLES, type Role } from '../../../src/core/tenants/access.ts'
import { createOperator, type NewOperator } from '../../../src/core/tenants/operator-keys.ts'
import { IMPORT } from '../../../src/operator/admin/imports.ts'
import { operations as declared } from '../../../src/operator/admin/operations.ts'
import { callerOf, type MatrixOperation, operationsOf } from '../../conformance/apis.ts'
import {
  contentsOf,
  makeTenant,
  missingObjects,
  type TenantWithKeys,
  withFresh,
} from '../../conformance/tenant-pair.ts'
import { RULES } from '../../conformance/tenant-rules.ts'
import { startBilling } from '../../support/billing.ts'
import { type ApiResponse, ok } from '../../support/server.ts'

const KEYS = ['Organization', 'Project'].flatMap((what) => [`create${what}Key`, `rotate${what}Key`, `revoke${what}Key`])

/** What each role may change: the contract's table, operation by operation. */
const CHANGES: Record<Exclude<Role, 'owner'>, string[]> = {
  developer: [
    ...KEYS,
    ...['putAlert', 'removeAlert', 'putAlertSettings', 'putAlertDestination', 'removeAlertDestination', 'sendAlertNow'],
    ...['createWebhook', 'setWebhook', 'removeWebhook', 'testWebhook', 'sendEventAgain'],
    ...['startStripeImport', 'stopStripeImport', 'importRecords', 'loadSpend', 'rebuildFigures'],
    ...['setMerchantAccount', 'connectMerchantAccount', 'disconnectMerchantAccount'],
  ],
  support: ['refundOrder', 'eraseProfile', 'sendEventAgain'],
  finance: ['closeFinanceMonth', 'matchPayout', 'unmatchPayout'],
  analyst: [],
  read: [],
}
const FIGURES = [
  ...[
    'getProjectFigures',
    'getOrganizationFigures',
    'getProjectNames',
    'getProjectState',
    'getProjectSetup',
    'getFunnelScreens',
    'getCreditTotals',
    'getCreditDays',
    'getAcquisition',
    'getLifetime',
    'getExperimentResults',
    'getChurn',
    'getRenewalForecast',
    'getToday',
    'getAnswers',
    'getExchangeRates',
  ],
  ...['listOrganizations', 'listProjects', 'getOrganization', 'getProject'],
]
/** What the two roles that see no people may read; all others read everything. */
const READINGS: Partial<Record<Role, string[]>> = {
  finance: [
    ...FIGURES,
    'getFinanceReport',
    'listFinanceRows',
    'getTieOut',
    'listFinanceMonths',
    ...['listPayouts', 'listBalanceEntries', 'getUnpaidBalance'],
    'listTieOutRows',
    'listRefunds',
    'listMoneyBack',
  ],
  analyst: FIGURES,
}
/** Of the installation: nobody with a smaller reach may call them. */
const OF_ALL = [
  'listOperators',
  'confirmRestoredKeys',
  'createOrganization',
  'listAuditEntries',
  'verifyAudit',
  'compareLedgers',
]
/** Of a whole organization, but open to those who reach one of its projects, for their part. */
const NARROWED = [
  ...['getOrganization', 'getOrganizationFigures', 'listOrders', 'getOrder', 'refundOrder', 'resolveOrder'],
  ...['listRefunds', 'listMoneyBack', 'listDeclinedPayments'],
]

const mayCall = (role: Role, { id, method }: MatrixOperation): boolean =>
  role === 'owner' || (method === 'GET' ? (READINGS[role]?.includes(id) ?? true) : CHANGES[role].includes(id))

const billing = await startBilling({ WEBHOOK_ALLOW_PRIVATE: 'true', UNAUTHORIZED_RATE: '1000000' }, { worker: false })
after(() => billing.stop())
const ours = await makeTenant(billing, 'mine')
const theirs = await makeTenant(billing, 'theirs')
const send = callerOf(billing.server)
const operations = (await operationsOf(billing.server)).filter(({ api }) => api.name === 'operator')

describe('roles and reach', () => {
  const operator = async (given: Omit<NewOperator, 'name'>) =>
    (await billing.db.tx((query) => createOperator(query, { name: 'test', ...given }))).key

  const FIELDS: Record<string, keyof TenantWithKeys> = {
    organization_id: 'organization',
    project_id: 'project',
    order_id: 'order',
    event_id: 'event',
    webhook_id: 'webhook',
    key_id: 'spareKey',
  }
  const call = ({ id, api, method, path }: MatrixOperation, it: TenantWithKeys, key: string, more = '') => {
    const { query, body } = RULES[id] ?? {}
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => it[FIELDS[name] ?? 'mark'] || 'none')
    const search = new URLSearchParams({ ...query?.(it), ...(more && { [more]: '1' }) })
    return send({ api, method, key, path: `${filled}?${search}`, body: body?.(it, it) })
  }
  const ask = (method: 'GET' | 'POST' | 'PUT', path: string, key: string, body?: object | string) =>
    send({ api: operations[0]!.api, method, path: `/admin/v1${path}`, key, body })
  const code = ({ headers }: ApiResponse) => headers['x-error-code']

  test('every described operation declares a right', () => {
    assert.deepEqual([...declared, IMPORT].map(({ id }) => id).sort(), operations.map(({ id }) => id).sort())
  })

  for (const role of ROLES)
    test(`${role}: 403 with the role for what it may not do, and nothing else is refused`, async () => {
      const key = await operator({ role })
      for (const operation of operations) {
        // A parameter that no operation has: what is allowed is a 400, and changes nothing.
        const response = await call(operation, ours, key, 'no_such_parameter')
        if (mayCall(role, operation)) assert.equal(response.status, 400, `${operation.id}: ${response.text}`)
        else {
          assert.deepEqual([response.status, code(response)], [403, 'role_missing'], operation.id)
          assert.match(response.body.message, new RegExp(`^The role "${role}" may not do this: it needs owner`))
        }
      }
    })

  const REACHES: [name: string, of: (it: TenantWithKeys) => Reach][] = [
    ['an organization', (it) => ({ organizations: [it.organization], projects: [] })],
    ['a project', (it) => ({ organizations: [], projects: [it.project] })],
  ]
  for (const [name, reachOf] of REACHES)
    test(`reach of ${name}: outside it a 404 as for what does not exist, inside as for all`, async () => {
      const key = await operator({ role: 'owner', reach: reachOf(ours) })
      const full = await operator({ role: 'owner' })
      const held = await contentsOf(billing.db, theirs)
      for (const operation of operations) {
        const { id, method, path } = operation
        const outside = await call(operation, theirs, key)
        if (OF_ALL.includes(id)) {
          assert.deepEqual([outside.status, code(outside)], [403, 'reach_missing'], id)
          continue
        }
        if (path.includes('{organization_id}') || path.includes('{project_id}')) {
          const nobody = { ...missingObjects(theirs), organization: 'nobody', project: 'nobody' } as TenantWithKeys
          const absent = await call(operation, nobody, key)
          const masked = outside.text.replaceAll(theirs.project, 'nobody').replaceAll(theirs.organization, 'nobody')
          assert.deepEqual([outside.status, masked], [404, absent.text], id)
        } else if (method === 'GET') {
          assert.equal(outside.status, 200, id)
          for (const text of [theirs.organization, theirs.project, theirs.customer])
            assert.ok(!outside.text.includes(text), `${id}: ${outside.text}`)
        }
        const us = await withFresh(billing, ours, path)
        const isOpen = name === 'an organization' || !path.includes('{organization_id}') || NARROWED.includes(id)
        const inside = await call(operation, us, key)
        if (!isOpen) assert.deepEqual([inside.status, code(inside)], [404, 'object_not_found'], id)
        else if (method === 'GET') {
          const expected = await call(operation, us, full)
          if (path.includes('{'))
            assert.deepEqual([inside.status, shown(inside)], [expected.status, shown(expected)], id)
          else assert.ok(inside.status === 200 && !inside.text.includes(theirs.project), `${id}: ${inside.text}`)
        } else assert.doesNotMatch(inside.text, /There is no (organization|project) /, id)
      }
      assert.equal(await contentsOf(billing.db, theirs), held)
    })

  test('what all projects of an organization share needs its reach, under the path of a project too', async () => {
    const path = `/projects/${ours.project}`
    const data = { psp: 'stripe', psp_merchant_id: 'acct_shared', region: 'mars', currencies: ['XOF'] }
    const stored = async () =>
      (await billing.db.query("select region from merchant_accounts where psp_merchant_id = 'acct_shared'")).length
    const by = async (reach: Reach) => {
      const key = await operator({ role: 'owner', reach })
      return [
        await ask('POST', `${path}/stripe-imports/acct_shared`, key, {}),
        await ask('PUT', `${path}/write-payments`, key, { write_payments: true }),
        await ask('POST', `${path}/import`, key, `${JSON.stringify({ record: 'merchant_account', data })}\n`),
      ]
    }
    const [imported, writing, lines] = await by({ organizations: [], projects: [ours.project] })
    for (const one of [imported!, writing!]) assert.deepEqual([one.status, code(one)], [403, 'reach_missing'], one.text)
    assert.deepEqual([lines!.status, lines!.body.rejects[0].code, await stored()], [400, 'not_allowed', 0])
    const open = await by({ organizations: [ours.organization], projects: [] })
    // It is not connected.
    assert.deepEqual([open.map(({ status }) => status), await stored()], [[404, 200, 200], 1])
  })

  test('developer: makes and rotates keys that may do no more than it may', async () => {
    const [key, owner] = [await operator({ role: 'developer' }), await operator({ role: 'owner' })]
    const post = (path: string, body: object, by = key) => ask('POST', `${path}/keys`, by, body)
    const rotate = (path: string, id: string) => ask('POST', `${path}/keys/${id}/rotate`, key, {})
    const [ofProject, ofOrganization] = [`/projects/${ours.project}`, `/organizations/${ours.organization}`]
    const allowed: [string, string[]][] = [
      [ofProject, ['read', 'write']],
      [ofOrganization, ['report']],
    ]
    for (const [path, scope] of allowed) {
      const made = await post(path, { name: 'mine', scope })
      assert.equal(made.status, 200, made.text)
      await ok(rotate(path, made.body.id))
    }
    const refused: [string, string[] | undefined, string][] = [
      [ofProject, undefined, 'a full key'],
      [ofProject, ['read', 'erase'], 'a key with the scope "erase"'],
      [ofOrganization, undefined, 'a full key'],
      [ofOrganization, ['charge'], 'a key with the scope "charge"'],
      [ofOrganization, ['refund'], 'a key with the scope "refund"'],
    ]
    for (const [path, scope, what] of refused) {
      const body = { name: 'more', ...(scope && { scope }) }
      const made = await post(path, body)
      assert.deepEqual(
        [made.status, code(made), made.body.message],
        [403, 'role_missing', `The role "developer" may not make ${what}: it needs owner.`],
      )
      const { id } = (await post(path, body, owner)).body
      const rotated = await rotate(path, id)
      assert.deepEqual([rotated.status, code(rotated)], [403, 'role_missing'])
      const { data } = (await ask('GET', `${path}/keys`, key)).body
      assert.equal(data.find((one: { id: string }) => one.id === id).living, true)
    }
  })

  test('what is across tenants has what is within the reach', async () => {
    for (const [name, reachOf] of REACHES) {
      const key = await operator({ role: 'read', reach: reachOf(ours) })
      const get = async (path: string) => (await ask('GET', path, key)).body
      const owners = (await get('/projects')).data.map((one: { organization_id: string }) => one.organization_id)
      assert.deepEqual([...new Set(owners)], [ours.organization], name)
      const organizations = (await get('/organizations')).data
      assert.deepEqual(
        organizations.map((one: { id: string }) => one.id),
        [ours.organization],
        name,
      )
      const kinds = async (q: string) => (await get(`/search?q=${q}`)).results.map((one: { kind: string }) => one.kind)
      assert.ok((await kinds(ours.customer)).includes('customer'), name)
      assert.ok((await kinds(ours.order)).includes('order'), name)
      assert.deepEqual(
        [await kinds(theirs.customer), await kinds(theirs.order), await kinds(theirs.project)],
        [[], [], []],
      )
    }
  })

  test('finance and analysts see nothing that identifies people', async () => {
    const person = [ours.customer, 'external_id', 'email', '@']
    for (const role of ['finance', 'analyst'] as const) {
      const key = await operator({ role })
      for (const operation of operations) {
        // A month is closed once, and was above.
        if (!mayCall(role, operation) || operation.id === 'closeFinanceMonth') continue
        const { status, text } = await call(operation, ours, key)
        assert.equal(status, 200, `${operation.id}: ${text}`)
        assert.deepEqual(
          person.filter((one) => text.includes(one)),
          [],
          `${operation.id}: ${text}`,
        )
      }
    }
    const finance = await operator({ role: 'finance' })
    const rows = await call(operations.find(({ id }) => id === 'listFinanceRows')!, ours, finance)
    assert.ok(rows.body.rows.length > 0 && rows.body.rows[0].order_id)
    const refunds = await call(operations.find(({ id }) => id === 'listRefunds')!, ours, finance)
    assert.ok(refunds.body.data.length > 0 && !('reason' in refunds.body.data[0]))
  })

  test('support refunds a charge up to its limit, in one refund or several, and not without one', async () => {
    const shop = await billing.organization('limited')
    const customer = await shop.customer()
    const { body: order } = await shop.charge(customer, { amount: '40' })
    const refund = (key: string, amount?: string) => {
      const body = amount === undefined ? {} : { amount, idempotency_key: `of ${amount} ${key.slice(-5)}` }
      return ask('POST', `/organizations/limited/orders/${order.order_id}/refund`, key, body)
    }
    const limited = await operator({ role: 'support', refundLimits: { USD: '10.50' } })
    const refused = await refund(limited, '10.51')
    assert.deepEqual([refused.status, code(refused)], [403, 'refund_above_limit'])
    assert.equal(refused.body.message, 'You may refund at most 10.50 USD of one charge.')
    assert.equal((await refund(limited)).status, 403)
    assert.equal((await refund(limited, '8')).status, 200)
    const second = await refund(limited, '3')
    assert.deepEqual(
      [second.status, second.body.message],
      [403, 'You may refund at most 10.50 USD of one charge, and 8.00 were refunded before.'],
    )
    assert.equal((await refund(limited, '2.5')).status, 200)
    for (const refundLimits of [{ EUR: '100' }, {}] as RefundLimits[]) {
      const { status, body } = await refund(await operator({ role: 'support', refundLimits }), '1')
      assert.deepEqual([status, body.message], [403, 'You may not refund charges in USD.'])
    }
    assert.equal((await refund(await operator({ role: 'owner' }), '29')).status, 200)
  })

  test('an expired or revoked key is 401, and an organization or project must exist', async () => {
    const key = await operator({
      role: 'support',
      seconds: 3600,
      reach: { organizations: [ours.organization], projects: [] },
    })
    const get = () => ask('GET', '/projects', key)
    assert.equal((await get()).status, 200)
    await billing.db.query(`update operator_keys set expires_at = db_clock() where role = 'support'`)
    assert.equal((await get()).status, 401)
    await assert.rejects(operator({ reach: { organizations: ['nowhere'], projects: [] } }), /no organization "nowhere"/)
  })
})

/** Without what differs from call to call. */
const shown = ({ text }: ApiResponse) =>
  text
    .replaceAll(/"(?:as_of|horizon|figures_as_of|last_seen_at)":"[^"]*"/g, '')
    .replaceAll(/"[a-z_]+_seconds":(?:[0-9.e-]+|null)/g, '')
