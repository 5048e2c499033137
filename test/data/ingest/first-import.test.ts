// A first import, whose records refer to others of the same import.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { line, openImports } from '../../support/imports.ts'

const imports = await openImports()
after(() => imports.stop())

const PEOPLE = 1200

test('a first import reads the sessions of those who pay, not all sessions for each payment', async () => {
  const project = await imports.project()
  const people = Array.from({ length: PEOPLE }, (_, n) => {
    const created_at = new Date(Date.UTC(2026, 0, 1) + n * 60_000).toISOString()
    const of = { profile_id: `p${n}`, session_id: `s${n}`, created_at }
    return [
      line.profile({ id: `p${n}`, created_at }),
      line.session({ id: `s${n}`, profile_id: `p${n}`, experiment_id: 'experiment', created_at }),
      line.subscription({ id: `u${n}`, ...of }),
      line.transaction({ id: `t${n}`, ...of, subscription_id: `u${n}` }),
    ]
  })
  await imports.run(project, [line.experiment(), line.product(), ...people.flat()])
  assert.equal(await imports.count(project, 'transactions'), PEOPLE)
  // A connection tells its statistics when it ends.
  await imports.rows(`select pg_terminate_backend(pid, 10000) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`)
  const { read } = await imports.row(
    `select seq_tup_read + (select sum(idx_tup_read) from pg_stat_user_indexes i where i.relid = t.relid) as read
     from pg_stat_user_tables t where relname = 'sessions'`,
  )
  assert.ok(Number(read) < 50 * PEOPLE, `${read} rows were read`)
})
