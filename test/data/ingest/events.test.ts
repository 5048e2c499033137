// What an import tells webhooks of, when it is asked to.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { type Imports, line, openImports, type Project } from '../../support/imports.ts'

const PROFILE = line.profile().data.id

const imports = await openImports()
after(() => imports.stop())

async function eventsOf(project: Project) {
  const rows = await imports.rows(
    'select type, object_id, sequence, data from events where project_id = $1 order by created_at, sequence',
    [project.id],
  )
  return rows.map(({ type, object_id, sequence, data }) => ({
    what: `${object_id} ${sequence} ${type}`,
    data: JSON.parse(data!) as { id: string; status?: string },
  }))
}

const told = async (project: Project) => (await eventsOf(project)).map(({ what }) => what).sort()

test('nothing, unless events are asked for', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile(), line.product(), line.subscription()])
  assert.deepEqual(await told(project), [])
})

test('new subscriptions and transactions, then each change of state, and a new period; not what stays the same', async () => {
  const project = await imports.project()
  const run = (...lines: Parameters<Imports['run']>[1]) => imports.run(project, lines, { live: true, emitEvents: true })
  const first = [line.subscription({ id: 'sub', status: 'trialing', period_starts_at: '2026-01-01T00:00:00Z' })]
  await run(line.profile(), line.product(), ...first, line.transaction({ id: 'trn' }))
  const begun = [
    'sub 1 subscription.created',
    'sub 2 subscription.trialing',
    'trn 1 transaction.created',
    `${PROFILE} 1 profile.created`,
  ].sort()
  assert.deepEqual(await told(project), begun)

  await run(...first, line.transaction({ id: 'trn' }))
  assert.deepEqual(await told(project), begun)

  await run(line.subscription({ id: 'sub', status: 'active', period_starts_at: '2026-01-08T00:00:00Z' }))
  await run(line.subscription({ id: 'sub', status: 'active', period_starts_at: '2026-02-08T00:00:00Z' }))
  assert.deepEqual(await told(project), [...begun, 'sub 3 subscription.active', 'sub 4 subscription.renewed'].sort())
  const { data } = (await eventsOf(project)).find(({ what }) => what.startsWith('sub 3'))!
  assert.deepEqual([data.id, data.status], ['sub', 'active'])
})

test('no event of an import that is refused or a dry run', async () => {
  const project = await imports.project()
  const lines = [line.profile(), line.product(), line.subscription()]
  await imports.run(project, [...lines, 'nonsense'], { emitEvents: true })
  await imports.run(project, lines, { emitEvents: true, dryRun: true })
  assert.deepEqual(await told(project), [])
})

test('new and changed profiles, new sessions, and a session that gets its first replies', async () => {
  const project = await imports.project()
  const run = (...lines: Parameters<Imports['run']>[1]) => imports.run(project, lines, { live: true, emitEvents: true })
  const session = line.session({ id: 'ses', profile_id: PROFILE })
  const reply = (id: string) => line.reply({ session_id: 'ses', element: { id, type: 'Input' }, value: 'Ada' })
  await run(line.profile({ email: 'ada@example.com' }), session)
  await run(line.profile({ email: 'ada@example.com' }), session, reply('name'))
  await run(line.profile({ email: 'ada@example.org' }), session, reply('name'), reply('city'))
  assert.deepEqual(
    await told(project),
    [
      `${PROFILE} 1 profile.created`,
      `${PROFILE} 2 profile.updated`,
      'ses 1 session.created',
      'ses 2 session.completed',
    ].sort(),
  )
  const data = (what: string) => eventsOf(project).then((all) => all.find((one) => one.what === what)!.data as object)
  assert.partialDeepStrictEqual(await data(`${PROFILE} 2 profile.updated`), { email: 'ada@example.org' })
  assert.partialDeepStrictEqual(await data('ses 2 session.completed'), { replies: [{ state: { value: 'Ada' } }] })
})
