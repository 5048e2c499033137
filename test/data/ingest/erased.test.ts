// Erased people stay erased: lines about them lose what is personal, whatever they say and whenever they come.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { line, T } from '../../support/imports.ts'
import { about, MARKER, openErasedImports, personal } from './erased-imports.ts'

const imports = await openErasedImports()
after(() => imports.stop())

test('lines that are not about an erased profile keep everything', async () => {
  const project = await imports.project()
  await imports.run(project, about())
  assert.deepEqual(await imports.found(project), ['customers', 'profiles', 'replies', 'sessions'])
})

test('lines of an erased profile, its sessions, replies and customers are stored wiped, and counted', async () => {
  const project = await imports.project()
  await imports.run(project, [...about(), line.product(), line.subscription()])
  await imports.erase(project, 'profile')
  const lines = [
    ...about(),
    line.session({ id: 'new', ...personal.session }),
    line.reply({ session_id: 'new', value: [MARKER] }),
  ]
  const result = await imports.run(project, [...lines, line.subscription(), line.transaction()])
  // The subscription is as it was.
  assert.deepEqual([result.read, result.written, result.unchanged, result.erased], [8, 1, 1, 6])
  assert.deepEqual(await imports.found(project), [])
  const kept = await imports.row(
    `select p.country, p.anonymized_at is not null as erased, s.city, s.origin, s.tracking_cookies, s.query_params, r.value
     from profiles p join sessions s on s.project_id = p.project_id and s.id = 'new'
     join replies r on r.project_id = p.project_id and r.session_id = 'new' where p.project_id = $1`,
    [project.id],
  )
  assert.deepEqual(kept, {
    country: 'DE',
    erased: 't',
    city: 'Berlin',
    origin: 'https://shop.example',
    tracking_cookies: '{}',
    query_params: '{}',
    value: 'null',
  })
})

test('each kind alone is wiped, too', async () => {
  const project = await imports.project()
  await imports.run(project, about())
  await imports.erase(project, 'profile')
  for (const one of about()) {
    const result = await imports.run(project, [one])
    assert.deepEqual([result.erased, await imports.found(project)], [1, []])
  }
})

test('an older line about an erased profile is skipped, not counted as erased', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile()])
  await imports.erase(project, 'profile')
  const result = await imports.run(project, [line.profile({ ...personal.profile, updated_at: T })])
  assert.deepEqual([result.skipped, result.erased], [1, 0])
})

test('a line cannot bring data of an erased person back by moving it to another profile', async () => {
  const project = await imports.project()
  await imports.run(project, [...about(), line.profile({ id: 'other' })])
  await imports.erase(project, 'profile')
  const moved = [
    line.session({ ...personal.session, profile_id: 'other' }),
    line.reply({ value: MARKER }),
    line.customer({ email: MARKER, profile_id: 'other' }),
  ]
  for (let round = 0; round < 2; round++) {
    assert.equal((await imports.run(project, moved)).erased, 3)
    assert.deepEqual(await imports.found(project), [])
  }
  assert.equal((await imports.run(project, [line.customer({ email: MARKER })])).erased, 1)
  assert.deepEqual(await imports.found(project), [])
})

test('a session that comes under an erased profile and then under another in one file is wiped', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile(), line.profile({ id: 'other' })])
  await imports.erase(project, 'profile')
  const result = await imports.run(project, [
    line.session(personal.session),
    line.session({ ...personal.session, profile_id: 'other' }),
  ])
  assert.deepEqual([result.erased, await imports.found(project)], [2, []])
})

test('the stored replies of a session are wiped when it is moved to an erased profile', async () => {
  const project = await imports.project()
  await imports.run(project, [...about().slice(0, 3), line.profile({ id: 'erased' })])
  await imports.erase(project, 'erased')
  const mark = () => imports.row('select number from erasure_marks where project_id = $1', [project.id])
  const before = await mark()
  const from = await imports.row('select updated_at from sessions where project_id = $1', [project.id])
  const moved = [line.session({ profile_id: 'erased' })]
  assert.equal((await imports.run(project, moved)).erased, 1)
  assert.deepEqual(await imports.found(project), ['profiles'])
  // A replica is not read until it has this.
  assert.equal(Number((await mark()).number), Number(before.number) + 1)
  const to = await imports.row('select updated_at from sessions where project_id = $1', [project.id])
  assert.ok(to.updated_at! > from.updated_at!)
})

test('a profile in the ledger of a restored database is imported as erased', async () => {
  const project = await imports.project()
  await imports.rows(`insert into erasures (project_id, profile_id, erased_at) values ($1, 'profile', $2)`, [
    project.id,
    T,
  ])
  const result = await imports.run(project, about())
  assert.deepEqual([result.erased, await imports.found(project)], [4, []])
  const { anonymized_at } = await imports.row('select anonymized_at from profiles where project_id = $1', [project.id])
  assert.equal(anonymized_at, '2026-01-02 03:04:05.000006+00')
})

test('a new profile may be imported as erased, but no line erases a stored one', async () => {
  const project = await imports.project()
  const erased = { anonymized_at: '2026-01-03T00:00:00Z' }
  const result = await imports.run(project, [
    line.profile({ ...personal.profile, ...erased }),
    line.session(personal.session),
    line.profile({ id: 'other' }),
  ])
  assert.deepEqual([result.erased, result.written, await imports.found(project)], [2, 1, []])
  const { anonymized_at } = await imports.row(
    `select anonymized_at from profiles where project_id = $1 and id = 'profile'`,
    [project.id],
  )
  assert.equal(anonymized_at, '2026-01-03 00:00:00+00')
  const refused = await imports.run(project, [line.profile({ id: 'other', ...erased })])
  assert.equal(
    refused.rejects[0]!.reason,
    'profile.anonymized_at is set, but the profile was not erased here: do that first',
  )
})
