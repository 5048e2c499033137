// Which merchant accounts a restore marks, and since when.
import assert from 'node:assert/strict'
import { after, beforeEach, test } from 'node:test'
import { instantFromPg } from '../../../src/lib/time.ts'
import { keepAccounts, markUnlisted } from '../../../src/operations/backup/accounts.ts'
import { takeUnlisted } from '../../../src/payments/billing/movement/unlisted.ts'
import { addRow } from '../../support/data.ts'
import { install } from './installations.ts'

const { db, remove } = await install()
after(remove)

const MADE_AT = '2026-02-01T00:00:00.000000Z'

beforeEach(async () => {
  for (const table of ['unlisted_accounts', 'merchant_accounts', 'organizations'])
    await db.query(`delete from ${table}`)
  await db.query(`insert into organizations (id, name) values ('shop', '')`)
})

const account = (psp: string, psp_merchant_id: string, is_sandbox: boolean | null) =>
  addRow(db, 'merchant_accounts', { organization_id: 'shop', psp, psp_merchant_id, is_sandbox })

/** Marks as for a backup of `MADE_AT` that replaces this database. */
const mark = () =>
  db.tx(async (query) => {
    await keepAccounts(query)
    return markUnlisted(query, { made_at: MADE_AT })
  })

test('an account that was ever connected is marked; the simulator and accounts of history are not', async () => {
  await account('stripe', 'live', false)
  await account('stripe', 'test', true)
  await account('stripe', 'history', null)
  await account('simulator', 'merchant-1', null)
  assert.deepEqual(await mark(), ['shop/stripe/live', 'shop/stripe/test'])
})

test('the mark of an older restore, which the backup carries, keeps its earlier time', async () => {
  await account('stripe', 'live', false)
  await db.query(
    `insert into unlisted_accounts values ('shop', 'stripe', 'live', '2026-01-01', 'failover'), ('shop', 'stripe', 'gone', '2026-03-01', 'restore')`,
  )
  await mark()
  const rows = await db.query('select psp_merchant_id as id, since, cause from unlisted_accounts order by 1')
  assert.deepEqual(
    rows.map(({ id, since, cause }) => [id, instantFromPg(since!), cause]),
    [
      ['gone', '2026-03-01T00:00:00.000000Z', 'restore'],
      ['live', '2026-01-01T00:00:00.000000Z', 'restore'],
    ],
  )
})

test('one that a failover left is listed again after its lease, and at once if the clock was set back since', async () => {
  const LEASE_MS = 300_000
  const take = async () => (await takeUnlisted(db.query, LEASE_MS))?.merchantId
  await account('stripe', 'live', false)
  await db.query(`insert into unlisted_accounts values ('shop', 'stripe', 'live', '2026-01-01', 'failover')`)
  assert.deepEqual([await take(), await take()], ['live', undefined])
  await db.query(`update unlisted_accounts set lease_until = lease_until + interval '2 hours'`)
  assert.deepEqual([await take(), await take()], ['live', undefined])
})
