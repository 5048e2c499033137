// The stamps that an import sets, by which a sync finds what changed.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Line, line, openImports, type Project, T } from '../../support/imports.ts'

const imports = await openImports()
after(() => imports.stop())

describe('a live import', () => {
  test('stamps every change now, later than what is stored', async () => {
    const project = await imports.project()
    const begin = await imports.now()
    await imports.run(project, [line.profile({ updated_at: T })], { live: true })
    const first = (await imports.column(project, 'profiles', 'updated_at', 'profile'))!
    assert.ok(first >= begin)
    assert.equal(await imports.column(project, 'profiles', 'created_at', 'profile'), '2026-01-02 03:04:05.000006+00')
    await imports.rows(`update profiles set updated_at = db_clock() + interval '1 hour' where project_id = $1`, [
      project.id,
    ])
    const ahead = (await imports.column(project, 'profiles', 'updated_at', 'profile'))!
    await imports.run(project, [line.profile({ phone: '1' })], { live: true })
    assert.ok((await imports.column(project, 'profiles', 'updated_at', 'profile'))! > ahead)
  })

  test('stamps a session whose replies came or changed, once, and no other', async () => {
    const project = await imports.project()
    const stampOf = (id: string) => imports.column(project, 'sessions', 'updated_at', id)
    const live = (...lines: Line[]) => imports.run(project, lines, { live: true })
    await imports.run(project, [
      ...[line.profile(), line.session({ updated_at: T }), line.session({ id: 'other', updated_at: T })],
      ...[line.reply(), line.reply({ session_id: 'other' })],
    ])
    const history = await stampOf('session')
    assert.equal(history, '2026-01-02 03:04:05.000006+00')

    const second = { screen: { id: 'second', index: 1 } }
    await live(line.reply({ ...second, value: 'a' }), line.reply({ session_id: 'other' }))
    const came = (await stampOf('session'))!
    assert.ok(came > history)
    await live(line.reply({ ...second, value: 'b' }))
    const changed = (await stampOf('session'))!
    assert.ok(changed > came)
    await live(line.reply({ ...second, value: 'b' }))
    assert.equal(await stampOf('session'), changed)
    assert.equal(await stampOf('other'), history)

    await imports.run(project, [line.reply({ ...second, value: 'c' })])
    assert.equal(await stampOf('session'), changed, 'History stamps nothing.')
    await live(line.session({ locale: 'de' }), line.profile({ locale: 'de' }), line.reply({ ...second, value: 'd' }))
    assert.equal(await stampOf('session'), await imports.column(project, 'profiles', 'updated_at', 'profile'))
  })

  test('stamps nothing before the floor that a sync has set', async () => {
    const project = await imports.project()
    await imports.rows(`update project_clocks set floor = db_clock() + interval '1 hour' where project_id = $1`, [
      project.id,
    ])
    const { floor } = await imports.row('select floor from project_clocks where project_id = $1', [project.id])
    await imports.run(project, [line.profile()], { live: true })
    assert.ok((await imports.column(project, 'profiles', 'updated_at', 'profile'))! >= floor!)
  })
})

describe('subscriptions of a profile', () => {
  const stampOf = (project: Project) => imports.column(project, 'subscriptions', 'updated_at', 'subscription')
  const history = { updated_at: T }

  test('are stamped when its e-mail or preview mark changes, and by no other change', async () => {
    const project = await imports.project()
    const lines = [line.product(), line.subscription(history)]
    await imports.run(project, [...lines, line.profile({ email: 'a@x', ...history })])
    const first = await stampOf(project)
    assert.equal(first, '2026-01-02 03:04:05.000006+00')
    await imports.run(project, [line.profile({ email: 'a@x', phone: '1', ...history })])
    assert.equal(await stampOf(project), first)
    const begin = await imports.now()
    await imports.run(project, [line.profile({ email: 'b@x', ...history })])
    const second = (await stampOf(project))!
    assert.ok(second >= begin)
    await imports.run(project, [line.profile({ email: 'b@x', preview: true, ...history })])
    assert.ok((await stampOf(project))! > second)
  })

  test('keep that stamp when the file that brought them comes again', async () => {
    const project = await imports.project()
    const lines = [line.product(), line.subscription(history)]
    await imports.run(project, [...lines, line.profile({ email: 'a@x', ...history })])
    await imports.run(project, [...lines, line.profile({ email: 'b@x', ...history })])
    const stamp = await stampOf(project)
    await imports.run(project, [...lines, line.profile({ email: 'b@x', ...history })])
    assert.equal(await stampOf(project), stamp)
    await imports.run(project, [line.subscription({ updated_at: '2026-01-03T00:00:00Z', status: 'expired' })])
    assert.equal(await stampOf(project), '2026-01-03 00:00:00+00')
  })

  test('are not stamped by an older line that is skipped', async () => {
    const project = await imports.project()
    await imports.run(project, [line.product(), line.subscription(history), line.profile({ email: 'a@x', ...history })])
    await imports.run(project, [line.profile({ email: 'b@x', updated_at: '2025-01-01T00:00:00Z' })])
    assert.equal(await stampOf(project), '2026-01-02 03:04:05.000006+00')
  })
})
