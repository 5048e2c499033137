// Credits of a test's organization: units, requests under new keys, and the rules that its ledger must keep at every instant.
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import type { Db } from '../../src/lib/pg/db.ts'
import type { Organization } from './billing.ts'
import { addRow } from './data.ts'
import type { ApiResponse, Json } from './server.ts'

export interface Shop extends Organization {
  /** A request under a new key, unless `more` has one. */
  credits(operation: string, more: object): Promise<ApiResponse>
  /** `[balance, held, available]` of the unit. */
  balance(externalId: string, unit?: string): Promise<[number, number, number]>
  entries(more?: object): Promise<Json[]>
}

/** Adds the unit `tokens` without decimals, and requests about credits. */
export async function withCredits(db: Db, organization: Organization): Promise<Shop> {
  await addUnit(db, organization.id, 'tokens')
  const credits = (operation: string, more: object) =>
    organization.post(`/credits/${operation}`, { unit: 'tokens', idempotency_key: randomUUID(), ...more })
  return {
    ...organization,
    credits,
    async balance(external_id, unit = 'tokens') {
      const { balances } = (await organization.post('/credits/balance', { external_id })).body
      const { balance = 0, held = 0, available = 0 } = balances.find((one: Json) => one.unit === unit) ?? {}
      return [balance, held, available]
    },
    entries: async (more = {}) => (await organization.post('/credits/entries', more)).body.entries,
  }
}

export async function addUnit(db: Db, organization_id: string, unit: string, decimals = 0) {
  await db.query('insert into credit_clocks (organization_id) values ($1) on conflict do nothing', [organization_id])
  await addRow(db, 'credit_units', { organization_id, unit, name: unit, decimals })
}

/** Asserts what holds at every instant: balances are the sums of their entries, and of what is left of grants. */
export async function checkLedger(db: Db): Promise<void> {
  const broken = await db.query(`
    select a.external_id, a.unit, a.balance, a.held,
      (select coalesce(sum(amount), 0) from credit_entries e where ${SAME('e')}) as entries,
      (select coalesce(sum(remaining), 0) from credit_grants g where ${SAME('g')}) as remaining,
      (select coalesce(sum(amount), 0) from credit_holds h where ${SAME('h')} and status = 'open') as open
    from credit_accounts a
    where a.balance <> (select coalesce(sum(amount), 0) from credit_entries e where ${SAME('e')})
      or greatest(a.balance, 0) <> (select coalesce(sum(remaining), 0) from credit_grants g where ${SAME('g')})
      or a.held <> (select coalesce(sum(amount), 0) from credit_holds h where ${SAME('h')} and status = 'open')
      or exists (select from (
        select e.balance, sum(e.amount) over (order by e.created_at) as sum from credit_entries e where ${SAME('e')}) e
        where e.balance <> e.sum)`)
  assert.deepEqual(broken, [])
}

const SAME = (row: string) =>
  `${row}.organization_id = a.organization_id and ${row}.external_id = a.external_id and ${row}.unit = a.unit`

/** Stops a server after a last check of its ledger. */
export async function stopChecked({ db, stop }: { db: Db; stop(): Promise<void> }): Promise<void> {
  try {
    await checkLedger(db)
  } finally {
    await stop()
  }
}
