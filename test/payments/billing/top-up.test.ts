// Automatic top-ups: charged like any charge, at most once for each turn, on any number of processes, and never again after a decline.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { openDb } from '../../../src/lib/pg/db.ts'
import { billingContext } from '../../../src/payments/billing/context.ts'
import { reconcile } from '../../../src/payments/billing/reconcile/reconcile.ts'
import { startTopUps, topUpDue } from '../../../src/payments/billing/top-up/run.ts'
import { refused, startBilling } from '../../support/billing.ts'
import { succeeded } from '../../support/cli.ts'
import { checkLedger, withCredits } from '../../support/credits.ts'
import { addRow } from '../../support/data.ts'
import { tundishAgain } from '../../support/resident.ts'
import { column } from '../../support/rows.ts'
import { type Json, ok } from '../../support/server.ts'
import { nextNoon, setDatabaseClock, until } from '../../support/time.ts'
import { contextOf } from './in-process.ts'
import { forgetOrders, markUnlisted } from './restored.ts'
import { fixedProviders, scriptedProvider } from './scripted-provider.ts'
import { twoStepProvider } from './two-step-provider.ts'

// The test runs the work by hand.
const billing = await startBilling({}, { worker: false })
after(async () => {
  await setDatabaseClock(billing.server.app.databaseUrl, undefined)
  try {
    await checkLedger(billing.db)
  } finally {
    await billing.stop()
  }
})
const { db, server } = billing
const shop = await withCredits(db, await billing.organization())
const context = billingContext(server.app)

// So that no day or month ends during a test.
const NOON = nextNoon().ahead
const setClock = (later: string) => setDatabaseClock(server.app.databaseUrl, `${NOON} ${later}`)
await setClock('')

const RULE = { unit: 'tokens', below: 50, amount: '9.99', currency_code: 'USD', grants: 100 }
const MOST = { most_per_day: 3, most_per_month: 5 }
const setRule = (external_id: string, more: object = {}) =>
  shop.post('/credits/top_up/set', { external_id, ...RULE, ...MOST, ...more })
const ruleOf = async (external_id: string): Promise<Json> =>
  (await shop.post('/credits/top_up/list', { external_id })).body.top_ups[0]
const ordersOf = (external_id: string) =>
  db.query(
    'select order_id, idempotency_key, status from orders where organization_id = $1 and external_id = $2 order by created_at',
    [shop.id, external_id],
  )
const keysOf = async (user: string) => (await ordersOf(user)).map(({ idempotency_key }) => idempotency_key)
const spend = (external_id: string, amount: number) => shop.credits('spend', { external_id, amount })
/** Makes what was postponed due again. */
const again = (external_id: string) =>
  db.query(
    `update credit_top_ups set due_at = db_clock(), lease_until = null where external_id = $1 and due_at is not null`,
    [external_id],
  )
async function untilDone(): Promise<void> {
  while ((await topUpDue(context)) > 0);
}
const offEvents = async (external_id: string) =>
  (
    await db.query(`select data from events where type = 'top_up.switched_off' and data ->> 'external_id' = $1`, [
      external_id,
    ])
  ).map(({ data }) => JSON.parse(data!))

test('charges when what can be spent falls below the limit, by the same path as any charge', async () => {
  const user = await shop.customer({ profileId: 'pro_top_up' })
  const { status, body } = await setRule(user)
  assert.deepEqual([status, body.status, body.below, body.amount, body.used_of_day], [200, 'on', 50, 9.99, 0])
  await untilDone()
  assert.deepEqual(await shop.balance(user), [100, 0, 100])
  await spend(user, 50)
  await untilDone()
  assert.deepEqual(await shop.balance(user), [50, 0, 50], 'at the limit nothing is charged')
  await shop.credits('hold', { external_id: user, amount: 1 })
  await untilDone()
  assert.deepEqual(await shop.balance(user), [150, 1, 149])
  assert.deepEqual(await keysOf(user), ['top-up:tokens:1', 'top-up:tokens:2'])
  const [, second] = await ordersOf(user)
  const [row] = await shop.report({ order_id: second!.order_id })
  assert.deepEqual([row.status, row.amount], ['succeeded', 9.99])
  assert.equal((await shop.consumables(user)).length, 2)
  assert.deepEqual([(await ruleOf(user)).used_of_day, (await ruleOf(user)).used_of_month], [2, 2])
  const audited = await db.query(
    `select action, target from audit_log where target like '%top-up of ' || $1 || ' in tokens'`,
    [user],
  )
  assert.deepEqual(column(audited, 'action'), ['top_up.set'])
})

