// A process is killed between each two steps of a charge at Stripe's API; another one must bring everything to its end.
import assert from 'node:assert/strict'
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { after, before, test } from 'node:test'
import { type Organization, settled } from '../support/billing.ts'
import { until } from '../support/cluster.ts'
import { type StripeBilling, startStripeBilling } from '../support/stripe-billing.ts'

let billing: StripeBilling
let shop: Awaited<ReturnType<StripeBilling['shop']>>
before(async () => {
  // Short, so that leases end soon.
  billing = await startStripeBilling({ PROVIDER_TIMEOUT_MS: '800' })
  shop = await billing.shop()
})
after(() => billing.stop())

interface Victim {
  again(): ReturnType<Organization['post']>
  orderId?: string
}

async function spawn(): Promise<{ child: ChildProcess; url: string }> {
  const execArgv = ['--disable-warning=ExperimentalWarning']
  const env = { ...process.env, ...billing.server.env }
  const child = fork(new URL('child.ts', import.meta.url), { env, execArgv, stdio: 'inherit' })
  const [{ url }] = (await once(child, 'message')) as [{ url: string }]
  return { child, url }
}

/** Sends a request to a process, which may die of it. */
async function send(url: string, kind: 'charge' | 'refund', token?: string): Promise<Victim> {
  const { external_id } = await shop.customerWithCard(token)
  const charge = { external_id, idempotency_key: 'k', amount: '10.50', currency_code: 'USD' }
  const order_id = kind === 'refund' ? (await shop.post('/payment/one_off_charge', charge)).body.order_id : undefined
  const [path, body] =
    kind === 'charge'
      ? ['/payment/one_off_charge', charge]
      : ['/payment/refund', { external_id, order_id, idempotency_key: 'r' }]
  const headers = { 'service-secret-key': shop.key, 'content-type': 'application/json' }
  const cut = { method: 'POST', headers, body: JSON.stringify(body) }
  await fetch(`${url}/${shop.id}/v1${path}`, cut).catch(() => 'cut off')
  return { again: () => shop.post(path as string, body as object), orderId: order_id }
}

/** The points that a request crosses when nothing happens to its process. */
async function pointsOf(kind: 'charge' | 'refund'): Promise<string[]> {
  const { child, url } = await spawn()
  child.send({ dieAt: 0 })
  await send(url, kind)
  child.send({})
  const [{ points }] = (await once(child, 'message')) as [{ points: string[] }]
  child.kill('SIGKILL')
  return points
}

const atRest = async () => {
  const [row] = await billing.db.query(
    `select (select count(*) from orders where status = 'processing') +
       (select count(*) from refunds where status = 'processing') as open`,
  )
  return row!.open === '0'
}

const CHARGE_STEPS = /(prepare|store handle|confirm|claim orders|lock orders|finish orders|add report rows|commit)/
const REFUND_STEPS = /(insert refund|amid refund|before refund|after refund|finish refund|add report rows)$/

/** Every refund at Stripe is one that succeeds here; one that never reached Stripe has minutes to be found missing. */
async function assertSameRefunds(): Promise<void> {
  const made = (await billing.stripe.ledger()).filter(({ type }) => type === 'refund')
  const ids = made.map(({ metadata }) => metadata['tundish_refund'] ?? assert.fail('a refund without our id'))
  assert.equal(new Set(ids).size, ids.length, 'a refund was made twice')
  const succeeded = async () => {
    const rows = await billing.db.query(`select refund_id from refunds where status = 'succeeded' order by 1`)
    return rows.map(({ refund_id }) => refund_id!)
  }
  await until('the refunds to settle', async () => (await succeeded()).length >= ids.length, 30_000)
  assert.deepEqual(await succeeded(), ids.toSorted())
}

for (const [kind, steps] of [
  ['charge', CHARGE_STEPS],
  ['refund', REFUND_STEPS],
] as const) {
  test(`a ${kind} whose process is killed between any two steps`, async (t) => {
    const points = await pointsOf(kind)
    const chosen = points.flatMap((name, n) => (steps.test(name) ? [{ name, dieAt: n + 1 }] : []))
    const needed = kind === 'charge' ? ['prepare', 'store handle of prepared payment', 'confirm'] : ['refund']
    for (const name of needed) assert.ok(points.includes(`before ${name}`), `${points.join(', ')}: ${name} is missing`)
    const victims: Victim[] = []
    for (const { name, dieAt } of chosen) {
      t.diagnostic(name)
      const { child, url } = await spawn()
      child.send({ dieAt })
      const died = once(child, 'exit')
      victims.push(await send(url, kind))
      const [, signal] = await died
      assert.equal(signal, 'SIGKILL')
    }
    if (kind === 'charge') await until('everything settled', atRest, 60_000)
    for (const { again } of victims) {
      const { body } = kind === 'charge' ? await settled(again, 30_000) : await again()
      assert.ok(kind === 'refund' || ['succeeded', 'cancelled'].includes(body.checkout_status), JSON.stringify(body))
    }
    await billing.assertSameMoney()
    await assertSameRefunds()
  })
}
