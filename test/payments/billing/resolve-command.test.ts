// tundish charges resolve and tundish worker: unknown outcomes, ended by an operator or by the worker's process.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { settled, startShop } from '../../support/billing.ts'
import { spawnTundish } from '../../support/cli.ts'
import { tundishAgain } from '../../support/resident.ts'
import { column } from '../../support/rows.ts'

const { billing, shop } = await startShop({}, { worker: false })

const run = (...args: string[]) => tundishAgain(args, billing.server.env)

test('order show and its --json write amounts with all decimals', async () => {
  const { order_id } = (await shop.charge(await shop.customer(), { amount: '7' })).body
  const { stdout } = await run('order', 'show', order_id, '--org', shop.id)
  assert.match(stdout, /^amount +7\.00$/m)
  assert.match(stdout, /^amount_refunded +0\.00$/m)
  const json = await run('order', 'list', '--org', shop.id, '--limit', '1', '--json')
  assert.match(json.stdout, /"amount":7\.00,"currency_code":"USD","amount_refunded":0\.00,/)
})

test('order refund: 2 for an invalid amount or without a key, 1 for more than is left', async () => {
  const { order_id } = (await shop.charge(await shop.customer(), { amount: '7' })).body
  const refund = (...more: string[]) => run('order', 'refund', order_id, '--yes', '--org', shop.id, ...more)
  for (const [code, ...args] of [
    [2, '--amount', '1e1', '--idempotency-key', 'k'],
    [2, '--amount', '0', '--idempotency-key', 'k'],
    [2, '--amount', '1'],
    [1, '--amount', '7.01', '--idempotency-key', 'k'],
  ] as [number, ...string[]][]) {
    const outcome = await refund(...args)
    assert.deepEqual([outcome.code, outcome.stdout], [code, ''], args.join(' '))
    assert.match(outcome.stderr, /^(amount|idempotency_key) .+\.\n$/)
  }
})

describe('charges resolve', () => {
  const lost = async () => {
    const user = await shop.customer({ token: 'sim_drop_no_charge' })
    const ask = () => shop.charge(user, { idempotency_key: 'k' })
    return { user, ask, order: (await ask()).body.order_id as string }
  }

  test('ends a charge whose provider is unreachable, and keeps the reason', async () => {
    const { user, ask, order } = await lost()
    await billing.simulator.stop()
    const { code, stdout, stderr } = await run(
      'charges',
      'resolve',
      order,
      '--as',
      'succeeded',
      '--because',
      'bank statement',
    )
    await billing.simulator.start()
    assert.equal(code, 0, stderr)
    assert.equal(stdout, `The order ${order} is succeeded.\n`)
    assert.equal((await ask()).body.checkout_status, 'succeeded')
    assert.equal((await shop.consumables(user)).length, 1)
    const [row] = await billing.db.query('select resolved_because from orders where order_id = $1', [order])
    assert.equal(row!.resolved_because, 'bank statement')
    assert.match((await shop.refund(user, order)).body.message, /refund it at the provider/)
    const again = await run('charges', 'resolve', order, '--as', 'failed', '--because', 'x')
    assert.deepEqual([again.code, again.stderr], [1, `The order ${order} is succeeded already.\n`])
  })

  test('ends a refund, too, as succeeded or failed', async () => {
    const user = await shop.customer({ token: 'sim_refund_drop' })
    const order = (await shop.charge(user)).body.order_id as string
    const begun = (await shop.refund(user, order)).body
    assert.equal(begun.refund_status, 'processing')
    const id = begun.refund_id as string
    await billing.simulator.stop()
    try {
      const word = (as: string) => run('charges', 'resolve', id, '--as', as, '--because', 'dashboard')
      assert.deepEqual(await word('cancelled'), {
        code: 1,
        stdout: '',
        stderr: 'A refund is never cancelled: it has succeeded or failed.\n',
      })
      const { code, stdout } = await word('succeeded')
      assert.deepEqual([code, stdout], [0, `The refund ${id} is succeeded.\n`])
      assert.deepEqual((await word('failed')).stderr, `The refund ${id} is succeeded already.\n`)
    } finally {
      await billing.simulator.start()
    }
    const [row] = await billing.db.query('select resolved_because from refunds where refund_id = $1', [id])
    assert.equal(row!.resolved_because, 'dashboard')
    const entries = await billing.db.query('select action, target from audit_log order by sequence desc limit 1')
    assert.deepEqual(entries, [{ action: 'order.resolve_asked', target: `refund ${id}` }])
    const [consumable] = await shop.consumables(user)
    assert.equal(consumable.is_active, false)
    assert.deepEqual(column(await shop.report({ order_id: order }), 'status'), ['succeeded', 'refunded'])
  })

  test('1 when the provider knows the outcome, which counts', async () => {
    const { ask, order } = await lost()
    const { code, stderr } = await run('charges', 'resolve', order, '--as', 'succeeded', '--because', 'x')
    assert.deepEqual([code, stderr], [1, `The provider knows the outcome: the order ${order} is cancelled now.\n`])
    assert.equal((await ask()).body.checkout_status, 'cancelled')
  })

  test('1 while another process is making the charge', async () => {
    const { order } = await lost()
    await billing.db.query(
      `update orders set lease_until = db_clock() + interval '1 minute', next_look_at = db_clock() + interval '1 minute' where order_id = $1`,
      [order],
    )
    assert.match((await run('charges', 'resolve', order, '--as', 'failed', '--because', 'x')).stderr, /at this moment/)
  })

  test('2 for bad usage, 1 for an unknown order', async () => {
    for (const args of [
      ['x', '--as', 'failed', '--because', 'x'],
      [randomUUID(), '--as', 'done', '--because', 'x'],
      [randomUUID(), '--as', 'failed'],
      [randomUUID(), '--as', 'failed', '--because', ' '],
    ]) {
      assert.equal((await run('charges', 'resolve', ...args)).code, 2, args.join(' '))
    }
    assert.equal((await run('charges', 'resolve', randomUUID(), '--as', 'failed', '--because', 'x')).code, 1)
  })
})

test('tundish worker settles unknown outcomes of servers that run without one', async () => {
  const user = await shop.customer({ token: 'sim_charge_then_drop' })
  const ask = () => shop.charge(user, { idempotency_key: 'k' })
  assert.equal((await ask()).body.checkout_status, 'processing')
  const worker = spawnTundish(['worker'], billing.server.env)
  try {
    assert.equal((await settled(ask)).body.checkout_status, 'succeeded')
  } finally {
    worker.kill('SIGTERM')
  }
  const [code] = await new Promise<[number]>((resolve) => worker.on('exit', (given) => resolve([given ?? -1])))
  assert.equal(code, 0)
})