test('200 for a rule whose most_per_day is 3.0 and whose most_per_month is 5e0', async () => {
  const external_id = await shop.customer()
  const body = JSON.stringify({ external_id, ...RULE, ...MOST })
    .replace(':3', ':3.0')
    .replace(':5}', ':5e0}')
  await ok(shop.post('/credits/top_up/set', body))
  const { most_per_day, most_per_month } = await ruleOf(external_id)
  assert.deepEqual({ most_per_day, most_per_month }, MOST)
  await shop.post('/credits/top_up/remove', { external_id, unit: 'tokens' })
})

test('charges at most so often a day and a month', async () => {
  const user = await shop.customer()
  await setRule(user, { grants: 1, most_per_day: 2, most_per_month: 3 })
  await untilDone()
  assert.equal((await ordersOf(user)).length, 2, 'still below the limit, but the day is used up')
  const [{ days } = { days: null }] = await db.query(
    `select extract(day from date_trunc('month', db_clock() at time zone 'UTC') + interval '1 month' - (db_clock() at time zone 'UTC')) as days`,
  )
  // On the last day of a month the next day is another month.
  await setClock('1 day')
  await untilDone()
  const isLastDay = Number(days) === 0
  assert.equal((await ordersOf(user)).length, isLastDay ? 4 : 3)
  await setClock('70 days')
  await untilDone()
  assert.equal((await ordersOf(user)).length, isLastDay ? 6 : 5, 'another month')
  await setClock('0 days')
})

test('charges no more often when the clock is set back across midnight', async () => {
  const user = await shop.customer()
  await setRule(user, { grants: 1, most_per_day: 1, most_per_month: 9 })
  const counts: number[] = []
  for (const interval of ['0 days', '1 day', '0 days', '1 day']) {
    await setClock(interval)
    await again(user)
    await untilDone()
    counts.push((await ordersOf(user)).length)
  }
  await setClock('0 days')
  assert.deepEqual(counts, [1, 2, 2, 2])
})

test('processes that find it at the same time charge once', async () => {
  const user = await shop.customer()
  await setRule(user)
  const others = [1, 2, 3].map((n) =>
    openDb({ url: server.app.databaseUrl, applicationName: `process ${n}`, connections: 3 }),
  )
  await Promise.all([context, ...others.map((other) => ({ ...context, db: other }))].map((one) => topUpDue(one)))
  await Promise.all(others.map((other) => topUpDue({ ...context, db: other })))
  await Promise.all(others.map((other) => other.close()))
  assert.deepEqual(await keysOf(user), ['top-up:tokens:1'])
  assert.deepEqual(await shop.balance(user), [100, 0, 100])
})

test('a decline switches it off and sends an event; setting it again switches it on', async () => {
  const user = await shop.customer({ token: 'pm_card_chargeDeclinedInsufficientFunds' })
  await setRule(user)
  await untilDone()
  const [order, ...more] = await ordersOf(user)
  assert.deepEqual([order!.status, more], ['failed', []])
  const rule = await ruleOf(user)
  assert.deepEqual([rule.status, rule.off_reason, rule.used_of_day], ['off', 'insufficient_funds', 1])
  const told = { external_id: user, unit: 'tokens', reason: 'insufficient_funds', order_id: order!.order_id }
  assert.deepEqual(await offEvents(user), [told])
  await shop.credits('grant', { external_id: user, amount: 60 })
  await spend(user, 60)
  await untilDone()
  assert.equal((await ordersOf(user)).length, 1, 'off is off')
  assert.equal((await setRule(user)).body.status, 'on')
  await untilDone()
  assert.deepEqual(await keysOf(user), ['top-up:tokens:1', 'top-up:tokens:2'])
})

test('a refusal that cannot pass switches it off; a cap only delays it', async () => {
  const cardless = await shop.customer({ token: null })
  await setRule(cardless)
  await untilDone()
  assert.equal((await ruleOf(cardless)).off_reason, 'no_saved_card')
  assert.deepEqual(await offEvents(cardless), [
    { external_id: cardless, unit: 'tokens', reason: 'no_saved_card', order_id: null },
  ])
  const capped = await withCredits(db, await billing.organization())
  const cap = { scope: 'customer', per: 'day', currency_code: '', most: 1 }
  await addRow(db, 'charge_caps', { organization_id: capped.id, ...cap })
  const user = await capped.customer()
  await capped.post('/credits/top_up/set', { external_id: user, ...RULE, ...MOST, grants: 1 })
  await untilDone()
  await again(user)
  await untilDone()
  const [row] = await db.query('select count(*) as n from orders where organization_id = $1', [capped.id])
  assert.equal(row!.n, '1', 'the cap holds')
  const { body } = await capped.post('/credits/top_up/list', { external_id: user })
  assert.equal(body.top_ups[0].status, 'on')
})

