// Due looks are taken in turns among merchant accounts, and a database clock that is set back puts none of them off.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import type { Db } from '../../../src/lib/pg/db.ts'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { adoptRefundsOfCharge } from '../../../src/payments/billing/refund/adopt-of-charge.ts'
import { noDetails } from '../../../src/payments/providers/provider.ts'
import { settled, startBilling } from '../../support/billing.ts'
import { setDatabaseClock, until } from '../../support/time.ts'
import { payCharge } from './paid-charge.ts'
import { scriptedProvider } from './scripted-provider.ts'

// More than one account may have at once, and too few to open its circuit.
const HANGING = 19

let hung = 0
let clockReadings = 0
// In front of the simulator: look-ups of one organization get no response.
const orders = new Set<string>()
const gate = createServer((request, response) => {
  const chunks: Buffer[] = []
  request.on('data', (chunk) => chunks.push(chunk))
  request.on('end', async () => {
    const body = Buffer.concat(chunks)
    if (request.method === 'POST' && body.includes('"hangs"')) orders.add(JSON.parse(body.toString()).key)
    const key = decodeURIComponent(request.url!.split('/')[2] ?? '')
    if (orders.has(key)) {
      hung += 1
      return
    }
    const { method, headers } = request
    const sent = await fetch(`${billing.simulator.url}${request.url}`, {
      method: method!,
      headers: { 'content-type': headers['content-type'] ?? 'application/json' },
      ...(body.length > 0 && { body }),
    }).catch(() => undefined)
    if (!sent) return response.destroy()
    return response.writeHead(sent.status, { 'content-type': 'application/json' }).end(await sent.text())
  })
})
await new Promise<void>((resolve) => gate.listen(0, '127.0.0.1', resolve))
const { port } = gate.address() as AddressInfo
// Longer than the test may take.
const env = { SIMULATOR_URL: `http://127.0.0.1:${port}`, PROVIDER_TIMEOUT_MS: '60000' }
const billing = await startBilling(env, {}, countClockReadings)
const hanging = await billing.organization()
const quick = await billing.organization()
after(async () => {
  gate.closeAllConnections()
  await new Promise((resolve) => gate.close(resolve))
  await billing.stop()
})

function countClockReadings(db: Db): Db {
  const query = (async (statement, params) => {
    const rows = await db.query(statement, params)
    if (typeof statement === 'string' && statement.includes('extract(epoch from db_clock()) * 1000')) clockReadings += 1
    return rows
  }) as Db['query']
  return { ...db, query }
}

test('look-ups that hang for one organization delay those of another not at all', async () => {
  const users = await Promise.all(
    Array.from({ length: HANGING }, () => hanging.customer({ token: 'sim_drop_no_charge', merchantId: 'hangs' })),
  )
  for (const response of await Promise.all(users.map((user) => hanging.charge(user))))
    assert.equal(response.body.checkout_status, 'processing', response.text)
  await until('look-ups to hang', () => hung >= 8)
  const user = await quick.customer({ token: 'sim_charge_then_drop' })
  const key = { idempotency_key: 'k' }
  assert.equal((await quick.charge(user, key)).body.checkout_status, 'processing')
  const response = await settled(() => quick.charge(user, key), 30_000)
  assert.equal(response.body.checkout_status, 'succeeded')
  assert.ok(hung <= 8, `${hung} look-ups of one account at once`)
})

test('a clock that was set back puts off no settling', async () => {
  const setClock = (ahead?: string) => setDatabaseClock(billing.server.env.DATABASE_URL!, ahead)
  const [before, user] = await Promise.all([1, 2].map(() => quick.customer({ token: 'sim_charge_then_drop' })))
  const charge = async (who = user!) => (await quick.charge(who, { idempotency_key: 'k' })).body.checkout_status
  await setClock('2 hours')
  // Only a process that has read the clock ahead can see that it was set back.
  const readings = clockReadings
  await until('the process to read the clock', () => clockReadings > readings)
  await until('a charge to be settled ahead of time', async () => (await charge(before)) === 'succeeded')
  await until('a charge to be in progress', async () => (await charge()) === 'processing')
  const looksAtRefund = await adoptPendingRefund()
  await setClock()
  await until('the charge to be settled', async () => (await charge()) === 'succeeded')
  await until('the refund to be looked at', async () => (await looksAtRefund()) > 0)
})

/** Adopts a refund that was made at the provider and has no outcome yet. Returns what tells how often it was looked at. */
async function adoptPendingRefund(): Promise<() => Promise<number>> {
  const { transactionId, orderId } = await payCharge(billing, quick)
  const details = { ...noDetails, psp_transaction_id: 'made-there' }
  const refund = { key: null, reference: null, transactionId: 'made-there', status: 'pending', details } as const
  const found = { ...refund, amountMinor: 1050n, currencyCode: 'USD', at: '2026-01-31T22:00:00Z' }
  const there = scriptedProvider({ refundsOf: async () => [found] })
  const adoptions = await adoptRefundsOfCharge(
    billingContext(billing.server.app),
    there,
    { psp: 'simulator', merchantId: '*', organizationId: null },
    transactionId,
  )
  assert.deepEqual(adoptions, ['adopted'])
  return async () => {
    const [row] = await billing.db.query('select looks from refunds where order_id = $1', [orderId])
    return Number(row!.looks)
  }
}
