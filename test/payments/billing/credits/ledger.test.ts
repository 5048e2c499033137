// Credits through HTTP: spend, hold, capture, release, grant and adjust, each at most once for its key.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { refused, startBilling } from '../../../support/billing.ts'
import { addUnit, stopChecked, withCredits } from '../../../support/credits.ts'
import { columns } from '../../../support/rows.ts'

const billing = await startBilling()
after(() => stopChecked(billing))
const shop = await withCredits(billing.db, await billing.organization())
const { db } = billing

async function holder(amount: number | string, more: object = {}): Promise<string> {
  const external_id = await shop.customer()
  const response = await shop.credits('grant', { external_id, amount, ...more })
  assert.equal(response.status, 200, response.text)
  return external_id
}

describe('a spend', () => {
  test('200 with what is left, and the same response under the same key', async () => {
    const external_id = await holder(100)
    const body = { external_id, amount: 30, idempotency_key: 'a', metadata: { job: 7 } }
    const first = await shop.credits('spend', body)
    assert.equal(first.status, 200, first.text)
    const { entry_id, ...rest } = first.body
    assert.deepEqual(rest, { balance: 70, held: 0, available: 70, idempotent_replay: false })
    await shop.credits('spend', { external_id, amount: 5 })
    const again = await shop.credits('spend', { ...body, amount: '30.0' })
    assert.deepEqual(again.body, { ...first.body, idempotent_replay: true })
    assert.deepEqual(await shop.balance(external_id), [65, 0, 65])
    const entries = await shop.entries({ external_id })
    assert.deepEqual(columns(entries, 'account', 'amount', 'balance', 'cause'), [
      ['granted', 100, 100, 'grant'],
      ['spent', -30, 70, 'spend'],
      ['spent', -5, 65, 'spend'],
    ])
    assert.equal(entries[1]!.entry_id, entry_id)
    assert.deepEqual(entries[1]!.metadata, { job: 7 })
  })

  test('400 with the balance when there is not enough, and the key stays free', async () => {
    const external_id = await holder(10)
    const body = { external_id, amount: 11, idempotency_key: 'b' }
    const response = await shop.credits('spend', body)
    assert.equal(response.status, 400)
    const { message, ...sums } = response.body
    assert.match(message, /^The customer has 10 available/)
    assert.deepEqual(sums, { code: 'insufficient_credits', balance: 10, held: 0, available: 10 })
    assert.equal((await shop.credits('spend', { ...body, amount: 10 })).status, 200)
    assert.deepEqual(await shop.balance(external_id), [0, 0, 0])
  })

  test('400 for a customer who never had credits, an unknown customer and an unknown unit', async () => {
    const external_id = await shop.customer()
    const none = await shop.credits('spend', { external_id, amount: 1 })
    assert.equal(none.body.code, 'insufficient_credits')
    refused(await shop.credits('spend', { external_id: 'nobody', amount: 1 }), /no customer/)
    refused(await shop.credits('spend', { external_id, unit: 'gold', amount: 1 }), /no unit "gold"/)
  })

  test('400 for a key that was used for another amount, unit or operation', async () => {
    await addUnit(db, shop.id, 'gold')
    const external_id = await holder(100)
    const key = { external_id, idempotency_key: 'c' }
    await shop.credits('grant', { external_id, unit: 'gold', amount: 100 })
    await shop.credits('spend', { ...key, amount: 1 })
    const reused = /^idempotency_key was used for another request/
    refused(await shop.credits('spend', { ...key, amount: 2 }), reused, 'idempotency_key_reused')
    refused(await shop.credits('spend', { ...key, amount: 1, unit: 'gold' }), reused, 'idempotency_key_reused')
    refused(await shop.credits('hold', { ...key, amount: 1 }), reused, 'idempotency_key_reused')
    refused(await shop.credits('adjust', { ...key, amount: 1, reason: 'x' }), reused, 'idempotency_key_reused')
    assert.deepEqual(await shop.balance(external_id), [99, 0, 99])
    await addUnit(db, shop.id, 'silver')
    refused(await shop.credits('grant', { ...key, unit: 'silver', amount: 1 }), reused, 'idempotency_key_reused')
    const accounts = await db.query('select unit from credit_accounts where external_id = $1 order by unit', [
      external_id,
    ])
    assert.deepEqual(accounts, [{ unit: 'gold' }, { unit: 'tokens' }])
    const other = await holder(5)
    assert.equal((await shop.credits('spend', { external_id: other, idempotency_key: 'c', amount: 1 })).status, 200)
  })

  test('400 for amounts that are no amounts of the unit', async () => {
    const external_id = await holder(100)
    await addUnit(db, shop.id, 'minutes', 2)
    await shop.credits('grant', { external_id, unit: 'minutes', amount: '10.25' })
    for (const amount of [0, -1, '1.5', 1.5, '1e2', 'x', '-3', '1000000000000', '0.0000001'])
      refused(await shop.credits('spend', { external_id, amount }), /^amount /)
    refused(await shop.credits('spend', { external_id, unit: 'minutes', amount: '0.001' }), /at most 2 decimal places/)
    const spent = await shop.credits('spend', { external_id, unit: 'minutes', amount: '0.20' })
    assert.match(spent.text, /"balance":10\.05,/)
  })

  test('uses first what expires first', async () => {
    const external_id = await holder(10)
    const soon = new Date(Date.now() + 3_600_000).toISOString()
    const later = new Date(Date.now() + 7_200_000).toISOString()
    await shop.credits('grant', { external_id, amount: 10, expires_at: later })
    await shop.credits('grant', { external_id, amount: 10, expires_at: soon })
    await shop.credits('spend', { external_id, amount: 13 })
    const [balance] = (await shop.post('/credits/balance', { external_id })).body.balances
    assert.deepEqual(balance.expires, [{ at: later.replace('Z', '000Z'), amount: 7 }])
  })
})

