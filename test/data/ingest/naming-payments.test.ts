// The payments of the report that name an imported subscription.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { line, openImports } from '../../support/imports.ts'

const imports = await openImports()
after(() => imports.stop())

const ROWS = 2000

test('an import of a subscription reads the payments that name it, not the whole report', async () => {
  const project = await imports.project()
  await imports.run(project, [line.product(), line.profile()])
  await imports.rows(
    `insert into customers (organization_id, external_id, project_id, created_at, updated_at)
     values ($1, 'ada', $2, db_clock(), db_clock())`,
    [project.organizationId, project.id],
  )
  await imports.rows(
    `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at, amount,
       currency_code, status, psp, psp_transaction_type, meta_subs_id)
     select $1, 'ada', true, db_clock(), gen_random_uuid(), gen_random_uuid(), '2026-01-05T00:00:00Z'::timestamptz + n * interval '1 hour',
       n, 'USD', 'succeeded', 'simulator', 'sale', 'other-' || n from generate_series(1, $2::int) n`,
    [project.organizationId, ROWS],
  )
  await imports.rows('vacuum analyze')
  // A session tells its statistics when it ends.
  const { query, release } = await imports.db.connect()
  const rowsRead = async () => {
    await query(`select pg_terminate_backend(pid, 10000) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`)
    const [row] = await query(
      `select seq_tup_read + (select sum(idx_tup_read) from pg_stat_user_indexes i where i.relid = t.relid) as rows
       from pg_stat_user_tables t where relname = 'report_transactions'`,
    )
    return Number(row!.rows)
  }
  const before = await rowsRead()
  await imports.run(project, [line.subscription()])
  const after = await rowsRead()
  release()
  assert.ok(after - before < ROWS, `${after - before} rows were read`)
})
