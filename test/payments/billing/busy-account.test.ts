// A merchant account that takes one call at a time: calls that find no place are refused before they begin.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '../../../src/lib/errors.ts'
import { oneOffCharge } from '../../../src/payments/billing/kinds.ts'
import { type Claiming, refund } from '../../../src/payments/billing/refund/refund.ts'
import { SimulatorProvider } from '../../../src/payments/providers/simulator.ts'
import { startShop } from '../../support/billing.ts'
import { HandClock } from '../../support/time.ts'
import { chargeOf, contextOf, refundOf } from './in-process.ts'

const MANY = 6

const { billing, shop } = await startShop({}, { worker: false })
const { url } = billing.simulator
const provider = new SimulatorProvider({ url, clock: new HandClock(), maxInFlight: 1, maxWaiting: 1 })
// The claims of a busy machine may take a while: the lease is not what these tests are about.
const context = contextOf(billing.db, provider, { providerTimeoutMs: 30_000 })

const isBusy = (error: unknown) =>
  error instanceof ApiError && error.status === 503 && error.code === 'provider_unavailable'

/** Runs all at once; expects that some succeed and the others are refused with a 503, and returns the refused. */
async function someRefused<One>(all: One[], run: (one: One) => Promise<unknown>): Promise<One[]> {
  const outcomes = await Promise.all(
    all.map((one) =>
      run(one).then(
        () => 'done',
        (error) => error,
      ),
    ),
  )
  const refused = all.filter((_, n) => outcomes[n] !== 'done')
  for (const outcome of outcomes) assert.ok(outcome === 'done' || isBusy(outcome), String(outcome))
  assert.ok(refused.length > 0 && refused.length < all.length, `${refused.length} of ${all.length} were refused`)
  return refused
}

/** Lets no claim of a refund return before all are made, so that all calls begin at once. */
function meeting(many: number): Claiming {
  const { promise, resolve } = Promise.withResolvers<void>()
  let claims = 0
  return {
    onClaim: async () => {},
    async inTurn(claim) {
      const claimed = await claim()
      claims += 1
      if (claims === many) resolve()
      await promise
      return claimed
    },
  }
}

test('503 for charges and refunds that find no place, and their keys are free', async () => {
  const users = await Promise.all(Array.from({ length: MANY }, () => shop.customer({ token: 'sim_slow_200ms' })))
  const orders = new Map<string, string>()
  // The first claim goes alone, the others together: their calls begin at once.
  const charge = async (user: string) => {
    const { order_id, checkout_status, idempotent_replay } = await oneOffCharge(context, shop.id, chargeOf(user))
    assert.deepEqual([checkout_status, idempotent_replay], ['succeeded', false])
    orders.set(user, order_id)
  }
  const refused = await someRefused(users, charge)
  const kept = await billing.db.query('select external_id from orders')
  assert.equal(kept.length, MANY - refused.length, 'nothing is kept of what was refused')
  for (const user of refused) await charge(user)

  const held = meeting(MANY)
  const payBack = async (user: string, claiming?: Claiming) => {
    const response = await refund(context, shop.id, refundOf(user, orders.get(user)!, { amount: '1' }), claiming)
    assert.deepEqual([response.refund_status, response.idempotent_replay], ['succeeded', false])
  }
  for (const user of await someRefused(users, (one) => payBack(one, held))) await payBack(user)
  const movements = await billing.ledger()
  assert.equal(movements.length, 2 * MANY)
  assert.equal(movements.filter(({ type }) => type === 'refund').length, MANY)
})
