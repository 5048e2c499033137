// Credits in a backup: balances, keys, holds and top-ups come back as they were, and entries are never stamped before what readers have seen.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Db } from '../../../src/lib/pg/db.ts'
import { balancesOf } from '../../../src/payments/billing/credits/balance.ts'
import { call } from '../../../src/payments/billing/credits/calls.ts'
import { askOf, type Operation } from '../../../src/payments/billing/credits/requests.ts'
import { setTopUp, topUpFrom } from '../../../src/payments/billing/top-up/rule.ts'
import { addUnit, checkLedger } from '../../support/credits.ts'
import { openInstallations } from './installations.ts'

const { source, target, file } = await openInstallations('credits.backup')

const ask = (db: Db, operation: Operation, idempotency_key: string, more: object) =>
  call(db, askOf(operation, 'shop', { external_id: 'user', unit: 'tokens', idempotency_key, ...more }))
const balance = async (db: Db) => JSON.parse(JSON.stringify(await balancesOf(db.query, 'shop', 'user')))
const entries = (db: Db) =>
  db.query(`select created_at, entry_id, amount, balance from credit_entries where organization_id = 'shop' order by 1`)
const topUps = (db: Db) => db.query('select * from credit_top_ups')

test('a restored installation has every balance, key, hold and top-up, and replays what it knows', async () => {
  const { db } = source
  await addUnit(db, 'shop', 'tokens')
  const spend = { amount: '30' }
  await ask(db, 'grant', 'g', { amount: '100', expires_at: '2040-01-01T00:00:00Z' })
  const first = await ask(db, 'spend', 's', spend)
  const held = await ask(db, 'hold', 'h', { amount: '20', expires_in: 86_400 })
  const rule = { below: '10', amount: '5', currency_code: 'USD', grants: '100', most_per_day: 1, most_per_month: 5 }
  await db.tx((query) => setTopUp(query, 'shop', topUpFrom({ external_id: 'user', unit: 'tokens', ...rule })))
  await db.query('update credit_top_ups set turn = 7, due_at = null')
  await source.json('backup', file)
  await target.json('restore', file, '--without-erasures')
  for (const read of [balance, entries, topUps]) assert.deepEqual(await read(target.db), await read(db))
  const again = await ask(target.db, 'spend', 's', spend)
  assert.deepEqual([again.entryId, again.isReplay], [first.entryId, true])
  const captured = await call(
    target.db,
    askOf('capture', 'shop', { hold_id: held.holdId!, idempotency_key: 'c' }, { externalId: 'user', unit: 'tokens' }),
  )
  assert.equal(String(captured.balance), '50000000')
  await checkLedger(target.db)
})

test('after a restore over an installation no entry is stamped before one that a reader has seen', async () => {
  const { db } = source
  await ask(db, 'spend', 'lost', { amount: '1' })
  // As if the clock of the machine was ahead when it was stamped.
  await db.query(`update credit_clocks set last_entry_at = last_entry_at + interval '1 hour'`)
  await ask(db, 'spend', 'lost too', { amount: '1' })
  const seen = (await entries(db)).at(-1)!.created_at!
  await source.json('restore', file, '--replace', '--without-erasures')
  assert.equal((await entries(db)).length, 2, 'what came after the backup is gone')
  const { isReplay } = await ask(db, 'spend', 'lost', { amount: '1' })
  assert.equal(isReplay, false)
  assert.ok((await entries(db)).at(-1)!.created_at! > seen)
  await checkLedger(db)
})
