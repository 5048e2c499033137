// A server under load during a failure of its database or disk, and checks of what its clients received.
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { migrate } from '../../src/lib/pg/migrate.ts'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'
import { type Cluster, openCluster } from '../support/cluster.ts'
import { BASICS, insert } from '../support/data.ts'
import { until } from '../support/time.ts'
import { type Received, startLoad } from './load.ts'

export interface Scene {
  cluster: Cluster
  billing: Billing
  shop: Organization
  customers: string[]
  /** Begins the load, lets `trouble` happen, and judges: nothing but 200 and clean 503, and all well 5 s after its end. */
  survives(trouble: (soFar: Received) => Promise<void>): Promise<Received>
  close(): Promise<void>
}

const RECOVERY_MS = 5000

export async function openScene(folder?: string): Promise<Scene> {
  const cluster = await openCluster(folder)
  await migrate(cluster.url)
  const billing = await startBilling({ DATABASE_URL: cluster.url })
  const shop = await billing.organization()
  await insert(
    billing.db,
    { id: shop.projectId, organizationId: shop.id },
    { ...BASICS, subscriptions: [{ id: 'one' }] },
  )
  const customers = await Promise.all(Array.from({ length: 3 }, () => shop.customer()))
  const scene = { cluster, billing, shop, customers }

  async function survives(trouble: (soFar: Received) => Promise<void>): Promise<Received> {
    const load = startLoad(billing.server, shop, customers)
    let endedMs = 0
    try {
      await sleep(500)
      await trouble(load.received)
      endedMs = performance.now()
      load.calm()
      await sleep(RECOVERY_MS)
    } finally {
      await load.stop()
    }
    const { received } = load
    assert.deepEqual(received.wrong, [], `${received.wrong.join('\n')}\nof:\n${reasons(billing).join('\n')}`)
    assert.deepEqual(
      Object.keys(received.statuses).filter((status) => !['200', '503'].includes(status)),
      [],
    )
    const recoveryMs = received.lastTroubleMs - endedMs
    assert.ok(recoveryMs < RECOVERY_MS - 500, `still in trouble ${recoveryMs} ms after its end`)
    await assertNothingLost(scene, received)
    return received
  }

  return {
    ...scene,
    survives,
    async close() {
      await billing.stop()
      await cluster.remove()
    },
  }
}

/** Waits until clients have received so many more responses of a status than now, however slow the machine is. */
export function untilMore({ statuses }: Received, status: string, count: number): Promise<void> {
  const least = (statuses[status] ?? 0) + count
  return until(`${count} more responses of ${status}`, () => (statuses[status] ?? 0) >= least)
}

/** The errors in the log, each once: why requests failed. */
function reasons({ server }: Billing): string[] {
  const errors = server.logLines().flatMap((line) => JSON.parse(line).err ?? [])
  return [...new Set(errors.map((error) => JSON.stringify(error)))]
}

/** Every purchase is decided, once, and the ledger and the orders agree. */
async function assertNothingLost({ billing, shop, customers }: Omit<Scene, 'survives' | 'close'>, received: Received) {
  for (const { customer, key, amount } of received.charges) {
    for (let tries = 0; ; tries++) {
      const { status, body } = await shop.charge(customer, { amount, idempotency_key: key })
      assert.equal(status, 200, JSON.stringify(body))
      // A cancelled charge is decided too: the provider never gets it.
      if (['succeeded', 'cancelled'].includes(body.checkout_status)) break
      assert.equal(body.checkout_status, 'processing')
      assert.ok(tries < 200, 'A charge is never settled.')
      await sleep(100)
    }
  }
  const orders = await billing.db.query('select order_id, amount, currency_code, status from orders order by order_id')
  const ledger = await billing.ledger()
  const paid = orders.filter(({ status }) => status === 'succeeded')
  assert.deepEqual(
    ledger
      .map(({ reference, amount, currency_code }) => `${reference} ${Number(amount).toFixed(2)} ${currency_code}`)
      .sort(),
    paid
      .map(({ order_id, amount, currency_code }) => `${order_id} ${Number(amount).toFixed(2)} ${currency_code}`)
      .sort(),
  )
  const report = await billing.db.query('select count(*) as n from report_transactions where not imported')
  assert.equal(Number(report[0]!.n), paid.length)
  const consumables = await Promise.all(customers.map((one) => shop.consumables(one)))
  assert.equal(consumables.flat().length, paid.length)
}