test('charges that are switched off and an account that is not connected only delay it', async () => {
  const paused = await withCredits(db, await billing.organization())
  const setTopUp = (external_id: string) => paused.post('/credits/top_up/set', { external_id, ...RULE, ...MOST })
  const statusOf = async (external_id: string) =>
    (await paused.post('/credits/top_up/list', { external_id })).body.top_ups[0].status
  const user = await paused.customer()
  const elsewhere = await paused.customer({ psp: 'stripe' })
  await paused.set('one_off_charge_enabled', false)
  await setTopUp(user)
  await untilDone()
  await paused.set('one_off_charge_enabled', true)
  await setTopUp(elsewhere)
  await again(user)
  await untilDone()
  assert.deepEqual([await statusOf(user), await paused.balance(user)], ['on', [100, 0, 100]])
  assert.equal(await statusOf(elsewhere), 'on')
  assert.deepEqual([...(await offEvents(user)), ...(await offEvents(elsewhere))], [])
})

test('a refund or dispute that takes its credits switches it off, a soft refund does not', async () => {
  const user = await shop.customer()
  await setRule(user)
  await untilDone()
  const [order] = await ordersOf(user)
  await shop.refund(user, order!.order_id!, { amount: '1', idempotency_key: 'soft', soft_refund: true })
  assert.equal((await ruleOf(user)).status, 'on')
  await shop.refund(user, order!.order_id!, { amount: '5', idempotency_key: 'hard' })
  await untilDone()
  assert.deepEqual([(await ruleOf(user)).status, (await ruleOf(user)).off_reason], ['off', 'revoked'])
  assert.equal((await ordersOf(user)).length, 1, 'what was refunded is not charged again')
  assert.deepEqual(await offEvents(user), [{ external_id: user, unit: 'tokens', reason: 'revoked', order_id: null }])
})

test('an outcome that is not known is waited for, under the same key', async () => {
  const user = await shop.customer()
  await setRule(user)
  let calls = 0
  const silent = scriptedProvider({
    charge: async () => {
      calls += 1
      return { outcome: 'unknown', why: 'set by the test' }
    },
  })
  const unknown = contextOf(db, silent)
  for (let n = 0; n < 3; n++) {
    await topUpDue(unknown)
    await again(user)
  }
  assert.deepEqual([calls, await keysOf(user)], [1, ['top-up:tokens:1']])
  assert.equal((await ruleOf(user)).status, 'on')
})

test('a clock that was set back postpones none', async () => {
  const user = await shop.customer()
  await setClock('2 hours')
  await setRule(user)
  await setClock('0 hours')
  await untilDone()
  assert.deepEqual(await keysOf(user), [])
  const stop = startTopUps(context)
  await until('the top-up', async () => (await keysOf(user)).length === 1)
  await stop()
})

test('a process that stops after the charge leaves it to the next one, which does not charge again', async () => {
  const user = await shop.customer()
  await setRule(user)
  await untilDone()
  await db.query(`update credit_top_ups set turn = 1, due_at = db_clock(), used_of_day = 0 where external_id = $1`, [
    user,
  ])
  await spend(user, 60)
  await untilDone()
  assert.deepEqual(await keysOf(user), ['top-up:tokens:1', 'top-up:tokens:2'], 'the first was found, not made')
  assert.deepEqual(await shop.balance(user), [140, 0, 140])
})

test('a key that a caller has used is left out', async () => {
  const user = await shop.customer()
  await shop.charge(user, { idempotency_key: 'top-up:tokens:1' })
  await setRule(user)
  await untilDone()
  assert.deepEqual(await keysOf(user), ['top-up:tokens:1', 'top-up:tokens:2'])
  assert.deepEqual(await shop.balance(user), [100, 0, 100])
})

test('after a restore nothing is charged before the accounts are listed, and then what was charged is found', async () => {
  const there = twoStepProvider({ name: 'stripe', merchantId: 'a' })
  const { provider } = there
  const account = { organization_id: shop.id, psp: 'stripe', psp_merchant_id: 'a', is_sandbox: true }
  await addRow(db, 'merchant_accounts', account)
  const user = await shop.customer({ psp: 'stripe', merchantId: 'a' })
  const providers = {
    ...fixedProviders([provider]),
    all: async () => [{ organizationId: shop.id, provider }],
  }
  const stripe = contextOf(db, provider, { providers })
  await setRule(user)
  await topUpDue(stripe)
  assert.equal(there.charged().length, 1)
  // The backup is older than the rule and its charge. The rule is made again.
  const [order] = await ordersOf(user)
  await db.query(`delete from credit_top_ups where external_id = $1`, [user])
  for (const table of ['credit_entries', 'credit_grants', 'credit_accounts'])
    await db.query(`delete from ${table} where external_id = $1`, [user])
  await forgetOrders(db, [order!.order_id!])
  await markUnlisted(db, shop.id)
  for (const one of there.payments.values()) one.isForgotten = true
  await setRule(user)
  await topUpDue(stripe)
  assert.deepEqual([await ordersOf(user), there.charged().length, (await ruleOf(user)).status], [[], 1, 'on'])
  await reconcile(stripe, new Date(Date.now() - 86_400_000).toISOString())
  await again(user)
  await topUpDue(stripe)
  assert.deepEqual([await keysOf(user), there.charged().length], [['top-up:tokens:1'], 1])
  assert.deepEqual(await shop.balance(user), [100, 0, 100])
})

