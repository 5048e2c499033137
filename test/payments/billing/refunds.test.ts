// Refunds through HTTP: what may be paid back, keys, sums, the consumable, the report and the events.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { addPayment, refused, startShop } from '../../support/billing.ts'
import { columns } from '../../support/rows.ts'

// A look would end what is to be in progress.
const { billing, shop } = await startShop({}, { worker: false })

async function charged(
  given: { token?: string; amount?: string; currency_code?: string } = {},
): Promise<[string, string]> {
  const { token, ...more } = given
  const user = await shop.customer(token === undefined ? {} : { token })
  return [user, (await shop.charge(user, more)).body.order_id]
}

const key = () => ({ idempotency_key: randomUUID() })

describe('a full refund', () => {
  test('without an amount pays back all that is left and revokes the consumable', async () => {
    const [user, order_id] = await charged()
    const response = await shop.refund(user, order_id)
    assert.equal(response.status, 200)
    assert.match(response.text, /"amount":10\.50,.*"amount_refunded":10\.50/)
    const { refund_id, ...rest } = response.body
    assert.deepEqual(rest, {
      order_id,
      refund_status: 'succeeded',
      amount: 10.5,
      currency_code: 'USD',
      amount_refunded: 10.5,
      consumable_revoked: true,
      idempotent_replay: false,
    })
    const [consumable] = await shop.consumables(user)
    assert.equal(consumable.is_active, false)
    assert.match(consumable.revoked_at, /Z$/)
    const [movement] = await billing.ledger(refund_id)
    assert.deepEqual([movement!.type, movement!.amount], ['refund', 10.5])
    refused(await shop.refund(user, order_id), /^Nothing is left to refund/)
  })

  test('has its own row in the report and its events', async () => {
    const [user, order_id] = await charged()
    const { refund_id, ...refund } = (await shop.refund(user, order_id)).body
    const rows = await shop.report({ order_id })
    assert.deepEqual(columns(rows, 'status', 'psp_transaction_type', 'amount'), [
      ['succeeded', 'sale', 10.5],
      ['refunded', 'refund', 10.5],
    ])
    const events = await billing.db.query(
      `select type, data from events where object_id = any($1) and type <> 'consumable.granted'`,
      [[refund_id, (await shop.consumables(user))[0].consumable_id]],
    )
    const told = Object.fromEntries(events.map(({ type, data }) => [type, JSON.parse(data!)]))
    assert.deepEqual(told, {
      'refund.succeeded': { refund_id, ...refund },
      'consumable.revoked': (await shop.consumables(user))[0],
    })
  })

  test('has one entry in the audit log, with the organization of the key, however often it is sent', async () => {
    const [user, order_id] = await charged()
    const more = { amount: '10.50', ...key() }
    const { refund_id } = (await shop.refund(user, order_id, more)).body
    await shop.refund(user, order_id, more)
    const rows = await billing.db.query('select actor_kind, actor, action, after from audit_log where target = $1', [
      `order ${order_id}`,
    ])
    const after = { refund_id, amount: '10.50', currency_code: 'USD', soft_refund: false }
    assert.deepEqual(
      rows.map((row) => ({ ...row, after: JSON.parse(row.after!) })),
      [{ actor_kind: 'organization key', actor: shop.id, action: 'refund.begun', after }],
    )
  })

  test('of several that add up to the whole amount the last one revokes', async () => {
    const [user, order_id] = await charged()
    const part = await shop.refund(user, order_id, { amount: '10.49', ...key() })
    assert.deepEqual([part.body.consumable_revoked, part.body.amount_refunded], [false, 10.49])
    assert.equal((await shop.consumables(user))[0].is_active, true)
    const rest = await shop.refund(user, order_id)
    assert.deepEqual([rest.body.amount, rest.body.consumable_revoked, rest.body.amount_refunded], [0.01, true, 10.5])
  })

  test('that is soft, or holds a soft part, leaves the consumable', async () => {
    const [user, order_id] = await charged()
    const soft = await shop.refund(user, order_id, { soft_refund: true })
    assert.deepEqual([soft.body.amount_refunded, soft.body.consumable_revoked], [10.5, false])
    assert.equal((await shop.consumables(user))[0].is_active, true)
    const [other, second] = await charged()
    await shop.refund(other, second, { amount: 1, soft_refund: true, ...key() })
    assert.equal((await shop.refund(other, second)).body.consumable_revoked, false)
    assert.equal((await shop.consumables(other))[0].is_active, true)
  })
})

