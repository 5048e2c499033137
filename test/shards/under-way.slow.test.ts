// Charges, refunds and deliveries that are under way when their organization is moved: each ends once, on the right shard.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { after, test } from 'node:test'
import { move } from '../../src/operations/shards/move.ts'
import type { Shop } from '../failover/clients.ts'
import { fillShop } from '../failover/shop.ts'
import { type ServerProcess, startProcess } from '../support/cli.ts'
import { openProxy } from '../support/proxy.ts'
import { startReceiver } from '../support/receiver.ts'
import type { Json } from '../support/server.ts'
import { openSimulator } from '../support/simulators.ts'
import { until } from '../support/time.ts'
import { freeze } from './frozen-mover.ts'
import { type Side, setUpPair } from './pair.ts'

const simulator = await openSimulator()
// Look-ups break off while it has a pattern.
const lookUps: { pattern: RegExp | undefined } = { pattern: undefined }
const way = await openProxy(simulator.url, lookUps)
const failing = new Set<string>()
const receiver = await startReceiver(({ body }) => (failing.delete(JSON.parse(body).type) ? 500 : 204))
const servers = {} as Record<Side, ServerProcess>
/** Another organization of the old shard, for which it works all the time. */
let bystander: Omit<Shop, 'url'>
const { settings, clusters, shops, between, numberOf, assertServedBy, on } = setUpPair({
  env: async () => ({
    SIMULATOR_URL: way.url,
    WEBHOOK_ALLOW_PRIVATE: 'true',
    REQUEST_TIMEOUT_MS: '300000',
  }),
  ready: async (side, env) => {
    if (side === 'a') bystander = await fillShop(env, 'bystander')
    servers[side] = await startProcess(env)
  },
})
after(async () => {
  for (const server of Object.values(servers)) await server.stop()
  await receiver.close()
  await way.cut()
  await simulator.cleanUp()
})

async function post(at: Side, shop: 'shop' | 'bystander', path: string, body: object): Promise<Json> {
  const key = shop === 'shop' ? shops.a.billingKey : bystander.billingKey
  const headers = { 'Service-Secret-Key': key, 'Content-Type': 'application/json' }
  const response = await fetch(`${servers[at].url}/${shop}/v1/payment/${path}`, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
  })
  return response.json() as Promise<Json>
}
const CHARGE = { amount: '1.00', currency_code: 'USD' }
const charge = (at: Side, customer: string, shop: 'shop' | 'bystander' = 'shop') =>
  post(at, shop, 'one_off_charge', { ...CHARGE, external_id: customer, idempotency_key: randomUUID() })

/** A request whose key was checked, and whose body ends when the test says so; then returns the status and the code. */
async function beginSlowly(path: string, body: object): Promise<() => Promise<string>> {
  const text = JSON.stringify(body)
  const headers = { 'Service-Secret-Key': shops.a.billingKey, 'Content-Type': 'application/json' }
  const sent = request(`${servers.a.url}/shop/v1/payment/${path}`, { method: 'POST', headers })
  const received = once(sent, 'response')
  sent.write(text.slice(0, 5))
  return async () => {
    sent.end(text.slice(5))
    const [response] = (await received) as [IncomingMessage]
    response.resume()
    return `${response.statusCode} ${response.headers['x-error-code']}`
  }
}

const DUE_NOW = ['orders', 'refunds']
  .map((table) => `update ${table} set next_look_at = db_clock() where status = 'processing' and lease_until is null`)
  .join(';')

const statuses = async (at: Side, shop = 'shop') =>
  (
    await clusters[at].query(`
      select o.external_id || ' ' || o.status || coalesce(' refund ' || r.status, '') as text
      from orders o left join refunds r using (organization_id, order_id)
      where o.organization_id = '${shop}' order by 1`)
  ).map(({ text }) => text)

/** The next charges of the customer are made with this card. */
const useCard = (at: Side, shop: string, customer: string, card: string) =>
  clusters[at].query(`
    update report_transactions set payment_method_token = '${card}'
    where organization_id = '${shop}' and external_id = '${customer}'`)

/** Charges until the outcome of one is unknown, which it stays as long as no look-up succeeds. */
async function beginAll(): Promise<void> {
  lookUps.pattern = /^GET /
  await useCard('a', 'shop', 'user-1', 'sim_charge_then_drop')
  await useCard('a', 'shop', 'user-2', 'sim_refund_then_drop')
  await useCard('a', 'bystander', 'user-1', 'sim_charge_then_drop')
  const paid = await charge('a', 'user-2')
  assert.equal(paid.checkout_status, 'succeeded')
  await Promise.all([
    charge('a', 'user-1'),
    post('a', 'shop', 'refund', { external_id: 'user-2', order_id: paid.order_id }),
  ])
}

