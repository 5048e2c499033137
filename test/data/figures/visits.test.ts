// The figures of sessions of a person with many sessions and many payments.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { followProject } from '../../../src/data/figures/follow.ts'
import { figuresOf } from '../../support/figures.ts'
import { line, openImports } from '../../support/imports.ts'
import { type Caught, explain, type Node, watched } from '../../support/plans.ts'
import { columns } from '../../support/rows.ts'

const MANY = 200

const imports = await openImports()
after(() => imports.stop())

const rowsRead = (node: Node) => (node['Actual Rows']! + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops']!

test('are computed from each payment of the person once, not once for each of the sessions', async () => {
  const project = await imports.project()
  const numbers = Array.from({ length: MANY }, (_, n) => n)
  await imports.run(project, [
    line.product(),
    line.profile(),
    ...numbers.map((n) => line.session({ id: `session-${n}` })),
    line.subscription({ session_id: 'session-1' }),
    ...numbers.map((n) => line.transaction({ id: `transaction-${n}`, price: n === 3 ? 0 : 1999 })),
    line.transaction({ id: 'of-the-subscription', subscription_id: 'subscription' }),
    line.transaction({ id: 'of-a-session', session_id: 'session-2' }),
    line.transaction({ id: 'of-both', session_id: 'session-4', subscription_id: 'subscription' }),
    line.transaction({ id: 'free', session_id: 'session-5', price: 0 }),
  ])
  const caught: Caught[] = []
  await followProject(
    watched(imports.db, (statement) => caught.push(statement)),
    project.id,
  )
  const [figures] = await figuresOf(imports.db, project.id, 'sessions people subscribed paid')
  assert.deepEqual([figures!.sessions, figures!.people, figures!.subscribed, figures!.paid], [MANY, 1, 1, 3])

  const computed = caught.filter(({ text }) => text.startsWith('insert into figures_visits'))
  assert.ok(computed.length > 0)
  // Each statement is executed again to count what it reads.
  await imports.db.query('delete from figures_visits where project_id = $1', [project.id])
  for (const statement of computed) {
    const nodes = await explain(imports.db, statement, true)
    const reads = nodes.filter((node) => node['Relation Name'] === 'transactions')
    const rows = reads.reduce((sum, node) => sum + rowsRead(node), 0)
    assert.ok(rows <= MANY + 4, `${rows} rows of transactions were read`)
  }
})

test('the payments of many visitors are looked up by a hash, not read for each session, however many the planner expects', async () => {
  const project = await imports.project()
  const people = Array.from({ length: 100 }, (_, n) => n)
  await imports.run(project, [
    ...people.flatMap((n) => [
      line.profile({ id: `person-${n}` }),
      line.session({
        id: `visit-${n}`,
        profile_id: `person-${n}`,
        created_at: new Date(Date.UTC(2026, 0, 2, 0, n * 10)).toISOString(),
      }),
    ]),
    ...people.flatMap((n) =>
      Array.from({ length: 20 }, (_, m) =>
        line.transaction({ id: `paid-${n}-${m}`, profile_id: `person-${n}`, session_id: `visit-${n}` }),
      ),
    ),
  ])
  await imports.db.query('analyze')
  const caught: Caught[] = []
  await followProject(
    watched(imports.db, (statement) => caught.push(statement)),
    project.id,
  )
  const [figures] = await figuresOf(imports.db, project.id, 'sessions paid')
  assert.deepEqual([figures!.sessions, figures!.paid], [100, 100])
  const small = {
    ...imports.db,
    async connect() {
      const connection = await imports.db.connect()
      // So little that a few thousand payments do not fit.
      await connection.query(`set work_mem = '64kB'`)
      await connection.query('set plan_cache_mode = force_custom_plan')
      return { ...connection, release: () => connection.release(true) }
    },
  }
  await imports.db.query('delete from figures_visits where project_id = $1', [project.id])
  await imports.db.query('delete from figures_answers where project_id = $1', [project.id])
  for (const table of ['figures_visits', 'figures_answers']) {
    const statement = caught.find(({ text }) => text.startsWith(`insert into ${table} `))!
    const nodes = await explain(small, statement, true)
    const reads = nodes.filter((node) => node['CTE Name'] === 'paid')
    assert.ok(reads.length > 0)
    for (const node of reads) assert.ok(node['Actual Loops']! <= 1, `${table}: read ${node['Actual Loops']} times`)
  }
})

test('screens are in the order of their indices, also from 100000 on', async () => {
  const project = await imports.project()
  const indices = [1000000, 99999, 100000, 10000, 2147483647]
  await imports.run(project, [
    line.profile(),
    line.funnel({ id: 'long' }),
    line.session({ id: 'session', funnel_id: 'long' }),
    ...indices.map((index) =>
      line.reply({ session_id: 'session', screen: { id: 'same', index }, element: { id: `e${index}`, type: 'Input' } }),
    ),
  ])
  await followProject(imports.db, project.id)
  const screens = await figuresOf(imports.db, project.id, 'answered stopped', {
    dimension: 'screen',
    filters: [{ dimension: 'funnel', value: 'long' }],
  })
  assert.deepEqual(columns(screens, 'key', 'answered', 'stopped'), [
    ['10000 same', 1, 0],
    ['99999 same', 1, 0],
    ['100000 same', 1, 0],
    ['1000000 same', 1, 0],
    ['2147483647 same', 1, 1],
  ])
})