describe('a hold', () => {
  test('is not available, and its capture spends a part and releases the rest', async () => {
    const external_id = await holder(100)
    const held = await shop.credits('hold', { external_id, amount: 60, expires_in: 60 })
    const { hold_id, ...sums } = held.body
    assert.deepEqual(sums, { balance: 100, held: 60, available: 40, idempotent_replay: false })
    assert.equal((await shop.credits('spend', { external_id, amount: 41 })).body.code, 'insufficient_credits')
    assert.equal((await shop.credits('hold', { external_id, amount: 41 })).body.code, 'insufficient_credits')
    const key = { idempotency_key: randomUUID() }
    refused(await shop.post('/credits/capture', { hold_id, amount: 61, ...key }), /at most 60, which is held/)
    const captured = await shop.post('/credits/capture', { hold_id, amount: 25, ...key })
    assert.deepEqual(
      [captured.body.balance, captured.body.held, captured.body.available, captured.body.hold_id],
      [75, 0, 75, hold_id],
    )
    const again = await shop.post('/credits/capture', { hold_id, amount: 25, ...key })
    assert.deepEqual(again.body, { ...captured.body, idempotent_replay: true })
    const second = { hold_id, idempotency_key: randomUUID() }
    refused(await shop.post('/credits/capture', second), /captured or released before/)
    refused(await shop.post('/credits/release', second), /captured or released before/)
    const [entry] = (await shop.entries({ external_id })).slice(-1)
    assert.deepEqual([entry!.cause, entry!.hold_id, entry!.amount], ['capture', hold_id, -25])
  })

  test('lasts 60 seconds for an expires_in of 60, 60.0 and 6e1, which are the same request', async () => {
    const external_id = await holder(10)
    const hold = (expires_in: string) =>
      shop.post(
        '/credits/hold',
        `{"external_id":"${external_id}","unit":"tokens","amount":4,"idempotency_key":"h","expires_in":${expires_in}}`,
      )
    const [first, ...again] = [await hold('60.0'), await hold('6e1'), await hold('60')]
    assert.equal(first!.status, 200, first!.text)
    for (const { body } of again) assert.deepEqual(body, { ...first!.body, idempotent_replay: true })
    const [row] = await db.query(
      'select extract(epoch from expires_at - created_at)::int as seconds from credit_holds where hold_id = $1',
      [first!.body.hold_id],
    )
    assert.equal(row!.seconds, '60')
    refused(await hold('61.0'), /another request/, 'idempotency_key_reused')
  })

  test('is released', async () => {
    const external_id = await holder(10)
    const { hold_id } = (await shop.credits('hold', { external_id, amount: 10 })).body
    const released = await shop.post('/credits/release', { hold_id, idempotency_key: 'r' })
    assert.deepEqual([released.body.held, released.body.available], [0, 10])
    refused(await shop.post('/credits/release', { hold_id: randomUUID(), idempotency_key: 's' }), /no such hold/)
  })

  test('400 for one of another organization', async () => {
    const external_id = await holder(10)
    const { hold_id } = (await shop.credits('hold', { external_id, amount: 10 })).body
    const other = await withCredits(db, await billing.organization())
    refused(await other.post('/credits/capture', { hold_id, idempotency_key: 't' }), /no such hold/)
    assert.deepEqual(await shop.balance(external_id), [10, 10, 0])
  })
})

