// Payments of every shape that Primer's types allow: the adapter reads each without throwing, and reads no money wrong.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, test } from 'node:test'
import { openRandom } from '../../../../src/lib/seeded-random.ts'
import { PrimerProvider } from '../../../../src/payments/providers/primer/primer.ts'
import type { Movement } from '../../../../src/payments/providers/provider.ts'
import { HandClock } from '../../../support/time.ts'
import { chargeRequest } from '../charging.ts'
import { type Json, randomPayment } from './primer-payments.ts'

// SEEDS is how many payments are made.
const SEEDS = Number(process.env['SEEDS'] ?? 1_000)

/** What the server has. A cancellation succeeds or is refused. */
let there: Json
let cancels: boolean

const server = createServer((request, response) => {
  const isCancel = request.url!.endsWith('/cancel')
  const isList = request.url!.startsWith('/payments?')
  if (isCancel && cancels) there = { ...there, status: 'CANCELLED' }
  response.writeHead(isCancel && !cancels ? 400 : 200, { 'content-type': 'application/json' })
  request.resume().on('end', () => {
    if (isCancel && !cancels) response.end(JSON.stringify({ error: { errorId: 'PaymentError', description: '' } }))
    else response.end(JSON.stringify(isList ? { data: [there] } : there))
  })
})
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
const account = { apiKey: 'simulated-primer-key', apiUrl, merchantId: 'primer-1', isSandbox: true }
const provider = new PrimerProvider({ ...account, clock: new HandClock() })
after(() => {
  provider.close()
  server.close()
})

const MOVES = ['PENDING', 'AUTHORIZED', 'SETTLING', 'SETTLED', 'PARTIALLY_SETTLED']
const statusOf = (one: Json) => one['processorStatus'] ?? one['status']
const typeOf = (one: Json) => one['transactionType'] ?? one['type']
const list = async () => {
  const found: Movement[] = []
  for await (const movement of provider.list('1970-01-01T00:00:00Z')) found.push(movement)
  return found
}

test(`${SEEDS} payments: only what is settled succeeded, with what was captured, and failed is only what can move no more`, async () => {
  const outcomes = new Map<string, number>()
  for (let seed = 1; seed <= SEEDS; seed++) {
    const random = openRandom(seed)
    const request = chargeRequest('tok_visa')
    const made = randomPayment(random, request)
    there = made
    cancels = random.chance(0.5)
    const response = await provider.lookUp({ ...request, handle: made['id'] })
    const told = `seed ${seed}: ${JSON.stringify(made)}`
    outcomes.set(response.outcome, (outcomes.get(response.outcome) ?? 0) + 1)
    const sales = (made['transactions'] ?? []).filter((one: Json) => typeOf(one) === 'SALE')
    if (response.outcome === 'succeeded') {
      assert.ok(['SETTLED', 'PARTIALLY_SETTLED'].includes(made['status']), told)
      const captured = made['processor']?.amountCaptured
      const expected = captured || (made['status'] === 'SETTLED' ? made['amount'] : undefined)
      assert.equal(response.amountMinor, BigInt(expected), told)
      assert.equal(response.currencyCode, made['currencyCode'], told)
      assert.ok(response.amountMinor > 0n, told)
    }
    if (response.outcome === 'failed' || response.outcome === 'refused') {
      assert.ok(['DECLINED', 'FAILED', 'CANCELLED'].includes(there['status']), told)
      // A payment that was cancelled here, or no attempt of which may still move money.
      const mayMove = sales.some((one: Json) => MOVES.includes(statusOf(one)))
      assert.ok(there['status'] === 'CANCELLED' || !mayMove, told)
      assert.ok(!sales.some((one: Json) => MOVES.slice(1).includes(statusOf(one))), told)
      const type = made['statusReason']?.type ?? sales.at(-1)?.processorStatusReason?.type
      if (made['status'] === 'FAILED' && there['status'] === 'FAILED')
        assert.ok(['GATEWAY_REJECTED', 'ISSUER_DECLINED'].includes(type), told)
    }
    if (made['status'] === 'DISPUTED') assert.equal(response.outcome, 'unknown', told)
    await readRefunds(made, told)
  }
  for (const outcome of ['succeeded', 'failed', 'refused', 'authorized', 'pending', 'unknown'])
    assert.ok(outcomes.has(outcome), `${outcome} never came: ${JSON.stringify([...outcomes])}`)
})

async function readRefunds(made: Json, told: string): Promise<void> {
  there = made
  const refunds = ((made['transactions'] ?? []) as Json[]).filter((one) => typeOf(one) === 'REFUND')
  const found = await provider.refundsOf({ chargeTransactionId: made['id'] })
  const isWhole = refunds.every((one) => Number.isSafeInteger(one['amount']))
  assert.equal(Array.isArray(found), isWhole, told)
  if (!Array.isArray(found)) return
  assert.deepEqual(
    found.map(({ amountMinor }) => amountMinor).sort(),
    refunds.map((one) => BigInt(one['amount'])).sort(),
    told,
  )
  for (const { status, details } of found) if (status === 'succeeded') assert.equal(details.psp_status, 'SETTLED', told)
  assert.equal(new Set(found.map(({ transactionId }) => transactionId)).size, found.length, told)
  const isOurs = made['metadata']?.tundish_key !== undefined
  const canBeCharged = !['SETTLED', 'PARTIALLY_SETTLED'].includes(made['status']) || made['amount'] > 0
  if (made['status'] === 'PARTIALLY_SETTLED' || !canBeCharged) return
  const movements = await list()
  assert.equal(movements.length > 0, isOurs, told)
}

test('amounts that cannot be read are no outcome', async () => {
  const request = chargeRequest('tok_visa')
  const good = { id: 'pay1', status: 'SETTLED', amount: 1050, currencyCode: 'USD', transactions: [] }
  const lookUp = async (payment: Json) => {
    there = payment
    return (await provider.lookUp({ ...request, handle: 'pay1' })).outcome
  }
  assert.equal(await lookUp(good), 'succeeded')
  for (const amount of ['1050', 10.5, -1, null, 2 ** 60, undefined, 0])
    assert.equal(await lookUp({ ...good, amount }), 'unknown', `amount ${amount}`)
  // Of these two lists disagree about the decimals.
  for (const currencyCode of ['HUF', 'MGA', 'XYZ', 'usd2', null, undefined])
    assert.equal(await lookUp({ ...good, currencyCode }), 'unknown', `currency ${currencyCode}`)
  for (const other of [{}, [], 'text', null, { ...good, id: 5 }, { ...good, status: null }])
    assert.equal(await lookUp(other as Json), 'unknown', JSON.stringify(other))
})
