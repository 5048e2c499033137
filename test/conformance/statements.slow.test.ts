// Every statement names its tenant, so that it can be routed to the tenant's server; a list has the exceptions with reasons.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tenantTables } from './statements/judge.ts'
import { type Breach, breachesOf } from './statements/rules.ts'
import { runAndJudge } from './statements/run.ts'

const PLANTED: [statement: string, ...breaches: string[]][] = [
  ['select id from profiles where project_id = $1 and id = $2'],
  ['select id from profiles where id = $1', 'tenant profiles'],
  ['select p.id from profiles p join sessions s on s.project_id = p.project_id and s.id = $2 where p.project_id = $1'],
  ['select p.id from profiles p join sessions s on s.profile_id = p.id where p.project_id = $1', 'tenant sessions'],
  ['select 1 from profiles p join sessions s using (project_id) where s.project_id = $1'],
  ['select 1 from projects where id = any($1)'],
  ['select 1 from orders where organization_id = $1 or order_id = $2', 'tenant orders'],
  [
    'select 1 from orders o where exists (select 1 from refunds r where r.order_id = o.order_id) and o.organization_id = $1',
    'tenant refunds',
  ],
  ['with due as (select project_id, id from events) select 1 from due', 'tenant events'],
  ['select 1 from profiles where (project_id, id) in (select project_id, id from unnest($1::text[]) u)'],
  ['select order_id from orders where status = $1 for update skip locked', 'tenant orders', 'lock orders'],
  ['update orders set status = $2 where order_id = $1', 'tenant orders'],
  ['update orders set settled_at = now() where organization_id = $1', 'clock in set now'],
  ['delete from counts where list = $1', 'tenant counts'],
  ['insert into counts (project_id, n) select project_id, 1 from profiles', 'tenant profiles'],
  ['select 1 from orders where organization_id = $1 and exists (select from instance)', 'empty select select from'],
  [
    `with made as (insert into orders (organization_id) values ($1) returning *)
     select 1 from made union all select 1 from orders where organization_id = $1`,
    'insert beside read orders',
  ],
]

test('each planted breach is found, and no other', async () => {
  const tables = await tenantTables()
  const named = ({ rule, what }: Breach) => `${rule} ${what}`
  for (const [statement, ...expected] of PLANTED)
    assert.deepEqual(breachesOf(statement, tables).map(named), expected, statement)
})

test('every statement of all operations and of a charge names its tenant, or has an exception', {
  timeout: 900_000,
}, async () => {
  const charges = ['payments/billing/one-off-charge', 'payments/billing/charge-checks']
  const files = ['conformance/tenant-matrix', ...charges, 'core/events/traffic', 'data/ingest/payments']
  const { statements, breaches, code } = await runAndJudge(files.map((file) => `test/${file}.test.ts`))
  assert.equal(code, 0, 'The tests whose statements are judged have failed.')
  assert.ok(statements > 300, `Only ${statements} statements were noted.`)
  assert.deepEqual(breaches, [])
})
