// Reading of billing takes turns by organization: whoever asks for much waits behind itself.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Db } from '../../../src/lib/pg/db.ts'
import { type Organization, startBilling } from '../../support/billing.ts'
import { until } from '../../support/time.ts'

const MANY = 60

/** The reads of the crowded organization that are under way; each ends when it is let go. */
const held: (() => void)[] = []
let isHolding = false
const billing = await startBilling({ RATE_LIMIT: '0' }, { worker: false }, holding)
after(() => billing.stop())
const crowded = await billing.organization()
const other = await billing.organization()

function holding(db: Db): Db {
  const read: Db['read'] = async (statement, params, take) => {
    if (isHolding && params[0] === crowded.id) await new Promise<void>((resolve) => held.push(resolve))
    return db.read(statement, params, take)
  }
  return { ...db, read }
}

/** How many of many that are asked for at once are read at once, beside another organization that is there too. */
async function atOnce(ask: (of: Organization) => Promise<{ status: number }>): Promise<number> {
  isHolding = true
  const asked = Array.from({ length: MANY }, () => ask(crowded))
  assert.equal((await ask(other)).status, 200)
  await until('the first reads to be under way', async () => held.length > 0)
  await sleep(500)
  const found = held.length
  isHolding = false
  for (const letGo of held.splice(0)) letGo()
  for (const { status } of await Promise.all(asked)) assert.equal(status, 200)
  return found
}

const report = (limit: number) => (of: Organization) =>
  of.post('/transaction_report', { last_transaction_date: '2000-01-01T00:00:00Z', limit })

test('at most two of 60 large pages of the report are read at once', async () => {
  assert.ok((await atOnce(report(500))) <= 2)
})

test('20 of 60 small pages are read at once, and so of my_assets', async () => {
  assert.ok((await atOnce(report(50))) <= 20)
  const user = await crowded.customer()
  assert.ok((await atOnce((of) => of.post('/my_assets', { external_id: user }))) <= 20)
})
