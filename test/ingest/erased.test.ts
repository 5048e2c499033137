// Erased people stay erased: lines about them lose what is personal, whatever they say and whenever they come.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, test } from 'node:test'
import { reapply } from '../../src/erasure/erasure.ts'
import type { NamedRow } from '../../src/lib/pg/types.ts'
import { type Imports, type Line, line, openImports, type Project, T } from '../support/imports.ts'
import { untilLocked } from '../support/locks.ts'

const MARKER = 'marker'
const personal = {
  profile: { email: MARKER, phone: MARKER, password_hash: MARKER, integrations: { id: MARKER }, country: 'DE' },
  session: {
    ip: MARKER,
    user_agent: MARKER,
    postal_code: MARKER,
    origin: `https://${MARKER}:pw@shop.example/a?mail=${MARKER}#x`,
    query_params: { mail: MARKER },
    tracking_cookies: { _ga: MARKER },
    city: 'Berlin',
  },
}
const about = (): Line[] => [
  line.profile(personal.profile),
  line.session(personal.session),
  line.reply({ value: MARKER }),
  line.customer({ email: MARKER, profile_id: 'profile' }),
]

let imports: Imports
let folder: string
before(async () => {
  imports = await openImports()
  folder = mkdtempSync(join(tmpdir(), 'tundish-test-erased-'))
})
after(async () => {
  await imports.stop()
  rmSync(folder, { recursive: true, force: true })
})

/** Erases as after a restored backup: the same work as for a request, without a request. */
async function eraseNow(project: Project, profileId: string): Promise<void> {
  assert.equal((await carryOut(project, profileId)).erased, 1)
}

const eraseAgain = async (project: Project, profileId: string) =>
  assert.equal((await carryOut(project, profileId)).already_erased, 1)

function carryOut({ id: project_id }: Project, profile_id: string) {
  return reapply(imports.db, join(folder, 'erasures'), entries())
  async function* entries() {
    yield { project_id, profile_id, erased_at: T }
  }
}

/** The tables in which the marker stands. */
async function found(project: Project): Promise<string[]> {
  const tables = ['profiles', 'sessions', 'replies', 'customers']
  const where = { customers: 't.organization_id = $2' } as Record<string, string>
  const rows = await imports.rows(
    tables
      .map(
        (table) =>
          `select '${table}' as name from ${table} t where ${where[table] ?? 't.project_id = $1'} and t::text like '%${MARKER}%' and $2 <> $1`,
      )
      .join(' union '),
    [project.id, project.organizationId],
  )
  return rows.map(({ name }) => name!).sort()
}

test('lines that are not about an erased profile keep everything', async () => {
  const project = await imports.project()
  await imports.run(project, about())
  assert.deepEqual(await found(project), ['customers', 'profiles', 'replies', 'sessions'])
})

test('lines of an erased profile, its sessions, replies and customers are stored wiped, and counted', async () => {
  const project = await imports.project()
  await imports.run(project, [...about(), line.product(), line.subscription()])
  await eraseNow(project, 'profile')
  const lines = [
    ...about(),
    line.session({ id: 'new', ...personal.session }),
    line.reply({ session_id: 'new', value: [MARKER] }),
  ]
  const result = await imports.run(project, [...lines, line.subscription(), line.transaction()])
  assert.deepEqual([result.read, result.written, result.erased], [8, 2, 6])
  assert.deepEqual(await found(project), [])
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
  await eraseNow(project, 'profile')
  for (const one of about()) {
    const result = await imports.run(project, [one])
    assert.deepEqual([result.erased, await found(project)], [1, []])
  }
})

test('an older line about an erased profile is skipped, not counted as erased', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile()])
  await eraseNow(project, 'profile')
  const result = await imports.run(project, [line.profile({ ...personal.profile, updated_at: T })])
  assert.deepEqual([result.skipped, result.erased], [1, 0])
})

test('what was theirs stays theirs: a line cannot move it to somebody else and bring it back', async () => {
  const project = await imports.project()
  await imports.run(project, [...about(), line.profile({ id: 'other' })])
  await eraseNow(project, 'profile')
  const moved = [
    line.session({ ...personal.session, profile_id: 'other' }),
    line.reply({ value: MARKER }),
    line.customer({ email: MARKER, profile_id: 'other' }),
  ]
  for (let round = 0; round < 2; round++) {
    assert.equal((await imports.run(project, moved)).erased, 3)
    assert.deepEqual(await found(project), [])
  }
  assert.equal((await imports.run(project, [line.customer({ email: MARKER })])).erased, 1)
  assert.deepEqual(await found(project), [])
})

