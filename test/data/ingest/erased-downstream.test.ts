// What syncs and webhooks are told of erased people when lines about them are imported.
import assert from 'node:assert/strict'
import { after, beforeEach, describe, test } from 'node:test'
import type { NamedRow } from '../../../src/lib/pg/types.ts'
import { line, type Project, T } from '../../support/imports.ts'
import { column } from '../../support/rows.ts'
import { MARKER, openErasedImports, personal } from './erased-imports.ts'

const imports = await openErasedImports()
after(() => imports.stop())

test('a repeated import of history does not hide an erasure from syncs', async () => {
  const project = await imports.project()
  const all = (updated_at: string) => [
    line.profile({ ...personal.profile, updated_at }),
    line.session({ ...personal.session, updated_at }),
    line.product(),
    line.subscription({ updated_at }),
  ]
  await imports.run(project, all(T))
  await imports.erase(project, 'profile')
  const stamps = () =>
    imports.row(
      `select p.updated_at as profile, s.updated_at as session, u.updated_at as subscription
       from profiles p join sessions s using (project_id) join subscriptions u using (project_id) where project_id = $1`,
      [project.id],
    )
  const erased = await stamps()
  assert.ok(Object.values(erased).every((stamp) => stamp! > '2026-01-04'))
  assert.equal((await imports.run(project, all('2026-01-03T00:00:00Z'))).erased, 2)
  assert.deepEqual(await stamps(), erased)
  // What the source says is compared with what it said before, all the same.
  const older = await imports.run(project, [line.session({ updated_at: '2026-01-01T00:00:00Z' })])
  assert.equal(older.skipped, 1)
  await imports.run(project, all(new Date(Date.now() + 60_000).toISOString()))
  assert.equal(new Set(Object.values(await stamps())).size, 1)
  assert.ok((await stamps()).profile! > erased.profile!)
})

test('history keeps the stamp of an erasure on another person’s subscription that shows the session', async () => {
  const project = await imports.project()
  const bought = (updated_at: string) => line.subscription({ profile_id: 'other', session_id: 'session', updated_at })
  const lines = [line.profile(), line.profile({ id: 'other' }), line.session(personal.session), line.product()]
  await imports.run(project, [...lines, bought(T)])
  await imports.erase(project, 'profile')
  const stamp = () => imports.row('select updated_at from subscriptions where project_id = $1', [project.id])
  const erased = await stamp()
  await imports.run(project, [bought('2026-01-03T00:00:00Z')])
  assert.deepEqual(await stamp(), erased)
})

describe('events of a shared session after an erasure', () => {
  const renewed = [
    line.subscription({ session_id: 'session', status: 'cancelled' }),
    line.subscription({ id: 'other', profile_id: 'other', session_id: 'session', status: 'cancelled' }),
    line.transaction({ subscription_id: 'subscription' }),
  ]
  const told = (project: Project) =>
    imports.rows(
      `select type, data from events where project_id = $1 and type <> 'profile.anonymized' order by type, object_id`,
      [project.id],
    )
  const isWhole = ({ data }: NamedRow) => Object.keys(JSON.parse(data!)).length > 1

  let project: Project
  beforeEach(async () => {
    project = await imports.project()
    const other = line.subscription({ id: 'other', profile_id: 'other', session_id: 'session' })
    const people = [line.profile(personal.profile), line.profile({ id: 'other', email: 'other@example.com' })]
    const bought = [line.product(), line.subscription({ session_id: 'session' }), other]
    await imports.run(project, [...people, line.session(personal.session), ...bought], { live: true })
    await imports.erase(project, 'profile')
  })

  test('have their data, also with a repeated line of the session', async () => {
    await imports.run(project, [line.session(), ...renewed], { live: true, emitEvents: true })
    const events = await told(project)
    const types = ['subscription.cancelled', 'subscription.cancelled', 'transaction.created']
    assert.deepEqual(column(events, 'type'), types)
    assert.ok(events.every(isWhole))
  })

  test('keep their data when lines are imported again and when the erasure is repeated', async () => {
    await imports.run(project, renewed, { live: true, emitEvents: true })
    const events = await told(project)
    assert.equal(events.filter(isWhole).length, 3)
    await imports.run(project, [line.session(personal.session), line.customer({ profile_id: 'profile' })], {
      live: true,
    })
    assert.deepEqual(await told(project), events)
    await imports.eraseAgain(project, 'profile')
    assert.deepEqual(await told(project), events)
  })

  test('lose the user agent of a session that a line moves to the erased profile', async () => {
    const moved = line.session({ id: 'moved', profile_id: 'other', ...personal.session })
    await imports.run(project, [moved, line.subscription({ id: 'third', profile_id: 'other', session_id: 'moved' })], {
      emitEvents: true,
    })
    assert.ok((await told(project)).some(({ data }) => data!.includes(MARKER)))
    await imports.run(project, [line.session({ id: 'moved' })])
    assert.ok((await told(project)).every(({ data }) => !data!.includes(MARKER)))
  })
})

for (const live of [true, false])
  test(`a sync sees a session that a line moved to an erased profile, live: ${live}`, async () => {
    const project = await imports.project()
    const session = line.session({ ...personal.session, profile_id: 'other', updated_at: T })
    await imports.run(project, [line.profile(), line.profile({ id: 'other' }), session])
    await imports.erase(project, 'profile')
    const { now } = await imports.row('select db_clock() as now')
    const moved = line.session({ ...personal.session, updated_at: '2026-01-03T00:00:00Z' })
    await imports.run(project, [moved], { live })
    const { updated_at } = await imports.row('select updated_at from sessions where project_id = $1', [project.id])
    assert.ok(updated_at! > now!)
  })

for (const live of [true, false])
  test(`a sync sees a subscription whose session a line moved to an erased profile, live: ${live}`, async () => {
    const project = await imports.project()
    const people = [line.profile(), line.profile({ id: 'other' }), line.product()]
    const bought = line.subscription({ profile_id: 'other', session_id: 'session', updated_at: T })
    await imports.run(project, [...people, line.session({ ...personal.session, profile_id: 'other' }), bought])
    await imports.erase(project, 'profile')
    const { now } = await imports.row('select db_clock() as now')
    const stamp = () => imports.row('select updated_at from subscriptions where project_id = $1', [project.id])
    await imports.run(project, [line.session(personal.session), bought], { live })
    const first = await stamp()
    assert.ok(first.updated_at! > now!)
    await imports.run(project, [line.session(personal.session), bought], { live })
    assert.deepEqual(await stamp(), first)
  })