describe('an adjustment', () => {
  test('adds and takes for a reason, and never more than is available', async () => {
    const external_id = await holder(10)
    await shop.credits('hold', { external_id, amount: 4 })
    const taken = await shop.credits('adjust', { external_id, amount: -6, reason: 'Wrong grant' })
    assert.deepEqual([taken.body.balance, taken.body.available], [4, 0])
    const more = await shop.credits('adjust', { external_id, amount: '-1', reason: 'More' })
    assert.equal(more.body.code, 'insufficient_credits')
    await shop.credits('adjust', { external_id, amount: '2', reason: 'Outage' })
    assert.deepEqual(await shop.balance(external_id), [6, 4, 2])
    const reasons = (await shop.entries({ external_id })).map(({ account, amount, reason }) => [
      account,
      amount,
      reason,
    ])
    assert.deepEqual(reasons.slice(1), [
      ['adjusted', -6, 'Wrong grant'],
      ['adjusted', 2, 'Outage'],
    ])
  })
})

test('entries are walked by the time of the last one', async () => {
  const external_id = await holder(10)
  for (let n = 0; n < 4; n++) await shop.credits('spend', { external_id, amount: 1 })
  const all = await shop.entries({ external_id })
  const walked = []
  for (let after: string | undefined; ; after = walked.at(-1)!.created_at) {
    const page = await shop.entries({ external_id, unit: 'tokens', limit: 2, ...(after && { after }) })
    walked.push(...page)
    if (page.length < 2) break
  }
  assert.deepEqual(walked, all)
})

test('each movement sends its event, in the order of the account', async () => {
  await db.query(`update credit_units set low_below = 5 where organization_id = $1 and unit = 'tokens'`, [shop.id])
  const external_id = await holder(10)
  await shop.credits('spend', { external_id, amount: 6 })
  await shop.credits('spend', { external_id, amount: 1 })
  await shop.credits('adjust', { external_id, amount: -1, reason: 'x' })
  const events = await db.query(
    `select type, sequence from events where project_id = $1 and data ->> 'external_id' = $2 order by sequence`,
    [shop.projectId, external_id],
  )
  assert.deepEqual(columns(events, 'type', 'sequence'), [
    ['credits.granted', '1'],
    ['credits.spent', '2'],
    ['credits.low', '3'],
    ['credits.spent', '4'],
    ['credits.revoked', '5'],
  ])
})

test('400 for bodies with unknown or missing properties', async () => {
  const external_id = await holder(10)
  refused(await shop.credits('spend', { external_id, amount: 1, more: 1 }), /more/)
  refused(await shop.post('/credits/spend', { external_id, unit: 'tokens', amount: 1 }), /idempotency_key/)
  refused(
    await shop.credits('hold', { external_id, amount: 1, expires_in: 86_401 }),
    /expires_in must be at most 86400/,
  )
  const past = '2020-01-01T00:00:00Z'
  refused(await shop.credits('grant', { external_id, amount: 1, expires_at: past }), /in the future/)
  const metadata = { card: '4242424242424242' }
  refused(await shop.credits('spend', { external_id, amount: 1, metadata }), /^metadata must not hold card data/)
})

test('lists of the operator refuse a value that the column never has', async () => {
  const list = (path: string) => billing.server.admin(`/organizations/${shop.id}/credits/${path}`)
  for (const [path, sentence] of [
    ['entries?account=bought', /account must be one of granted, spent, expired, revoked, adjusted/],
    ['holds?status=closed', /status must be one of open, captured, released, expired/],
    ['top-ups?status=active', /status must be one of on, off/],
  ] as const)
    refused(await list(path), sentence)
  await holder(10)
  const { body } = await list('entries?account=granted')
  assert.ok(body.data.length > 0)
})
