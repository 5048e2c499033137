// Charges of an organization that is being copied to a shard: only the old shard settles them until the move is complete.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type ServerProcess, startProcess } from '../support/cli.ts'
import { openSimulator } from '../support/simulators.ts'
import { until } from '../support/time.ts'
import { type Side, setUpPair } from './pair.ts'

const simulator = await openSimulator()
let server: ServerProcess
const { clusters, moveWhile, numberOf, assertServedBy } = setUpPair({
  env: async () => ({ SIMULATOR_URL: simulator.url }),
  ready: async (side, env) => {
    if (side === 'b') server = await startProcess(env)
  },
})
after(async () => {
  await server.stop()
  await simulator.cleanUp()
})

/** A charge and a refund of unknown outcome, which are due. */
const addUnknown = (at: Side, shop: string) =>
  clusters[at].query(`
    insert into orders (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code, psp,
      psp_merchant_id, region, payment_method_token, source_trx_id, provider_key, created_at, next_look_at, status, settled_at)
    select organization_id, gen_random_uuid(), external_id, '${shop}-app', s.state, 1, 'USD', psp, psp_merchant_id, region,
      payment_method_token, trx_id, gen_random_uuid()::text, db_clock(), case s.state when 'processing' then db_clock() end,
      s.state, case s.state when 'succeeded' then db_clock() end
    from report_transactions, unnest(array['processing', 'succeeded']) s (state)
    where organization_id = '${shop}' and external_id = 'user-1';
    insert into refunds (organization_id, refund_id, order_id, external_id, amount, currency_code, soft_refund, reason, comment,
      provider_key, created_at, next_look_at)
    select organization_id, gen_random_uuid(), order_id, external_id, 1, 'USD', false, '', '', gen_random_uuid()::text,
      db_clock(), db_clock()
    from orders where organization_id = '${shop}' and status = 'succeeded'`)

/** How many charges and refunds of the shop were looked up by the new shard. */
const looksAt = (shop: string) =>
  numberOf(
    'b',
    `(select organization_id, looks from orders union all select organization_id, looks from refunds) l
     where organization_id = '${shop}' and looks > 0`,
  )

test('the new shard does not look at what is copied to it', async () => {
  await addUnknown('a', 'shop')
  await moveWhile('Stopping requests', async () => {
    assert.equal(await numberOf('b', `orders where organization_id = 'shop' and status = 'processing'`), 1)
    assert.equal(await numberOf('b', `refunds where organization_id = 'shop' and status = 'processing'`), 1)
    await addUnknown('b', 'other')
    await until('its own to be looked at', async () => (await looksAt('other')) === 2)
    assert.equal(await looksAt('shop'), 0)
  })
  await assertServedBy('b')
  await until('all to be looked at', async () => (await looksAt('shop')) === 2)
})
