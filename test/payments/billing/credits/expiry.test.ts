// Credits and holds that expire: left out of every balance at once, and booked by the clockwork.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { expireDue } from '../../../../src/payments/billing/credits/expiry.ts'
import { refused, startBilling } from '../../../support/billing.ts'
import { stopChecked, withCredits } from '../../../support/credits.ts'
import { setDatabaseClock } from '../../../support/time.ts'

// The test runs the clockwork by hand.
const billing = await startBilling({}, { worker: false })
after(() => stopChecked(billing))
const shop = await withCredits(billing.db, await billing.organization())
const { db } = billing

const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString()
const ahead = (interval: string | undefined) => setDatabaseClock(billing.server.app.databaseUrl, interval)
const entriesOf = async (external_id: string) =>
  (await shop.entries({ external_id })).map(({ account, amount, balance }) => [account, amount, balance])

async function holder(grants: [amount: number, hours: number | null][]): Promise<string> {
  const external_id = await shop.customer()
  for (const [amount, hours] of grants)
    await shop.credits('grant', { external_id, amount, expires_at: hours === null ? null : inHours(hours) })
  return external_id
}

test('what has expired is left out at once, and booked once', async () => {
  const external_id = await holder([
    [10, 1],
    [5, 3],
    [3, null],
  ])
  await shop.credits('spend', { external_id, amount: 4 })
  await ahead('2 hours')
  assert.deepEqual(await shop.balance(external_id), [8, 0, 8])
  assert.equal((await entriesOf(external_id)).length, 4, 'nothing is booked yet')
  assert.equal(await expireDue(db), 1)
  assert.equal(await expireDue(db), 0)
  assert.deepEqual((await entriesOf(external_id)).slice(4), [['expired', -6, 8]])
  await ahead('4 hours')
  const spent = await shop.credits('spend', { external_id, amount: 4 })
  assert.deepEqual([spent.body.code, spent.body.balance], ['insufficient_credits', 3])
  assert.equal(await expireDue(db), 0, 'the refused spend has booked it')
  assert.deepEqual((await entriesOf(external_id)).slice(5), [['expired', -5, 3]])
  await ahead(undefined)
})

test('a hold keeps what it reserves from expiring until it ends', async () => {
  const external_id = await holder([[10, 1]])
  const held = (await shop.credits('hold', { external_id, amount: 6, expires_in: 7_200 })).body
  const other = (await shop.credits('hold', { external_id, amount: 1, expires_in: 7_200 })).body
  await ahead('90 minutes')
  assert.deepEqual(await shop.balance(external_id), [7, 7, 0])
  assert.equal(await expireDue(db), 1)
  assert.equal(await expireDue(db), 0, 'what is held waits for the end of the hold')
  const captured = await shop.post('/credits/capture', { hold_id: held.hold_id, amount: 4, idempotency_key: 'a' })
  assert.deepEqual([captured.body.balance, captured.body.held], [1, 1], 'the rest of the hold expires at once')
  await ahead('3 hours')
  assert.deepEqual(await shop.balance(external_id), [0, 0, 0])
  refused(
    await shop.post('/credits/capture', { hold_id: other.hold_id, amount: 1, idempotency_key: 'b' }),
    /has expired/,
  )
  assert.deepEqual(await entriesOf(external_id), [
    ['granted', 10, 10],
    ['expired', -3, 7],
    ['spent', -4, 3],
    ['expired', -2, 1],
    ['expired', -1, 0],
  ])
  await ahead(undefined)
})

test('a spend leaves to a hold what it has kept from expiring, which expires when it is released', async () => {
  const external_id = await holder([
    [10, 1],
    [5, 3],
  ])
  const { hold_id } = (await shop.credits('hold', { external_id, amount: 8, expires_in: 7_200 })).body
  await ahead('90 minutes')
  await shop.credits('spend', { external_id, amount: 3 })
  await shop.credits('adjust', { external_id, amount: -1, reason: 'test' })
  await shop.post('/credits/release', { hold_id, idempotency_key: 'r' })
  assert.deepEqual(await entriesOf(external_id), [
    ['granted', 10, 10],
    ['granted', 5, 15],
    ['expired', -2, 13],
    ['spent', -3, 10],
    ['adjusted', -1, 9],
    ['expired', -8, 1],
  ])
  await ahead(undefined)
})

test('a hold that expires is available again at once, and is closed by the clockwork', async () => {
  const external_id = await holder([[10, null]])
  const { hold_id } = (await shop.credits('hold', { external_id, amount: 6, expires_in: 60 })).body
  await ahead('2 minutes')
  assert.deepEqual(await shop.balance(external_id), [10, 0, 10])
  assert.equal(await expireDue(db), 1)
  assert.equal(await expireDue(db), 0)
  const [row] = await db.query('select status from credit_holds where hold_id = $1', [hold_id])
  assert.equal(row!.status, 'expired')
  assert.equal((await shop.credits('spend', { external_id, amount: 10 })).status, 200)
  await ahead(undefined)
})

test('several processes book it once', async () => {
  const customers = []
  for (let n = 0; n < 20; n++) customers.push(await holder([[10, 1]]))
  await ahead('2 hours')
  const booked = await Promise.all(Array.from({ length: 8 }, () => expireDue(db)))
  assert.ok(booked.every((n) => n <= 20))
  while ((await expireDue(db)) > 0);
  for (const external_id of customers) {
    assert.deepEqual(await entriesOf(external_id), [
      ['granted', 10, 10],
      ['expired', -10, 0],
    ])
  }
  await ahead(undefined)
})
