// Credits under concurrency, on three processes: exact balances, each key once, and nothing that a reader of entries misses.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { ApiError } from '../../../../src/lib/errors.ts'
import { type Db, openDb } from '../../../../src/lib/pg/db.ts'
import { call } from '../../../../src/payments/billing/credits/calls.ts'
import { expireDue } from '../../../../src/payments/billing/credits/expiry.ts'
import { askOf, type Operation } from '../../../../src/payments/billing/credits/requests.ts'
import { startBilling } from '../../../support/billing.ts'
import { addUnit, checkLedger, withCredits } from '../../../support/credits.ts'

const billing = await startBilling()
const shop = await withCredits(billing.db, await billing.organization())
const open = () => openDb({ url: billing.server.app.databaseUrl, applicationName: 'another process', connections: 6 })
const processes: Db[] = [billing.db, open(), open()]
after(async () => {
  try {
    await checkLedger(billing.db)
  } finally {
    await Promise.all(processes.slice(1).map((db) => db.close()))
    await billing.stop()
  }
})

const WRITERS = 64
const writers = Array.from({ length: WRITERS }, (_, n) => n)

/** A request on one of the processes: `done`, `replay`, or the code of the refusal. */
async function ask(n: number, operation: Operation, body: object): Promise<string> {
  try {
    const { isReplay } = await call(processes[n % processes.length]!, askOf(operation, shop.id, body as never))
    return isReplay ? 'replay' : 'done'
  } catch (error) {
    if (error instanceof ApiError) return error.code
    throw error
  }
}

const countsOf = (outcomes: string[]) =>
  Object.fromEntries(
    Array.from(
      Map.groupBy(outcomes, (one) => one),
      ([name, all]) => [name, all.length],
    ),
  )

test('64 writers who want more than there is spend exactly what there is', async () => {
  const external_id = await shop.customer()
  await shop.credits('grant', { external_id, amount: 100 })
  const spend = (n: number) => ask(n, 'spend', { external_id, unit: 'tokens', amount: 3, idempotency_key: `k${n}` })
  assert.deepEqual(countsOf(await Promise.all(writers.map(spend))), { done: 33, insufficient_credits: 31 })
  assert.deepEqual(await shop.balance(external_id), [1, 0, 1])
})

test('each key is used once, also when it is sent twice, and for one unit only', async () => {
  await addUnit(billing.db, shop.id, 'gold')
  const external_id = await shop.customer()
  for (const unit of ['tokens', 'gold']) await shop.credits('grant', { external_id, unit, amount: 1000 })
  const spend = (n: number) =>
    ask(n, 'spend', { external_id, unit: n % 2 ? 'gold' : 'tokens', amount: 1, idempotency_key: `k${(n % 8) >> 1}` })
  const counts = countsOf(await Promise.all(writers.map(spend)))
  assert.deepEqual(counts, { done: 4, replay: 28, idempotency_key_reused: 32 })
  const [[tokens], [gold]] = [await shop.balance(external_id), await shop.balance(external_id, 'gold')]
  assert.equal(tokens + gold, 1996)
})