describe('rules', () => {
  test('400 for an unknown order, another customer’s, another organization’s', async () => {
    const [user, order_id] = await charged()
    refused(await shop.refund(user, randomUUID()), /has no order/)
    refused(await shop.refund(await shop.customer(), order_id), /has no order/)
    const other = await billing.organization()
    refused(await other.refund(user, order_id), /has no order/)
  })

  test('400 for an imported payment, which was not charged here', async () => {
    const user = await shop.customer()
    const order_id = await addPayment(billing.db, shop.id, user, {})
    refused(await shop.refund(user, order_id), /not charged through Tundish/)
  })

  test('400 for a charge that did not succeed', async () => {
    refused(
      await shop.refund(...(await charged({ token: 'pm_card_chargeDeclined' }))),
      /can be refunded: order "[0-9a-f-]+" is failed\.$/,
    )
    refused(
      await shop.refund(...(await charged({ token: 'sim_drop_no_charge' }))),
      /can be refunded: order "[0-9a-f-]+" is processing\.$/,
    )
  })

  test('400 for more than what is left', async () => {
    const [user, order_id] = await charged()
    refused(
      await shop.refund(user, order_id, { amount: '10.51', ...key() }),
      /^amount must be at most 10\.50 USD, what is left of the charge, got /,
    )
    await shop.refund(user, order_id, { amount: 4, ...key() })
    refused(
      await shop.refund(user, order_id, { amount: '6.51', ...key() }),
      /at most 6\.50 USD, what is left of the charge/,
    )
    assert.equal((await shop.refund(user, order_id, { amount: '6.5', ...key() })).body.amount_refunded, 10.5)
    assert.equal((await billing.ledger()).filter(({ type }) => type === 'refund').length > 0, true)
  })

  test('amounts are read as those of charges', async () => {
    const [user, order_id] = await charged({ amount: '500', currency_code: 'JPY' })
    refused(
      await shop.refund(user, order_id, { amount: '1.5', ...key() }),
      /^amount must have no decimal places in JPY, got "1\.5"\.$/,
    )
    for (const amount of [0, '0', -1, '-1'])
      refused(await shop.refund(user, order_id, { amount, ...key() }), /greater than 0/)
    for (const amount of ['1e1', true, null, ''])
      assert.equal((await shop.refund(user, order_id, { amount, ...key() })).status, 400)
    assert.equal((await shop.refund(user, order_id, { amount: '1.000', ...key() })).body.amount, 1)
  })

  test('with an amount the key is required', async () => {
    refused(await shop.refund(...(await charged()), { amount: 1 }), /idempotency_key is required with an amount/)
  })

  test('400 for a body of another shape', async () => {
    const [user, order_id] = await charged()
    for (const more of [
      { order_id: 'x' },
      { order_id: `urn:uuid:${order_id}` },
      { reason: 'x'.repeat(257) },
      { comment: 'x'.repeat(2049) },
      { soft_refund: 1 },
      { idempotency_key: '' },
      { idempotency_key: 'a\u0000' },
      { tip: 1 },
      { amount: undefined, external_id: undefined },
    ]) {
      assert.equal((await shop.refund(user, order_id, more)).status, 400, JSON.stringify(more))
    }
    const upper = await shop.refund(user, order_id.toUpperCase(), {
      reason: 'r'.repeat(256),
      comment: 'c'.repeat(2048),
    })
    assert.equal(upper.body.order_id, order_id)
  })

  test('refunds go on when charges are no longer enabled', async () => {
    const [user, order_id] = await charged()
    await shop.set('one_off_charge_enabled', false)
    assert.equal((await shop.refund(user, order_id)).body.refund_status, 'succeeded')
    await shop.set('one_off_charge_enabled', true)
  })
})

describe('keys', () => {
  test('a replay returns the first refund and pays back nothing', async () => {
    const [user, order_id] = await charged()
    const first = await shop.refund(user, order_id, { amount: 4, idempotency_key: 'k' })
    for (const amount of ['4', '4.00', 4]) {
      const again = await shop.refund(user, order_id, { amount, idempotency_key: 'k' })
      assert.deepEqual(again.body, { ...first.body, idempotent_replay: true })
    }
    assert.equal((await billing.ledger(first.body.refund_id)).length, 1)
  })

  test('idempotency_key_reused for another amount, order or kind of refund', async () => {
    const [user, order_id] = await charged()
    const second = (await shop.charge(user)).body.order_id
    await shop.refund(user, order_id, { amount: 4, idempotency_key: 'k' })
    await shop.refund(user, second, { idempotency_key: 'all' })
    const reused = (order: string, more: object) => shop.refund(user, order, more)
    for (const response of [
      await reused(order_id, { amount: 5, idempotency_key: 'k' }),
      await reused(second, { amount: 4, idempotency_key: 'k' }),
      await reused(order_id, { amount: 4, idempotency_key: 'k', soft_refund: true }),
      await reused(order_id, { idempotency_key: 'k' }),
      await reused(second, { amount: '10.50', idempotency_key: 'all' }),
    ]) {
      refused(response, /idempotency_key was used/, 'idempotency_key_reused')
    }
    assert.equal((await reused(second, { idempotency_key: 'all' })).body.idempotent_replay, true)
  })

  test('a key of a charge is not a key of a refund', async () => {
    const user = await shop.customer()
    const { order_id } = (await shop.charge(user, { idempotency_key: 'k' })).body
    assert.equal((await shop.refund(user, order_id, { idempotency_key: 'k' })).body.refund_status, 'succeeded')
  })
})

test('a refund that the provider declines is failed, reported so, and leaves all as it was', async () => {
  const [user, order_id] = await charged({ token: 'sim_refund_fails' })
  const response = await shop.refund(user, order_id)
  assert.deepEqual(
    [response.body.refund_status, response.body.amount_refunded, response.body.consumable_revoked],
    ['failed', 0, false],
  )
  const rows = await shop.report({ order_id })
  assert.deepEqual([rows[1].status, rows[1].psp_transaction_type], ['failed', 'refund'])
  assert.equal((await shop.consumables(user))[0].is_active, true)
  const again = await shop.refund(user, order_id)
  assert.notEqual(again.body.refund_id, response.body.refund_id, 'the next try is a new refund with its own key')
})
