// Every described operation of both listeners isolates tenants and accepts only its own key; none is left out.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { unconnectedListener } from '../../scripts/openapi.ts'
import { createOperator, type Scope } from '../../src/core/tenants/operator-keys.ts'
import { startBilling } from '../support/billing.ts'
import type { Json } from '../support/server.ts'
import { type Api, callerOf, type MatrixOperation, operationsOf, servedPaths, UNDESCRIBED } from './apis.ts'
import { contentsOf, makeTenant, missingObjects, type Tenant, type TenantWithKeys, withFresh } from './tenant-pair.ts'
import { RULES, type Rule } from './tenant-rules.ts'

const asPattern = (path: string) => new RegExp(`^${path.replace(/\{\w+\}/g, '[^/]+')}$`)

const env = { WEBHOOK_ALLOW_PRIVATE: 'true', UNAUTHORIZED_RATE: '1000000' }
const billing = await startBilling(env, { worker: false })
after(() => billing.stop())
const ours = await makeTenant(billing, 'mine')
const theirs = await makeTenant(billing, 'theirs')
const operator = (scope: Scope) => billing.db.tx((query) => createOperator(query, { name: scope, scope }))
const { id: writerId, key: writer } = await operator('write')
const reader = (await operator('read')).key
const send = callerOf(billing.server)
const operations = await operationsOf(billing.server)

test('every operation has a rule, and every rule an operation', () => {
  assert.deepEqual(operations.map(({ id }) => id).sort(), Object.keys(RULES).sort())
})

test('every served path is described, with all its methods', async () => {
  const served: string[] = []
  for (const side of ['public', 'operator'] as const) {
    const listener = await unconnectedListener(side)
    served.push(...servedPaths(listener.printRoutes({ commonPrefix: false })))
    await listener.close()
  }
  const described = new Set(operations.map(({ path }) => path.replace(/\{(\w+)\}/g, ':$1')))
  const undescribed = [...UNDESCRIBED, '/metrics']
  assert.deepEqual([...new Set(served)].filter((path) => !undescribed.includes(path)).sort(), [...described].sort())
  for (const { api, path } of operations) {
    // A fixed path also accepts the methods of a path whose parameter matches it.
    const methods = operations
      .filter((one) => one.api === api && asPattern(one.path).test(path))
      .map(({ method }) => method)
    const allowed = [...methods, ...(methods.includes('GET') ? ['HEAD'] : [])].sort().join(', ')
    const { status, headers } = await send({ api, method: 'OPTIONS', path: fill(path, ours), key: keyTo(api, ours) })
    assert.deepEqual([status, headers.allow], [405, allowed], path)
  }
})

test('every operation accepts only its own key', async (t) => {
  const before = await contentsOf(billing.db, ours, theirs)
  for (const operation of operations) {
    if (RULES[operation.id]?.open) continue
    await t.test(operation.id, async () => {
      for (const [whose, key] of wrongKeys(operation.api)) {
        const { status, text } = await send({ ...request(operation, ours), key })
        assert.equal(status, 401, `${whose}: ${text}`)
        assert.deepEqual(Object.keys(JSON.parse(text)), ['message'])
        assert.equal((await send({ ...request(operation, ours), method: 'HEAD', key })).status, 401, whose)
      }
      const own = keyTo(operation.api, ours)
      for (const header of ['Service-Secret', 'service-secret-key', 'Authorization'])
        if (header !== operation.api.header)
          assert.equal((await send({ ...request(operation, ours), key: own, header })).status, 401, header)
      const elsewhere = await send({ ...request(operation, ours), key: own, otherListener: true })
      assert.ok([401, 404].includes(elsewhere.status), `on the other listener: ${elsewhere.text}`)
      if (operation.api.name === 'operator' && operation.method !== 'GET')
        assert.equal((await send({ ...request(operation, ours), key: reader })).status, 403)
      assert.equal(await contentsOf(billing.db, ours, theirs), before)
    })
  }
})

test('every operation keeps one tenant’s objects from another', async (t) => {
  for (const operation of operations) {
    const rule = RULES[operation.id]
    if (!rule || rule.open) continue
    await t.test(operation.id, async () => {
      const us = await withFresh(billing, ours, operation.path)
      const them = await withFresh(billing, theirs, operation.path)
      const held = await contentsOf(billing.db, them)
      for (const naming of namings(operation, rule)) await checkForeign(operation, rule, us, them, naming)
      await checkOwn(operation, rule, us, them)
      assert.equal(await contentsOf(billing.db, them), held, 'what is theirs was changed')
      if (operation.api.name === 'data' && operation.method === 'GET') await checkOtherKey(operation, us, them)
    })
  }
})

/** The part of a request that names the object: each parameter of the path alone, or the query and the body. */
type Naming = string

function namings({ path }: MatrixOperation, { query, body, foreign }: Rule): Naming[] {
  if (foreign.like === 'unnamed') return []
  const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!).filter((name) => !(name in TENANT_PARAMS))
  // A body that is the same for every tenant names no object.
  const speaks = (it: Tenant) =>
    JSON.stringify([query?.(it), body?.(it, ours)]).replace(/"idempotency_key":"[^"]+"/g, '')
  return [...inPath, ...(speaks(ours) === speaks(theirs) ? [] : ['content'])]
}

