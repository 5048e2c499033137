// A process that is frozen in the middle of what it audits holds up no other for more than 5 seconds.
import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import { auditHeadsPath } from '../../../src/core/audit/audit.ts'
import { verifyAudit } from '../../../src/core/audit/verify.ts'
import { createOperator } from '../../../src/core/tenants/operator-keys.ts'
import { type Organization, startBilling } from '../../support/billing.ts'
import { endWithTest, FORK_OPTIONS } from '../../support/cli.ts'
import type { ApiResponse } from '../../support/server.ts'
import { until } from '../../support/time.ts'

// Five seconds, and what a busy machine takes for what follows. Without that limit the others would wait for as long as the
// process is frozen.
const LIMIT_MS = 30_000

// The frozen process shall not be the one that settles.
const billing = await startBilling({ PROVIDER_TIMEOUT_MS: '30000' })
const shop = await billing.organization()
const other = await billing.organization()
const operatorKey = (await billing.db.tx((query) => createOperator(query, { name: 'test', scope: 'write' }))).key
const env = { ...process.env, ...billing.server.env, POINT_SIGNAL: 'SIGSTOP' }
const child = fork(new URL('../../crash-matrix/child.ts', import.meta.url), {
  env,
  execArgv: FORK_OPTIONS,
  stdio: 'inherit',
})
endWithTest(child)
const urls: { url: string; adminUrl: string } = (await once(child, 'message'))[0] as typeof urls
after(async () => {
  child.kill('SIGKILL')
  await billing.stop()
})

/** Sends a request to a process, the frozen one by default. */
async function send(path: string, key: Record<string, string>, body: object, base = urls.url) {
  const headers = { 'content-type': 'application/json', ...key }
  const response = await fetch(`${base}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
  return { status: response.status, text: await response.text() }
}

type Send = (
  organization: Organization,
  base: { url: string; adminUrl: string },
) => Promise<() => ReturnType<typeof send>>

let made = 0
/** Prepares a request of an organization to a process, and returns what sends it. */
const REQUESTS: Record<string, Send> = {
  async refund(organization, { url }) {
    const user = await organization.customer()
    const { order_id } = (await organization.charge(user)).body
    const body = { external_id: user, order_id }
    return () => send(`/${organization.id}/v1/payment/refund`, { 'service-secret-key': organization.key }, body, url)
  },
  async erasure(organization, { url }) {
    const profileId = `pro_${++made}`
    await organization.customer({ profileId })
    const body = { profile_ids: [profileId] }
    return () => send('/public/v1/profiles/anonymize', { 'Service-Secret': organization.projectKey }, body, url)
  },
  async change(organization, { adminUrl }) {
    const body = { id: `made-${++made}` }
    const authorization = { authorization: `Bearer ${operatorKey}` }
    return () => send(`/admin/v1/organizations/${organization.id}/projects`, authorization, body, adminUrl)
  },
}

const isFrozen = () => readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(') ')[1]!.startsWith('T')
const here = () => ({ url: billing.server.url, adminUrl: billing.server.adminUrl })

// Of the first transaction those around what others use too: the audit log, the ledger of erasures, the commit.
const IS_SHARED = /audit|erasure|^(before|after) (transaction|work|commit)$/
const IS_END = 'after transaction'

/**
 * The numbers of the points where the process is frozen: of the first transaction those that are shared, and all of the
 * second one, which settles a refund and stamps its row in the report.
 */
async function pointsOf(request: Send): Promise<number[]> {
  const ask = await request(shop, urls)
  child.send({ dieAt: 0 })
  const { status, text } = await ask()
  assert.equal(status, 200, text)
  child.send({})
  const [{ points }] = (await once(child, 'message')) as [{ points: string[] }]
  const ends = points.flatMap((point, n) => (point === IS_END ? [n + 1] : []))
  const first = points.slice(0, ends[0]).flatMap((point, n) => (IS_SHARED.test(point) ? [n + 1] : []))
  assert.ok(first.length > 5, points.join('\n'))
  const begun = points.indexOf('before transaction', ends[0]) + 1
  return ends.length > 1 ? [...first, ...Array.from({ length: ends[1]! - begun + 1 }, (_, n) => begun + n)] : first
}

/** Sends a request until it succeeds. After a 503 again: on a busy machine the last of many may wait too long for the audit log. */
const succeed = (ask: () => ReturnType<typeof send>) =>
  until('a request to succeed', async () => {
    const { status, text } = await ask()
    assert.ok([200, 503].includes(status), text)
    return status === 200
  })

/** Sends requests to the process that is not frozen, and expects that all succeed in time. */
async function promptly(where: string, others: (() => ReturnType<typeof send>)[], charge: () => Promise<ApiResponse>) {
  const sentMs = performance.now()
  const charged = charge()
  await Promise.all(others.map(succeed))
  assert.equal((await charged).body.checkout_status, 'succeeded', where)
  const tookMs = performance.now() - sentMs
  assert.ok(tookMs < LIMIT_MS, `${where}: ${Math.round(tookMs)} ms`)
}

for (const [name, request] of Object.entries(REQUESTS)) {
  test(`at any point of ${name === 'erasure' ? 'an' : 'a'} ${name}`, async () => {
    const points = await pointsOf(request)
    if (name === 'refund') assert.ok(points.length > 20, 'a refund is settled in its own transaction')
    const others = await Promise.all(
      [shop, other].flatMap((organization) =>
        Array.from({ length: points.length * 3 }, (_, n) => Object.values(REQUESTS)[n % 3]!(organization, here())),
      ),
    )
    const user = await shop.customer()
    for (const point of points) {
      const frozen = await request(shop, urls)
      child.send({ dieAt: point })
      const asked = frozen().catch((error) => ({ status: 0, text: String(error) }))
      await until('the process to freeze', isFrozen)
      const three = [...others.splice(0, 3), ...others.splice(-3)]
      await promptly(`point ${point}`, three, () => shop.charge(user)).finally(() => child.kill('SIGCONT'))
      const { status, text } = await asked
      assert.ok([200, 503].includes(status), `point ${point}: ${status} ${text}`)
    }
    const { app } = billing.server
    assert.deepEqual((await verifyAudit(app.db, app.seal, auditHeadsPath(app.config))).wrong, [])
  })
}