test('each key twice, during a refund and an expiry: what was granted is spent, expired, revoked or left, to the last token', async () => {
  const external_id = await shop.customer()
  const { order_id } = (await shop.charge(external_id, { grants: [{ unit: 'tokens', amount: 90 }] })).body
  const { body: granted } = await shop.credits('grant', { external_id, amount: 40 })
  const expiring = `update credit_grants set expires_at = db_clock() + interval '50 milliseconds' where grant_id = $1`
  await billing.db.query(expiring, [granted.grant_id])
  await billing.db.query(
    `update credit_accounts set due_at = db_clock() + interval '50 milliseconds' where external_id = $1`,
    [external_id],
  )
  const outcomes = await Promise.all(
    [...writers, ...writers].map(async (n, turn) => {
      if (turn === 70) await shop.refund(external_id, order_id)
      if (turn % 16 === 0) await expireDue(processes[turn % 3]!)
      const body = { external_id, unit: 'tokens', amount: 3, idempotency_key: `twice ${n}` }
      // The second of a key goes to another process.
      return ask(turn, n % 4 ? 'spend' : 'hold', n % 4 ? body : { ...body, expires_in: 60 })
    }),
  )
  const entries = await shop.entries({ external_id, limit: 500 })
  const keys = entries.flatMap(({ idempotency_key, cause }) => (cause === 'spend' ? [idempotency_key] : []))
  assert.equal(new Set(keys).size, keys.length, 'no key spends twice')
  const { done = 0 } = countsOf(outcomes)
  const [holds] = await billing.db.query('select count(*) as n from credit_holds where external_id = $1', [external_id])
  assert.equal(done, keys.length + Number(holds!.n))
  const sumOf = (...causes: string[]) =>
    entries.reduce((sum, { cause, amount }) => (causes.includes(cause) ? sum + amount : sum), 0)
  const [balance] = await shop.balance(external_id)
  assert.equal(sumOf('charge', 'grant'), 130)
  assert.equal(130 + sumOf('spend', 'expiry', 'refund'), balance)
  assert.equal(sumOf('refund'), -90)
})

test('spends, holds, expiry and a refund together keep the ledger exact', async () => {
  const external_id = await shop.customer()
  const { order_id } = (await shop.charge(external_id, { grants: [{ unit: 'tokens', amount: 60 }] })).body
  const expires_at = new Date(Date.now() + 3_600_000).toISOString()
  await shop.credits('grant', { external_id, amount: 60, expires_at })
  const soon = `expires_at = db_clock() + interval '100 milliseconds'`
  await billing.db.query(`update credit_grants set ${soon} where external_id = $1 and expires_at is not null`, [
    external_id,
  ])
  const work = writers.map(async (n) => {
    const body = { external_id, unit: 'tokens', amount: 2, idempotency_key: `k${n}` }
    await ask(n, n % 3 ? 'spend' : 'hold', n % 3 ? body : { ...body, expires_in: 1 + (n % 2) })
    if (n % 16 === 0) await expireDue(processes[n % 3]!)
    if (n === 20) assert.equal((await shop.refund(external_id, order_id)).status, 200)
  })
  await Promise.all(work)
  await checkLedger(billing.db)
  const entries = await shop.entries({ external_id, limit: 500 })
  const sumOf = (cause: string) => entries.reduce((sum, entry) => (entry.cause === cause ? sum + entry.amount : sum), 0)
  assert.deepEqual([sumOf('charge'), sumOf('refund'), sumOf('grant')], [60, -60, 60])
  assert.ok(-sumOf('spend') <= 120)
})

test('a reader that walks by created_at while all write misses no entry', async () => {
  const users = await Promise.all(writers.slice(0, 16).map(() => shop.customer()))
  for (const external_id of users) await shop.credits('grant', { external_id, amount: 100 })
  const last = (await shop.entries({ limit: 500 })).at(-1)!.created_at as string
  let writing = true
  const seen: string[] = []
  const reader = (async () => {
    for (let after = last; ; ) {
      const isLast = !writing
      const page = await shop.entries({ after, limit: 7 })
      seen.push(...page.map(({ entry_id }) => entry_id as string))
      if (page.length > 0) after = page.at(-1)!.created_at
      else if (isLast) return
    }
  })()
  const spend = (n: number) =>
    ask(n, 'spend', { external_id: users[n % 16], unit: 'tokens', amount: 1, idempotency_key: `r${n}` })
  // Whatever fails, the reader ends.
  const outcomes = await Promise.all(Array.from({ length: 256 }, (_, n) => spend(n))).finally(() => {
    writing = false
  })
  await reader
  assert.deepEqual(countsOf(outcomes), { done: 256 })
  assert.equal(seen.length, 256)
  assert.equal(new Set(seen).size, 256)
})
