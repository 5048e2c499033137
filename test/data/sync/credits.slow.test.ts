// Credits in the export and in a copy: every entry once, also of late commits, and what erasures, merges and imports change.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startBilling } from '../../support/billing.ts'
import { jsonOf, succeeded } from '../../support/cli.ts'
import { addUnit, withCredits } from '../../support/credits.ts'
import { addRow } from '../../support/data.ts'
import { temporaryFolder } from '../../support/folder.ts'
import { line, textOf } from '../../support/imports.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { tundishAgain } from '../../support/resident.ts'
import { type Json, ok } from '../../support/server.ts'
import { until } from '../../support/time.ts'
import { readerOf } from './copies.ts'

const billing = await startBilling()
const folder = temporaryFolder()
const warehouse = await freshDatabase()
after(async () => {
  await warehouse.drop()
  await billing.stop()
})
const { db, server } = billing
const shop = await withCredits(db, await billing.organization())
const headers = ['Content-Type', 'application/x-ndjson']
const bring = (...lines: Parameters<typeof textOf>[0]) =>
  server.admin(`/projects/${shop.projectId}/import`, { method: 'POST', body: textOf(lines), headers })

async function exported(from?: string): Promise<{ entries: Json[]; horizon: string }> {
  const query = from === undefined ? '' : `?from=${encodeURIComponent(from)}`
  const { status, text } = await server.api(`/export${query}`, { key: shop.projectKey })
  assert.equal(status, 200, text)
  const lines = text
    .trimEnd()
    .split('\n')
    .map((one) => JSON.parse(one))
  const entries = lines.flatMap(({ record, data }) => (record === 'credit_entry' ? [data] : []))
  return { entries, horizon: lines.at(-1).horizon }
}

test('an entry whose commit is late is in the export or in the next one', async () => {
  const external_id = await shop.customer()
  await shop.credits('grant', { external_id, amount: 100 })
  await db.query("update credit_clocks set last_entry_at = last_entry_at - interval '1 minute'")
  let stamp = ''
  let reading: ReturnType<typeof exported> | undefined
  await db.tx(async (query) => {
    // As a spend does, until its commit.
    await query('select from credit_clocks where organization_id = $1 for no key update', [shop.id])
    const [row] = await query<{ at: string }>(
      `insert into credit_entries (organization_id, project_id, created_at, updated_at, entry_id, external_id, unit, account,
         amount, balance, cause)
       select $1, $2, now(), now(), gen_random_uuid(), $3, 'tokens', 'granted', 1, 101, 'grant'
       returning to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at`,
      [shop.id, shop.projectId, external_id],
    )
    stamp = row!.at
    await query('update credit_accounts set granted = 101 where external_id = $1', [external_id])
    await query('update credit_grants set remaining = 101, amount = 101 where external_id = $1', [external_id])
    await query('update credit_clocks set last_entry_at = greatest(last_entry_at, now()) where organization_id = $1', [
      shop.id,
    ])
    reading = exported()
    reading.catch(() => {})
    const waits = `select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like '%credit_clocks%'`
    let isRead = false
    void reading.then(() => (isRead = true))
    await until('the export waits or is there', async () => isRead || (await db.query(waits)).length > 0)
  })
  const { entries, horizon } = await reading!
  const isIn = entries.some(({ created_at }) => created_at === stamp)
  assert.equal(isIn, stamp < horizon, `stamped ${stamp}, horizon ${horizon}`)
})

