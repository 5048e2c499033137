// What an import does to a project: every kind, references, times ahead, dry runs, counters.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { Refusal } from '../../../src/lib/errors.ts'
import { allWritten, line, openImports, T } from '../../support/imports.ts'
import { assertCounted } from './counters.ts'

const imports = await openImports()
after(() => imports.stop())

test('one record of each kind is stored, in whatever order they come', async () => {
  const project = await imports.project()
  const lines = Object.values(line).map((kind) => (kind as (data?: object) => { record: string; data: object })())
  assert.deepEqual(await imports.run(project, lines.reverse()), allWritten(lines.length))
  for (const table of [
    'funnels',
    'experiments',
    'products',
    'profiles',
    'sessions',
    'replies',
    'subscriptions',
    'transactions',
  ])
    assert.equal(await imports.count(project, table), 1, table)
  const shown = await imports.row(
    `select p.psp, r.amount, r.imported, r.trx_created_at, m.currencies, c.project_id
     from report_transactions r, merchant_accounts m, customers c, (select 'simulator' as psp) p
     where r.organization_id = $1 and m.organization_id = $1 and c.organization_id = $1`,
    [project.organizationId],
  )
  assert.deepEqual(shown, {
    psp: 'simulator',
    amount: '10.00',
    imported: 't',
    trx_created_at: '2026-01-02 03:04:05.000006+00',
    currencies: '[]',
    project_id: project.id,
  })
})

test('a project that does not exist is refused', async () => {
  await assert.rejects(
    imports.run({ id: 'nowhere', organizationId: '' }, []),
    new Refusal('There is no project "nowhere".'),
  )
})

test('an empty import succeeds', async () => {
  assert.deepEqual(await imports.run(await imports.project(), ['', '  ']), allWritten(0))
})

describe('a reference', () => {
  test('may be to a stored record, not to one of another project or kind', async () => {
    const [project, other] = [await imports.project(), await imports.project()]
    await imports.run(other, [line.profile({ id: 'theirs' })])
    await imports.run(project, [line.profile({ id: 'ours' })])
    assert.equal((await imports.run(project, [line.session({ profile_id: 'ours' })])).written, 1)
    assert.equal((await imports.run(project, [line.session({ profile_id: 'theirs' })])).rejected, 1)
    assert.equal((await imports.run(project, [line.session({ profile_id: 'ours', funnel_id: 'ours' })])).rejected, 1)
  })

  test('is checked for every kind that has one', async () => {
    const project = await imports.project()
    await imports.run(project, [line.profile(), line.product(), line.session()])
    const references = [
      line.profile({ funnel_id: 'x' }),
      line.session({ funnel_id: 'x' }),
      line.session({ experiment_id: 'x' }),
      line.reply({ session_id: 'x' }),
      ...['profile_id', 'product_id', 'funnel_id', 'session_id', 'experiment_id'].map((name) =>
        line.subscription({ [name]: 'x' }),
      ),
      ...['profile_id', 'session_id', 'funnel_id', 'experiment_id', 'subscription_id'].map((name) =>
        line.transaction({ [name]: 'x' }),
      ),
      line.customer({ profile_id: 'x' }),
    ]
    const result = await imports.run(project, references)
    assert.deepEqual(
      [result.rejected, result.rejects.every(({ reason }) => / refers to an unknown \w+: x$/.test(reason))],
      [references.length, true],
    )
    // Each of the two needs the other one first, so neither is asked for.
    const free = line.subscription({ trial_transaction_id: 'x', upgrades_to: 'x' })
    assert.equal((await imports.run(project, [free])).written, 1)
  })
})

test('a time more than five minutes ahead of the database is refused, a little less is not', async () => {
  const project = await imports.project()
  const ahead = (seconds: number) => new Date(Date.now() + seconds * 1000).toISOString()
  assert.equal((await imports.run(project, [line.profile({ created_at: ahead(320) })])).rejected, 1)
  assert.equal((await imports.run(project, [line.profile({ created_at: ahead(280) })])).written, 1)
})

test('a dry run returns the same result and writes nothing', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile({ updated_at: T })])
  const lines = [
    line.profile({ updated_at: T, phone: '1' }),
    line.funnel(),
    line.payment(),
    line.profile({ updated_at: '2025-01-01T00:00:00Z' }),
  ]
  const { last_trx_created_at } = await imports.row(
    'select last_trx_created_at from organization_clocks where organization_id = $1',
    [project.organizationId],
  )
  const result = await imports.run(project, lines, { dryRun: true })
  assert.deepEqual(result, { ...allWritten(3), read: 4, skipped: 1 })
  assert.equal(await imports.column(project, 'profiles', 'phone', 'profile'), null)
  const clock = await imports.row('select last_trx_created_at from organization_clocks where organization_id = $1', [
    project.organizationId,
  ])
  assert.deepEqual(
    [await imports.count(project, 'funnels'), await imports.count(project, 'customers'), clock.last_trx_created_at],
    [0, 0, last_trx_created_at],
  )
  await assertCounted(imports.db, project)
  assert.deepEqual({ ...(await imports.run(project, lines)) }, result)
})

test('the counters are those of a recount after adding, moving, deleting and importing again', async () => {
  const project = await imports.project()
  const first = [
    line.funnel(),
    line.funnel({ id: 'gone', deleted_at: T }),
    line.product(),
    line.product({ id: 'other' }),
    line.profile({ funnel_id: 'funnel' }),
    line.profile({ id: 'second' }),
    line.session({ funnel_id: 'funnel' }),
    line.subscription({ payment_provider: 'stripe', funnel_id: 'funnel' }),
    line.subscription({ id: 'two', payment_provider: '' }),
    line.transaction(),
  ]
  const second = [
    line.funnel({ deleted_at: T }),
    line.funnel({ id: 'gone' }),
    line.profile({ funnel_id: 'gone' }),
    line.profile({ id: 'second', funnel_id: 'gone' }),
    line.session(),
    line.subscription({ status: 'expired', product_id: 'other' }),
    line.subscription({ id: 'two', payment_provider: 'stripe' }),
    line.subscription({ id: 'three' }),
    line.transaction({ price: 1 }),
  ]
  for (const lines of [first, first, second, second, [...first, ...second]]) {
    await imports.run(project, lines)
    await assertCounted(imports.db, project)
  }
  const kept = await assertCounted(imports.db, project)
  assert.deepEqual(
    kept.filter((text) => text.startsWith('subscriptions.')),
    [
      'subscriptions.=: 3',
      'subscriptions.payment_provider=stripe: 1',
      'subscriptions.product_id=other: 1',
      'subscriptions.product_id=product: 2',
      'subscriptions.status=active: 2',
      'subscriptions.status=expired: 1',
    ],
  )
})
