// A restored backup, an erasure after it, a reconciliation, and callers who repeat what they sent: nothing erased comes back, and
// nothing is charged or paid back twice.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { runOperation } from '../../../src/cli/commands/operations.ts'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { tundish } from '../../support/cli.ts'
import { dump } from '../../support/database.ts'
import { startTestServer, type TestServer } from '../../support/server.ts'
import { startStripeBilling } from '../../support/stripe-billing.ts'
import { until } from '../../support/time.ts'

const MASTER_KEY = randomBytes(32).toString('base64')
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

// No process settles there: the database is lost before.
const billing = await startStripeBilling({ MASTER_KEY }, { worker: false })
after(() => billing.stop())

/** The calls of the person's shop, to the server that serves now. */
function callsOf(shop: { id: string; key: string }, user: string, marker: string) {
  const to = async (server: TestServer, path: string, body: object) => {
    const headers = ['service-secret-key', shop.key]
    const call = { method: 'POST', headers, body: { external_id: user, ...body } }
    return (await server.call(`/${shop.id}/v1${path}`, call)).body
  }
  return {
    charge: (server: TestServer, idempotency_key: string) =>
      to(server, '/payment/one_off_charge', {
        ...{ amount: '10.50', currency_code: 'USD', idempotency_key },
        client_metadata: { note: marker },
      }),
    refund: (server: TestServer, order_id: string, idempotency_key: string) =>
      to(server, '/payment/refund', {
        ...{ order_id, amount: '4', idempotency_key },
        ...{ reason: marker, comment: marker },
      }),
    assets: async (server: TestServer) => (await to(server, '/my_assets', {})).consumables,
  }
}

/** A person with a saved card, who buys before a backup and after it; then the backup is restored on a new server. */
async function restored(eraseAtProvider: 'off' | 'on') {
  const shop = await billing.shop()
  const { external_id: user, customer } = await shop.customerWithCard('pm_card_visa', 'pro_1')
  const marker = `person-of-${shop.id}`
  const email = `${marker}@example.com`
  await billing.db.query(`update profiles set email = $2 where project_id = $1`, [shop.projectId, email])
  await billing.db.query(`update customers set email = $2 where external_id = $1`, [user, email])
  await billing.db.query('update organizations set erase_at_provider = $2 where id = $1', [shop.id, eraseAtProvider])
  const calls = callsOf(shop, user, marker)
  const old = billing.server
  const kept = await calls.charge(old, 'kept')
  const file = join(old.env['DATA_DIR']!, `${shop.id}.backup`)
  const made = await tundish(['backup', file, '--json'], old.env)
  assert.equal(made.code, 0, made.stderr)
  const lost = await calls.charge(old, 'lost')
  for (const [key, { order_id }] of Object.entries({ kept, lost }))
    assert.equal((await calls.refund(old, order_id, key)).refund_status, 'succeeded')

  const { STRIPE_API_URL, SIMULATOR_URL } = old.env as Record<string, string>
  const settings = { MASTER_KEY, STRIPE_API_URL: STRIPE_API_URL!, SIMULATOR_URL: SIMULATOR_URL! }
  // Only the erasure at the provider needs a worker: it could read Stripe's notification of the refund before the reconciliation does.
  const server = await startTestServer(settings, { worker: eraseAtProvider === 'on' })
  after(() => server.stop())
  const outcome = await tundish(['restore', file, '--without-erasures', '--accounts', 'none', '--json'], server.env)
  assert.equal(outcome.code, 0, outcome.stderr)
  const hasPerson = async () => (await dump(server.db)).includes(marker)
  assert.ok(await hasPerson(), 'the backup has the person')
  return { ...calls, shop, server, customer, kept, lost, hasPerson }
}

const moneyOf = async (customer: string) => {
  const charges = (await billing.client.charges.list({ customer })).data
  return charges.map(({ amount, amount_refunded }) => [amount, amount_refunded])
}

const reconcileAll = ({ app }: TestServer) =>
  reconcile(billingContext(app), new Date(Date.now() - HOUR_MS).toISOString())

async function erase({ app }: TestServer, projectId: string): Promise<void> {
  await runOperation('profile', 'eraseProfile', app, { params: { project_id: projectId, profile_id: 'pro_1' } })
}

describe('a person who is erased after a restore', () => {
  test('stays erased, and is charged and paid back once, when all is sent again', async () => {
    const { server, shop, customer, charge, refund, assets, kept, lost, hasPerson } = await restored('off')
    await erase(server, shop.projectId)
    assert.equal(await hasPerson(), false)
    const { adopted, findings } = await reconcileAll(server)
    assert.equal(adopted, 1, 'the refund of the charge that the backup has')
    assert.ok(
      findings.some(({ difference, reference }) => `${difference} ${reference}` === `missing_here ${lost.order_id}`),
    )
    assert.equal(await hasPerson(), false)

    await billing.stripe.control('/clock', { advance_ms: 2 * DAY_MS })
    const again = { kept: await charge(server, 'kept'), lost: await charge(server, 'lost') }
    assert.equal(again.kept.order_id, kept.order_id)
    for (const [key, { order_id, checkout_status }] of Object.entries(again)) {
      assert.equal(checkout_status, 'succeeded')
      const { refund_status, idempotent_replay, amount_refunded } = await refund(server, order_id, key)
      assert.deepEqual([refund_status, idempotent_replay, amount_refunded], ['succeeded', true, 4])
    }
    assert.deepEqual(await moneyOf(customer), [
      [1050, 400],
      [1050, 400],
    ])
    assert.equal((await assets(server)).length, 2)
    assert.equal(await hasPerson(), false, 'nothing erased is back')
  })

  test('at the provider, too, is not charged again: each key has its first outcome', async () => {
    const { server, shop, customer, charge, refund, assets, kept, hasPerson } = await restored('on')
    await erase(server, shop.projectId)
    await until('the erasure at the provider', async () => {
      const rows = await server.db.query('select done_at from provider_erasures')
      return rows.length > 0 && rows.every(({ done_at }) => done_at !== null)
    })
    await reconcileAll(server)
    await billing.stripe.control('/clock', { advance_ms: 2 * DAY_MS })
    assert.equal((await charge(server, 'kept')).checkout_status, 'succeeded')
    // The listing has stored the charge that the backup does not have.
    const again = await charge(server, 'lost')
    assert.deepEqual([again.checkout_status, again.idempotent_replay], ['succeeded', true])
    assert.equal((await refund(server, kept.order_id, 'kept')).refund_status, 'succeeded')
    assert.deepEqual(await moneyOf(customer), [
      [1050, 400],
      [1050, 400],
    ])
    assert.equal((await assets(server)).length, 2)
    assert.equal(await hasPerson(), false, 'nothing erased is back')
  })
})
