// Lines that have only the fields that change, against the same lines imported one by one.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import fc from 'fast-check'
import { allWritten, type Line, line, openImports, type Project, T } from '../../support/imports.ts'
import { assertCounted } from './counters.ts'

const imports = await openImports()
after(() => imports.stop())

const merge = (project: Project, lines: Line[], more = {}) =>
  imports.run(project, lines, { live: true, merge: true, ...more })
const record = (kind: string, data: object): Exclude<Line, string> => ({ record: kind, data })

describe('a line with some fields', () => {
  test('changes these, keeps the others, and null clears one', async () => {
    const project = await imports.project()
    await merge(project, [line.profile({ email: 'Ada@x', phone: '1', preview: true, integrations: { a: 1 } })])
    assert.deepEqual(await merge(project, [record('profile', { id: 'profile', country: 'DE' })]), allWritten(1))
    const kept = await imports.row(
      'select email, email_folded, phone, country, preview, integrations from profiles where project_id = $1',
      [project.id],
    )
    const stored = {
      email: 'Ada@x',
      email_folded: 'ada@x',
      phone: '1',
      country: 'DE',
      preview: 't',
      integrations: '{"a":1}',
    }
    assert.deepEqual(kept, stored)
    await merge(project, [record('profile', { id: 'profile', email: null, preview: null })])
    const cleared = await imports.row(
      'select email, email_folded, phone, preview from profiles where project_id = $1',
      [project.id],
    )
    assert.deepEqual(cleared, { email: null, email_folded: null, phone: '1', preview: 'f' })
  })

  test('that says what is stored is unchanged, and one that is older is skipped', async () => {
    const project = await imports.project()
    await merge(project, [line.profile({ phone: '1', updated_at: T })])
    const same = await merge(project, [record('profile', { id: 'profile', phone: '1' })])
    assert.deepEqual(same, { ...allWritten(0), read: 1, unchanged: 1 })
    const older = await merge(project, [
      record('profile', { id: 'profile', phone: '2', updated_at: '2025-01-01T00:00:00Z' }),
    ])
    assert.deepEqual(older, { ...allWritten(0), read: 1, skipped: 1 })
  })

  test('is bad when its record does not exist and a required field is missing, null or in no other line', async () => {
    const project = await imports.project()
    await merge(project, [line.profile()])
    const { rejects } = await merge(
      project,
      [
        record('session', { id: 'new', locale: 'de' }),
        record('profile', { id: 'profile', created_at: null }),
        record('profile', { phone: '1' }),
        record('reply', { session_id: 'new', element: { id: 'e' }, screen: { id: 's', index: 0 } }),
        // Together these two are complete.
        record('session', { id: 'both', created_at: T, locale: 'de' }),
        record('session', { id: 'both', profile_id: 'profile' }),
      ],
      { skipBadLines: true },
    )
    assert.deepEqual(
      rejects.map(({ line: number, code, reason }) => `${number} ${code} ${reason}`),
      [
        '2 missing_field profile.created_at must not be null',
        '3 missing_field profile.id is missing',
        '1 missing_field session.created_at is missing, and there is no such record yet',
        '4 missing_field reply.element.type is missing, and there is no such record yet',
      ],
    )
    assert.equal(await imports.column(project, 'sessions', 'locale', 'both'), 'de')
  })

  test('moves a session of a living person to an erased one without its personal data', async () => {
    const project = await imports.project()
    const living = line.session({ ip: '192.0.2.7', user_agent: 'Firefox', city: 'Berlin' })
    await merge(project, [line.profile(), line.profile({ id: 'erased', anonymized_at: T }), living])
    const moved = await merge(project, [record('session', { id: 'session', profile_id: 'erased', locale: 'de' })])
    assert.deepEqual(moved, { ...allWritten(0), read: 1, erased: 1 })
    const row = await imports.row(
      'select profile_id, ip, user_agent, city, locale from sessions where project_id = $1',
      [project.id],
    )
    assert.deepEqual(row, { profile_id: 'erased', ip: null, user_agent: null, city: 'Berlin', locale: 'de' })
  })
})

const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined })
const word = fc.option(fc.constantFrom('a', 'b'), { nil: null, freq: 3 })
const second = maybe(fc.integer({ min: 1, max: 9 }).map((n) => `2026-01-01T00:00:0${n}Z`))
const fields = {
  profile: { email: maybe(word), phone: maybe(word), preview: maybe(fc.boolean()) },
  session: { locale: maybe(word), ip: maybe(word), profile_id: maybe(fc.constantFrom('p1', 'p2')) },
}
const some = fc.oneof(
  fc
    .record({ id: fc.constantFrom('p1', 'p2'), updated_at: second, ...fields.profile })
    .map((data) => record('profile', data)),
  fc
    .record({ id: fc.constantFrom('s1', 's2'), updated_at: second, ...fields.session })
    .map((data) => record('session', data)),
)

async function storedIn({ id }: Project): Promise<object[]> {
  return [
    ...(await imports.rows(
      'select id, email, phone, preview, source_updated_at from profiles where project_id = $1 order by id',
      [id],
    )),
    ...(await imports.rows(
      'select id, locale, ip, profile_id, source_updated_at from sessions where project_id = $1 order by id',
      [id],
    )),
  ]
}

// In one file a line without a time is newer than any with one, so the lines of a run have times, or none has one.
test('any lines in one file leave what they leave one by one', async () => {
  const begin = [
    ...['p1', 'p2'].map((id) => line.profile({ id, email: 'x', updated_at: '2026-01-01T00:00:04Z' })),
    ...['s1', 's2'].map((id) => line.session({ id, profile_id: 'p1', ip: 'x', updated_at: '2026-01-01T00:00:04Z' })),
  ]
  await fc.assert(
    fc.asyncProperty(fc.array(some, { minLength: 1, maxLength: 6 }), fc.boolean(), async (given, isDated) => {
      const lines = given.map(({ record: kind, data }) => {
        const { updated_at: time = '2026-01-01T00:00:05Z', ...rest } = data as { updated_at?: string }
        return record(kind, isDated ? { ...rest, updated_at: time } : rest)
      })
      const [together, alone] = [await imports.project(), await imports.project()]
      for (const project of [together, alone]) await merge(project, begin)
      const result = await merge(together, lines)
      let skipped = 0
      for (const one of lines) skipped += (await merge(alone, [one])).skipped
      assert.deepEqual(await storedIn(together), await storedIn(alone))
      assert.equal(result.skipped, skipped)
      await assertCounted(imports.db, together)
    }),
    { numRuns: 8 },
  )
})