test('a copy has every entry and the balances, and what spends, erasures, merges and imports change', async () => {
  for (const id of ['ada', 'into', 'third']) await addRow(db, 'profiles', { project_id: shop.projectId, id })
  const external_id = await shop.customer()
  assert.equal((await bring(line.customer({ external_id, profile_id: 'ada' }))).status, 200)
  const moved = await shop.customer()
  await shop.credits('grant', { external_id, amount: 100 })
  await shop.credits('spend', { external_id, amount: 30, metadata: { job: 'a-secret-job' } })
  await shop.credits('spend', { external_id, amount: 5 })
  await shop.credits('grant', { external_id: moved, amount: 7 })
  const target = join(folder, 'copy.sqlite')
  const env = { SYNC_URL: server.url, SYNC_KEY: shop.projectKey }
  const read = readerOf(`sqlite:${target}`)
  async function sync(): Promise<number> {
    // The horizon may lag by a second.
    await sleep(1100)
    const { records } = await jsonOf(tundishAgain(['sync', '--json', '--to', `sqlite:${target}`], env))
    await checkEqual(read)
    return records
  }
  await sync()
  assert.ok(readFileSync(target).includes('a-secret-job'))
  assert.equal(await sync(), 0)
  await shop.credits('spend', { external_id, amount: 1 })
  assert.equal(await sync(), 1)
  const merged = await server.admin(`/projects/${shop.projectId}/profiles/ada/merge/into`, { method: 'POST' })
  assert.equal(merged.status, 200, merged.text)
  // Two profiles, and four entries.
  assert.equal(await sync(), 6)
  assert.equal((await bring(line.customer({ external_id: moved, profile_id: 'third' }))).status, 200)
  assert.equal((await bring(line.customer({ external_id: moved, profile_id: 'third' }))).status, 200)
  assert.equal(await sync(), 1)
  await ok(server.api('/profiles/anonymize', { method: 'POST', key: shop.projectKey, body: { profile_ids: ['into'] } }))
  // The profile, the one that was merged into it, and the entry with metadata.
  assert.ok((await sync()) >= 2)
  assert.ok(!readFileSync(target).includes('a-secret-job'))
  const balances = await read('credit_balances')
  const own = balances.find((row) => row.external_id === external_id)!
  assert.deepEqual([own.balance, own.granted, own.spent, own.profile_id].map(String), ['64', '100', '36', 'into'])
})

test('a copy has an amount with more digits than a double keeps as the nearest double', async () => {
  await addUnit(db, shop.id, 'seconds', 6)
  const external_id = await shop.customer()
  assert.equal((await bring(line.customer({ external_id }))).status, 200)
  await ok(shop.credits('grant', { external_id, unit: 'seconds', amount: '123456789012.123457' }))
  // The horizon may lag by a second.
  await sleep(1100)
  for (const to of [join(folder, 'files'), warehouse.url]) {
    const { code, stderr } = await tundishAgain(['sync', '--to', to], {
      SYNC_URL: server.url,
      SYNC_KEY: shop.projectKey,
    })
    assert.equal(code, 0, stderr)
    const read = readerOf(to, to === warehouse.url ? '' : 'ndjson')
    const [entry] = (await read('credit_entries')).filter((row) => row.unit === 'seconds')
    const [total] = (await read('credit_balances')).filter((row) => row.unit === 'seconds')
    assert.deepEqual([entry.amount, entry.balance, total.balance], Array(3).fill(123456789012.12346))
  }
})

test('a copy has metadata that is nested as deeply as a request may be', async () => {
  const external_id = await shop.customer()
  assert.equal((await bring(line.customer({ external_id }))).status, 200)
  const LEVELS = 31
  const text = `${'{"a":'.repeat(LEVELS)}1.5${'}'.repeat(LEVELS)}`
  await ok(shop.credits('grant', { external_id, amount: 1, metadata: JSON.parse(text) }))
  // The horizon may lag by a second.
  await sleep(1100)
  const to = join(folder, 'deep')
  await succeeded(tundishAgain(['sync', '--to', to], { SYNC_URL: server.url, SYNC_KEY: shop.projectKey }))
  const [entry] = (await readerOf(to, 'ndjson')('credit_entries')).filter((row) => row.external_id === external_id)
  assert.equal(JSON.stringify(entry.metadata), text)
})

/** Compares entries and balances with those of the server. */
async function checkEqual(read: ReturnType<typeof readerOf>): Promise<void> {
  const entries = await db.query<{ row: string }>(
    `select concat_ws(' ', e.entry_id, e.external_id, c.profile_id, trim_scale(e.amount), trim_scale(e.balance), e.cause) as row
     from credit_entries e join customers c using (organization_id, external_id) where e.project_id = $1`,
    [shop.projectId],
  )
  const text = (row: Json, ...names: string[]) => names.flatMap((name) => row[name] ?? []).join(' ')
  const copied = await read('credit_entries')
  assert.deepEqual(
    copied.map((row) => text(row, 'entry_id', 'external_id', 'profile_id', 'amount', 'balance', 'cause')).sort(),
    entries.map(({ row }) => row).sort(),
  )
  const accounts = await db.query<{ row: string }>(
    `select concat_ws(' ', a.account_id, a.external_id, c.profile_id, trim_scale(a.balance), trim_scale(a.spent)) as row
     from credit_accounts a join customers c using (organization_id, external_id) where c.project_id = $1`,
    [shop.projectId],
  )
  assert.deepEqual(
    (await read('credit_balances'))
      .map((row) => text(row, 'account_id', 'external_id', 'profile_id', 'balance', 'spent'))
      .sort(),
    accounts.map(({ row }) => row).sort(),
  )
}
