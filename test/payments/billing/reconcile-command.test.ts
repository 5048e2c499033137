// tundish reconcile: settles what was forgotten, and reports what differs from the provider.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { type Movement, noDetails } from '../../../src/payments/providers/provider.ts'
import { startBilling } from '../../support/billing.ts'
import { tundishAgain } from '../../support/resident.ts'
import { column } from '../../support/rows.ts'
import { silent } from '../../support/simulators.ts'
import { fixedProviders, scriptedProvider, verdict } from './scripted-provider.ts'

const billing = await startBilling({}, { worker: false })
after(() => billing.stop())

const run = (...args: string[]) => tundishAgain(args, billing.server.env)

describe('reconcile', () => {
  const all = '2020-01-01T00:00:00Z'

  test('settles unknown outcomes, and reports what differs', async () => {
    const other = await billing.organization()
    const good = await other.customer()
    const paid = (await other.charge(good)).body.order_id
    await other.refund(good, paid, { amount: 1, idempotency_key: 'r' })
    const forgotten = await other.customer({ token: 'sim_charge_then_drop' })
    const order = (await other.charge(forgotten, { idempotency_key: 'k' })).body.order_id
    const first = await run('reconcile', '--since', all, '--json')
    const told = JSON.parse(first.stdout)
    assert.equal(told.settled, 1)
    assert.ok(told.match >= 2)
    assert.equal((await other.charge(forgotten, { idempotency_key: 'k' })).body.checkout_status, 'succeeded')

    const gone = (await other.charge(await other.customer())).body.order_id
    const wrong = (await other.charge(await other.customer())).body.order_id
    const never = (await other.charge(await other.customer())).body.order_id
    await billing.db.query('delete from consumables where order_id = $1', [gone])
    await billing.db.query('delete from order_log where order_id = $1', [gone])
    await billing.db.query('delete from orders where order_id = $1', [gone])
    await billing.db.query('update orders set amount = 99 where order_id = $1', [wrong])
    await billing.db.query('update orders set provider_key = $2 where order_id = $1', [never, 'f'.repeat(64)])
    const { code, stdout } = await run('reconcile', '--since', all, '--json')
    assert.equal(code, 1)
    const differences = JSON.parse(stdout).findings.map((one: { difference: string; reference: string }) => [
      one.difference,
      one.reference,
    ])
    for (const expected of [
      ['missing_here', gone],
      ['mismatch', wrong],
      ['missing_here', never],
      ['missing_there', never],
    ]) {
      assert.ok(
        differences.some((one: string[]) => one.join() === expected.join()),
        expected.join(' '),
      )
    }
    assert.ok(!differences.some(([, reference]: string[]) => reference === paid || reference === order))
  })

  test('reports a key that moved money twice, and asks about what moved before the instant', async () => {
    const other = await billing.organization()
    const order = (await other.charge(await other.customer())).body.order_id
    const [row] = await billing.db.query('select provider_key, settled_at from orders where order_id = $1', [order])
    const movement: Movement = {
      type: 'charge',
      key: row!.provider_key!,
      reference: order,
      amountMinor: 1050n,
      currencyCode: 'USD',
      transactionId: 't',
      at: all,
    }
    const looked: string[] = []
    const provider = scriptedProvider({
      async *list() {
        yield movement
        yield { ...movement, transactionId: 'u' }
      },
      async lookUp({ reference }) {
        looked.push(reference)
        return verdict('succeeded')
      },
    })
    const context = {
      ...billingContext(billing.server.app),
      providers: fixedProviders([provider]),
      log: silent,
    }
    const { findings } = await reconcile(context, row!.settled_at!)
    assert.deepEqual(column(findings, 'difference'), ['duplicate'])
    assert.ok(!looked.includes(order))
  })

  test('adopts a refund once the order of its charge was free to be settled', async () => {
    const other = await billing.organization()
    const user = await other.customer({ token: 'sim_charge_then_drop' })
    const { order_id } = (await other.charge(user, { idempotency_key: 'k' })).body
    const charge = (await billing.ledger(order_id))[0]!
    const back = { key: 'b'.repeat(64), reference: randomUUID(), amount_minor: '1050', currency_code: 'USD' }
    const at = { merchant_id: 'merchant-1', region: 'eu', charge_transaction_id: charge.psp_transaction_id }
    await fetch(`${billing.simulator.url}/refunds`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ ...back, ...at }),
    })
    const leaseEnds = (interval: string) =>
      billing.db.query(`update orders set lease_until = db_clock() + interval '${interval}' where order_id = $1`, [
        order_id,
      ])

    await leaseEnds('1 hour')
    const first = JSON.parse((await run('reconcile', '--since', all, '--json')).stdout)
    assert.equal(first.in_progress, 1)
    await leaseEnds('-1 second')
    const second = JSON.parse((await run('reconcile', '--since', all, '--json')).stdout)
    assert.deepEqual([second.settled, second.adopted], [1, 1])
    assert.equal(
      (await other.refund(user, order_id)).body.message,
      'Nothing is left to refund: the whole charge was refunded before.',
    )
  })

  test('learns the id of a charge that an operator resolved, and adopts its refunds', async () => {
    const other = await billing.organization()
    const user = await other.customer({ token: 'sim_charge_then_drop' })
    const { order_id } = (await other.charge(user, { idempotency_key: 'k' })).body
    const charge = (await billing.ledger(order_id))[0]!
    await billing.simulator.stop()
    const resolved = await run('charges', 'resolve', order_id, '--as', 'succeeded', '--because', 'bank statement')
    assert.equal(resolved.code, 0, resolved.stderr)
    await billing.simulator.start()
    assert.match((await other.refund(user, order_id)).body.message, /refund it at the provider/)
    await fetch(`${billing.simulator.url}/refunds`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        ...{ key: 'c'.repeat(64), reference: randomUUID(), amount_minor: '50', currency_code: 'USD' },
        ...{ merchant_id: 'merchant-1', region: 'eu', charge_transaction_id: charge.psp_transaction_id },
      }),
    })
    const { adopted, findings } = JSON.parse((await run('reconcile', '--since', all, '--json')).stdout)
    assert.equal(adopted, 1)
    assert.ok(!JSON.stringify(findings).includes(order_id))
    const rest = await other.refund(user, order_id, { amount: 10, idempotency_key: 'r' })
    assert.equal(rest.body.refund_status, 'succeeded')
    const rows = await other.report({ order_id })
    assert.deepEqual(rows.map(({ status, amount }) => `${status} ${amount}`).toSorted(), [
      'refunded 0.5',
      'refunded 10',
      'succeeded 10.5',
    ])
  })

  test('adopts a refund that the provider lists long before the charge in progress that it pays back', async () => {
    const other = await billing.organization()
    const user = await other.customer({ token: 'sim_charge_then_drop' })
    const { order_id } = (await other.charge(user, { idempotency_key: 'k' })).body
    await billing.db.query(`update orders set lease_until = db_clock() - interval '1 s' where order_id = $1`, [
      order_id,
    ])
    const [row] = await billing.db.query('select provider_key from orders where order_id = $1', [order_id])
    const money = { amountMinor: 1050n, currencyCode: 'USD', at: all }
    const back = { key: null, reference: null, transactionId: 'back', ...money }
    const provider = scriptedProvider({
      async *list() {
        yield { type: 'refund', chargeTransactionId: 'charge', ...back }
        for (let n = 0; n < 500; n++)
          yield { type: 'charge', key: null, reference: null, transactionId: `foreign-${n}`, ...money }
        yield { type: 'charge', key: row!.provider_key!, reference: order_id, transactionId: 'charge', ...money }
      },
      lookUp: async () =>
        verdict('succeeded', { reference: order_id, details: { ...noDetails, psp_transaction_id: 'charge' } }),
      refundsOf: async () => [{ ...back, status: 'succeeded', details: noDetails }],
    })
    const { app } = billing.server
    const context = { ...app, providers: fixedProviders([provider]), log: silent, providerTimeoutMs: 1_000 }
    const { settled, adopted } = await reconcile(context, '2100-01-01T00:00:00Z')
    assert.deepEqual([settled, adopted], [1, 1])
    assert.equal((await other.consumables(user))[0].is_active, false)
  })

  test('0 when all agree; 1 when the provider cannot be asked; 2 for what is no time', async () => {
    const future = new Date(Date.now() + 3_600_000).toISOString()
    assert.equal((await run('reconcile', '--since', future)).code, 0)
    const { code: usage, stderr: sentence } = await run('reconcile', '--since', 'yesterday')
    assert.equal(usage, 2)
    assert.match(sentence, /^--since must be an RFC 3339 date-time such as \S+, got "yesterday"\.\n$/)
    assert.equal((await run('reconcile')).code, 2)
    await billing.simulator.stop()
    const { code, stderr } = await run('reconcile', '--since', all)
    await billing.simulator.start()
    assert.deepEqual([code, /could not be reached/.test(stderr)], [1, true])
  })
})