async function checkForeign(operation: MatrixOperation, rule: Rule, us: Tenant, them: Tenant, naming: Naming) {
  const key = keyTo(operation.api, ours)
  const ask = (it: Tenant) => send({ ...request(operation, us, it, naming), key })
  const { status, text, headers } = await ask(them)
  const what = `${naming} of theirs: ${status} ${text}`
  if (rule.foreign.like === 'own') return assert.equal(status, 200, what)
  if (rule.foreign.like === 'unnamed') return
  assert.equal(status, rule.foreign.status, what)
  if (rule.foreign.like === 'taken') return
  const nobody = missingObjects(us)
  const absent = await ask(nobody)
  assert.deepEqual([status, masked(text, them)], [absent.status, masked(absent.text, nobody)], what)
  assert.deepEqual(Object.keys(headers).sort(), Object.keys(absent.headers).sort())
}

async function checkOwn(operation: MatrixOperation, rule: Rule, us: Tenant, them: Tenant) {
  const mayOnlyRead = operation.api.name === 'operator' && operation.method === 'GET'
  const key = mayOnlyRead ? reader : keyTo(operation.api, ours)
  const [before] = await billing.db.query('select count(*) as n from audit_log')
  const { status, text, body } = await send({ ...request(operation, us), key })
  assert.equal(status, rule.own ?? 200, text)
  if (operation.api.name === 'operator' && !mayOnlyRead && !rule.undone) await checkAudit(before!.n!, body)
  if (rule.everywhere) return
  const leaked = namesOf(them).filter((name) => text.includes(name))
  assert.deepEqual(leaked, [], text)
  // Otherwise an empty response could hide that tenants are not isolated.
  if (operation.method === 'GET' && !rule.sums)
    assert.ok(
      namesOf(us).some((name) => text.includes(name)),
      text,
    )
}

/** A change has entries in the audit log since `before`, of the key that made it, and without the secrets in its response. */
async function checkAudit(before: string, { secret_key, webhook_secret }: Json) {
  const rows = await billing.db.query('select * from audit_log where sequence > $1', [before])
  assert.ok(rows.length > 0, 'not in the audit log')
  for (const row of rows)
    assert.deepEqual([row.actor_kind, row.actor, row.source], ['operator key', writerId, '127.0.0.1'])
  for (const secret of [secret_key, webhook_secret]) if (secret) assert.ok(!JSON.stringify(rows).includes(secret))
}

/** The data API accepts the key of the other tenant, and returns that tenant's objects. */
async function checkOtherKey(operation: MatrixOperation, us: Tenant, them: Tenant) {
  const { status, text } = await send({ ...request(operation, them), key: theirs.projectKey })
  assert.equal(status, 200, text)
  assert.ok(
    namesOf(them).some((name) => text.includes(name)),
    text,
  )
  assert.deepEqual(
    namesOf(us).filter((name) => text.includes(name)),
    [],
    text,
  )
}

const TENANT_PARAMS = { org_id: 'organization', organization_id: 'organization', project_id: 'project' } as const
const OBJECT_PARAMS: Record<string, keyof Tenant> = {
  id: 'mark',
  profile_id: 'mark',
  into_id: 'mark',
  unit: 'mark',
  psp: 'mark',
  psp_merchant_id: 'mark',
  payout_id: 'mark',
  transaction_id: 'mark',
  funnel_id: 'mark',
  screen_id: 'mark',
  order_id: 'order',
  event_id: 'event',
  alert_id: 'mark',
  destination_id: 'mark',
  webhook_id: 'webhook',
  key_id: 'spareKey',
}

/** The path for `us`, in which the parameter `naming` has the name of the object of `it`. */
function fill(path: string, us: Tenant, it: Tenant = us, naming?: Naming): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    if (name in TENANT_PARAMS) return us[TENANT_PARAMS[name as keyof typeof TENANT_PARAMS]]
    const field = OBJECT_PARAMS[name] ?? assert.fail(`Say what {${name}} is in OBJECT_PARAMS.`)
    return (naming === name ? it : us)[field] || 'none'
  })
}

function request(operation: MatrixOperation, us: Tenant, it: Tenant = us, naming?: Naming) {
  const { query, body } = RULES[operation.id] ?? {}
  const named = naming === undefined || naming === 'content' ? it : us
  const search = query ? `?${new URLSearchParams(query(named))}` : ''
  const { api, method } = operation
  return { api, method, path: fill(operation.path, us, it, naming) + search, body: body?.(named, us) }
}

const namesOf = ({ mark, project, order, event, webhook, spareKey }: Tenant) =>
  [mark, project, order, event, webhook, spareKey].filter((name) => name !== '')

/** A response without the names that the request contained. */
function masked(text: string, { mark, customer, order, event, webhook, spareKey }: Tenant): string {
  const names = [order, event, webhook, spareKey, customer, mark].filter((name) => name !== '')
  return names.reduce((rest, name) => rest.replaceAll(name, '…'), text)
}

const keyTo = ({ name }: Api, tenant: TenantWithKeys) =>
  ({ open: undefined, data: tenant.projectKey, billing: tenant.organizationKey, operator: writer })[name]

function wrongKeys({ name }: Api): [string, string | undefined][] {
  const all: [string, string | undefined][] = [
    ['no key', undefined],
    ['an unknown key', `${name === 'operator' ? 'operator' : 'secret'}_${'A'.repeat(43)}`],
  ]
  if (name !== 'data') all.push(['our project’s key', ours.projectKey], ['their project’s key', theirs.projectKey])
  if (name !== 'billing') all.push(['our organization’s key', ours.organizationKey])
  all.push(['their organization’s key', theirs.organizationKey])
  if (name !== 'operator') all.push(['an operator’s key', writer])
  return all
}