test('a session that comes under an erased profile and then under another in one file is wiped', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile(), line.profile({ id: 'other' })])
  await eraseNow(project, 'profile')
  const result = await imports.run(project, [
    line.session(personal.session),
    line.session({ ...personal.session, profile_id: 'other' }),
  ])
  assert.deepEqual([result.erased, await found(project)], [2, []])
})

test('a session that is moved under an erased profile takes its stored answers there wiped', async () => {
  const project = await imports.project()
  await imports.run(project, [...about().slice(0, 3), line.profile({ id: 'erased' })])
  await eraseNow(project, 'erased')
  const mark = () => imports.row('select number from erasure_marks where project_id = $1', [project.id])
  const before = await mark()
  const from = await imports.row('select updated_at from sessions where project_id = $1', [project.id])
  const moved = [line.session({ profile_id: 'erased' })]
  assert.equal((await imports.run(project, moved)).erased, 1)
  assert.deepEqual(await found(project), ['profiles'])
  // A replica is not read until it has this.
  assert.equal(Number((await mark()).number), Number(before.number) + 1)
  const to = await imports.row('select updated_at from sessions where project_id = $1', [project.id])
  assert.ok(to.updated_at! > from.updated_at!)
})

test('history that comes again does not take an erasure out of a sync', async () => {
  const project = await imports.project()
  const all = (updated_at: string) => [
    line.profile({ ...personal.profile, updated_at }),
    line.session({ ...personal.session, updated_at }),
    line.product(),
    line.subscription({ updated_at }),
  ]
  await imports.run(project, all(T))
  await eraseNow(project, 'profile')
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

test('whoever stands in the ledger of a restored database comes back erased', async () => {
  const project = await imports.project()
  await imports.rows(`insert into erasures (project_id, profile_id, erased_at) values ($1, 'profile', $2)`, [
    project.id,
    T,
  ])
  const result = await imports.run(project, about())
  assert.deepEqual([result.erased, await found(project)], [4, []])
  const { anonymized_at } = await imports.row('select anonymized_at from profiles where project_id = $1', [project.id])
  assert.equal(anonymized_at, '2026-01-02 03:04:05.000006+00')
})

test('a profile may come as erased from elsewhere, but nobody is erased by a line', async () => {
  const project = await imports.project()
  const erased = { anonymized_at: '2026-01-03T00:00:00Z' }
  const result = await imports.run(project, [
    line.profile({ ...personal.profile, ...erased }),
    line.session(personal.session),
    line.profile({ id: 'other' }),
  ])
  assert.deepEqual([result.erased, result.written, await found(project)], [2, 1, []])
  const { anonymized_at } = await imports.row(
    `select anonymized_at from profiles where project_id = $1 and id = 'profile'`,
    [project.id],
  )
  assert.equal(anonymized_at, '2026-01-03 00:00:00+00')
  const refused = await imports.run(project, [line.profile({ id: 'other', ...erased })])
  assert.equal(
    refused.rejects[0]!.reason,
    'profile.anonymized_at is set, but here nobody erased the profile: do that first',
  )
})

test('an erasure and an import at once leave nothing, whoever comes first', async () => {
  for (let round = 0; round < 12; round++) {
    const project = await imports.project()
    await imports.run(project, [line.profile({ email: MARKER }), line.profile({ id: 'other' })])
    const erasing = new Promise((resolve) => setTimeout(resolve, round * 4)).then(() => eraseNow(project, 'profile'))
    const [result] = await Promise.all([imports.run(project, about()), erasing])
    assert.equal(result.rejected, 0)
    assert.deepEqual(await found(project), [], `round ${round}`)
  }
})

test('an import waits for an erasure under way, and then sees it', async () => {
  const project = await imports.project()
  await imports.run(project, [line.profile({ email: MARKER })])
  const { query, release } = await imports.db.connect()
  await query('begin')
  await query('select id from profiles where project_id = $1 for no key update', [project.id])
  const importing = imports.run(project, about())
  await untilLocked(imports.db.query, 'import_concerned')
  await query(
    `update profiles set anonymized_at = db_clock(), email = null, email_folded = null, phone = null, password_hash = null where project_id = $1`,
    [project.id],
  )
  await query('commit')
  release()
  assert.equal((await importing).erased, 4)
  assert.deepEqual(await found(project), [])
})

test('a subscription waits for an erasure of whose session it came out of: its events show the user agent', async () => {
  const project = await imports.project()
  const lines = [line.profile(), line.profile({ id: 'other' }), line.session(personal.session), line.product()]
  await imports.run(project, lines)
  const { query, release } = await imports.db.connect()
  await query('begin')
  await query(`select id from profiles where project_id = $1 and id = 'profile' for update`, [project.id])
  const bought = line.subscription({ profile_id: 'other', session_id: 'session' })
  const importing = imports.run(project, [bought], { emitEvents: true })
  await untilLocked(imports.db.query, 'import_concerned')
  await query('update sessions set user_agent = null where project_id = $1', [project.id])
  await query('commit')
  release()
  assert.equal((await importing).written, 1)
  const events = await imports.rows('select data from events where project_id = $1', [project.id])
  assert.ok(events.length > 0 && events.every(({ data }) => !data!.includes(MARKER)))
})

test('history does not take the stamp of an erasure from somebody else’s subscription that shows the session', async () => {
  const project = await imports.project()
  const bought = (updated_at: string) => line.subscription({ profile_id: 'other', session_id: 'session', updated_at })
  const lines = [line.profile(), line.profile({ id: 'other' }), line.session(personal.session), line.product()]
  await imports.run(project, [...lines, bought(T)])
  await eraseNow(project, 'profile')
  const stamp = () => imports.row('select updated_at from subscriptions where project_id = $1', [project.id])
  const erased = await stamp()
  await imports.run(project, [bought('2026-01-03T00:00:00Z')])
  assert.deepEqual(await stamp(), erased)
})

describe('what is told of the living and the erased', () => {
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
    await eraseNow(project, 'profile')
  })

  test('is whole, also beside a line that comes again', async () => {
    await imports.run(project, [line.session(), ...renewed], { live: true, emitEvents: true })
    const events = await told(project)
    const types = ['subscription.cancelled', 'subscription.cancelled', 'transaction.created']
    assert.deepEqual(
      events.map(({ type }) => type),
      types,
    )
    assert.ok(events.every(isWhole))
  })

  test('stays whole when lines come again, and when the erasure is repeated', async () => {
    await imports.run(project, renewed, { live: true, emitEvents: true })
    const events = await told(project)
    assert.equal(events.filter(isWhole).length, 3)
    await imports.run(project, [line.session(personal.session), line.customer({ profile_id: 'profile' })], {
      live: true,
    })
    assert.deepEqual(await told(project), events)
    await eraseAgain(project, 'profile')
    assert.deepEqual(await told(project), events)
  })

  test('loses the user agent of a session that a line moves under the erased', async () => {
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
  test(`a sync hears what a session lost that moved under an erased profile, live: ${live}`, async () => {
    const project = await imports.project()
    const session = line.session({ ...personal.session, profile_id: 'other', updated_at: T })
    await imports.run(project, [line.profile(), line.profile({ id: 'other' }), session])
    await eraseNow(project, 'profile')
    const { now } = await imports.row('select db_clock() as now')
    const moved = line.session({ ...personal.session, updated_at: '2026-01-03T00:00:00Z' })
    await imports.run(project, [moved], { live })
    const { updated_at } = await imports.row('select updated_at from sessions where project_id = $1', [project.id])
    assert.ok(updated_at! > now!)
  })

for (const live of [true, false])
  test(`a sync hears of a subscription whose session moved under an erased profile, live: ${live}`, async () => {
    const project = await imports.project()
    const people = [line.profile(), line.profile({ id: 'other' }), line.product()]
    const bought = line.subscription({ profile_id: 'other', session_id: 'session', updated_at: T })
    await imports.run(project, [...people, line.session({ ...personal.session, profile_id: 'other' }), bought])
    await eraseNow(project, 'profile')
    const { now } = await imports.row('select db_clock() as now')
    const stamp = () => imports.row('select updated_at from subscriptions where project_id = $1', [project.id])
    await imports.run(project, [line.session(personal.session), bought], { live })
    const first = await stamp()
    assert.ok(first.updated_at! > now!)
    await imports.run(project, [line.session(personal.session), bought], { live })
    assert.deepEqual(await stamp(), first)
  })