test('refusals of the rule, and none after it was removed', async () => {
  const user = await shop.customer()
  refused(await setRule('nobody'), /no customer/)
  refused(await setRule(user, { unit: 'gold' }), /no unit "gold"/)
  refused(await setRule(user, { amount: '9.999' }), /amount must have at most 2 decimal places in USD/)
  refused(await setRule(user, { currency_code: 'XXA' }), /not a currency/)
  refused(await setRule(user, { amount: '1000.01' }), /amount must be at most 1000 USD, .*, got 1000\.01/)
  refused(await setRule(user, { below: 1.5 }), /below must have no decimal places in tokens/)
  refused(await setRule(user, { below: 0 }), /below must be greater than 0/)
  refused(await setRule(user, { grants: undefined }), /No rule says what a charge of 9.99 USD grants in tokens/)
  refused(await shop.post('/credits/top_up/remove', { external_id: user, unit: 'tokens' }), /no automatic top-up/)
  const granted = { currency_code: 'USD', charged: 9.99, unit: 'tokens', amount: 70, expires_after: 48 }
  await addRow(db, 'credit_rules', { organization_id: shop.id, ...granted })
  const { body } = await setRule(user, { grants: undefined })
  assert.deepEqual([body.grants, body.expires_after], [70, '48h'])
  assert.equal((await shop.post('/credits/top_up/remove', { external_id: user, unit: 'tokens' })).status, 200)
  await untilDone()
  assert.deepEqual(await ordersOf(user), [])
  assert.equal(await ruleOf(user), undefined)
})

test('the recipe of the guide: a unit, a rule, caps and a top-up from the command line, and caps end it', async () => {
  const acme = await billing.organization()
  const user = await acme.customer()
  const guide = readFileSync(join(import.meta.dirname, '../../../docs/credits.md'), 'utf8')
  const recipe = guide.split('## Recipe: automatic top-up with caps')[1]!
  const commands = [...recipe.matchAll(/`tundish ([^`]+)`/g)].map(([, words]) => words!.split(/\s+/))
  assert.equal(commands.length, 4)
  for (const words of commands) {
    const args = words.map((word) => (word === 'acme' ? acme.id : word))
    await succeeded(tundishAgain(args, server.env))
  }
  const most = { most_per_day: 9, most_per_month: 9 }
  const rule = { external_id: user, unit: 'tokens', below: 100, amount: '9.99', currency_code: 'USD', ...most }
  assert.equal((await acme.post('/credits/top_up/set', rule)).status, 200)
  for (let n = 0; n < 9; n++) {
    await again(user)
    await untilDone()
    const key = { external_id: user, unit: 'tokens', amount: 999, idempotency_key: `job-${n}` }
    await acme.post('/credits/spend', key)
  }
  const orders = await db.query('select status from orders where organization_id = $1', [acme.id])
  assert.equal(orders.length, 5, 'the cap of five charges a day')
  const listed = await tundishAgain(['credits', 'top-up', 'list', '--org', acme.id], server.env)
  assert.match(listed.stdout, new RegExp(`${user} +tokens +on`))
  const shown = await tundishAgain(['credits', 'days', '2025-01-01', '--org', acme.id], server.env)
  assert.equal(shown.code, 0, shown.stderr)
  assert.match(shown.stdout, /tokens\s+5000\s/)
  const more = [
    ['credits', 'unit', 'set', 'tokens', '--org', acme.id, '--low-below', 'none'],
    [
      'credits',
      'grant',
      '--org',
      acme.id,
      '--external-id',
      user,
      '--unit',
      'tokens',
      '--amount',
      '1',
      '--idempotency-key',
      'm',
      '--metadata',
      '{"a": 1.50}',
    ],
  ]
  for (const args of more) {
    await succeeded(tundishAgain(args, server.env))
  }
  const [low] = await db.query('select low_below from credit_units where organization_id = $1', [acme.id])
  assert.equal(low!.low_below, null)
  const granted = (await acme.post('/credits/entries', { external_id: user })).body.entries.at(-1)
  assert.deepEqual(granted.metadata, { a: 1.5 })
})