test('a mover killed after the commit: what was unknown is settled once, on the new shard, and told by one event', async () => {
  for (const name of ['shop', 'bystander']) {
    const words = ['webhook', 'create', '--project', `${name}-app`, '--url', `${receiver.url}/${name}`]
    const { code, stderr } = await on('a', ...words)
    assert.equal(code, 0, stderr)
  }
  failing.add('consumable.granted')
  const first = await charge('a', 'user-0')
  assert.equal(first.checkout_status, 'succeeded')
  await until('a delivery that failed', async () => (await numberOf('a', 'webhook_deliveries where failures > 0')) > 0)
  await beginAll()
  const before = await statuses('a')
  assert.deepEqual(before, ['user-0 succeeded', 'user-1 processing', 'user-2 succeeded refund processing'])

  const slow = [
    await beginSlowly('one_off_charge', { ...CHARGE, external_id: 'user-3', idempotency_key: 'slow' }),
    await beginSlowly('refund', { external_id: 'user-0', order_id: first.order_id }),
  ]
  const mover = await freeze(settings, 'after the commit on the new shard', 'a', 'b')
  await mover.end('SIGKILL')
  lookUps.pattern = undefined
  const after = ['user-0 succeeded', 'user-1 succeeded', 'user-2 succeeded refund succeeded']
  await until('b to settle', async () => {
    // A look-up that failed puts the next one off, by minutes where the move has taken minutes.
    await clusters.b.query(DUE_NOW)
    return (await statuses('b')).join() === after.join()
  })
  await clusters.a.query(`
    update orders set next_look_at = db_clock() - interval '1 minute', lease_until = null where status = 'processing';
    update refunds set next_look_at = db_clock() - interval '1 minute', lease_until = null where status = 'processing';
    update webhook_deliveries set next_attempt_at = db_clock() where status = 'pending'`)
  await looksAgain()
  assert.deepEqual(await statuses('a'), before)
  assert.equal(await numberOf('a', `webhook_attempts where error like '%no secret key%'`), 0)

  for (const end of slow) assert.equal(await end(), '503 database_unavailable')
  assert.deepEqual(await statuses('a'), before)

  await move({ ...between('a', 'b'), say: () => {} })
  await assertServedBy('b')
  await clusters.b.query(`update webhook_deliveries set next_attempt_at = db_clock() where status = 'pending'`)
  await until('every delivery', async () => (await numberOf('b', UNDELIVERED)) === 0)
  assertOneEventEach({ 'charge.succeeded': 3, 'consumable.granted': 3, 'refund.succeeded': 1, 'consumable.revoked': 1 })
  assert.equal(await numberOf('b', `webhook_attempts where error like '%no secret key%'`), 0)
  const ledger = (await (await fetch(`${simulator.url}/ledger`)).json()) as { reference: string }[]
  assert.equal(new Set(ledger.map(({ reference }) => reference)).size, ledger.length)
  assert.equal(await numberOf('b', `report_transactions where organization_id = 'shop' and not imported`), 4)
})

// An event has its deliveries a moment later.
const UNDELIVERED = `(select from events where pending union all select from webhook_deliveries where status = 'pending') left_over`

/** Waits until the old shard has settled and delivered for another organization what began only now. */
async function looksAgain(): Promise<void> {
  await charge('a', 'user-1', 'bystander')
  const isSettled = async () => (await statuses('a', 'bystander')).every((text) => text === 'user-1 succeeded')
  await until('the old shard to settle', isSettled)
  const delivered = () => receiver.arrivals.filter(({ path }) => path === '/bystander').length
  await until('the old shard to deliver', () => delivered() > 0)
}

/** Every event of these kinds has arrived, each with one id, however often it was sent. */
function assertOneEventEach(expected: Record<string, number>): void {
  const ids = new Map<string, Set<unknown>>()
  for (const { path, headers, body } of receiver.arrivals) {
    if (path !== '/shop') continue
    const { type, data } = JSON.parse(body) as Json
    const name = `${type} ${data.refund_id ?? data.order_id}`
    ids.set(name, (ids.get(name) ?? new Set()).add(headers['webhook-id']))
  }
  for (const [kind, n] of Object.entries(expected)) {
    const found = [...ids].filter(([name]) => name.startsWith(`${kind} `))
    assert.equal(found.length, n, kind)
    for (const [name, several] of found) assert.equal(several.size, 1, name)
  }
}
