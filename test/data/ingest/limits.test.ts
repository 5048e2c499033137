// Limits of texts: what each field takes at most, and lines that only the database refuses.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import type { Fields, Type } from '../../../src/core/records/import/fields.ts'
import { KINDS } from '../../../src/core/records/records.ts'
import { DIMENSIONS } from '../../../src/core/records/visit.ts'
import { assertExact } from '../../support/figures.ts'
import { line, openImports, uuid } from '../../support/imports.ts'
import { problem } from './import-rows.ts'

const imports = await openImports()
after(() => imports.stop())

const builders = Object.values(line).map((build) => {
  const { record, data } = build()
  return { record, data: data as Record<string, unknown>, kind: KINDS.find(({ name }) => name === record)! }
})

/** Random text, which PostgreSQL cannot compress, of so many bytes. */
const random = (bytes: number) => randomBytes(bytes).toString('hex').slice(0, bytes)

/** The text fields of a kind, those of its groups with the path of the group. */
function textsOf(fields: Fields, path: string[] = []): { path: string[]; type: Type }[] {
  return fields.flatMap(({ name, type }) => {
    if (type.fields) return textsOf(type.fields, [...path, name])
    return type.maxBytes === undefined ? [] : [{ path: [...path, name], type }]
  })
}

function withValue(data: Record<string, unknown>, [name, ...rest]: string[], value: unknown): Record<string, unknown> {
  const inner = rest.length === 0 ? value : withValue((data[name!] ?? {}) as Record<string, unknown>, rest, value)
  return { ...data, [name!]: inner }
}

/** A value of so many bytes for the field, in the form that it takes. */
function ofBytes({ json }: Type, name: string, bytes: number): unknown {
  if (!json || name === 'value') return random(bytes)
  // With quotes and a comma each item has 103 bytes.
  if (name === 'tags' || name === 'currencies')
    return [random(bytes % 103), ...Array.from({ length: Math.floor(bytes / 103) - 1 }, () => random(100)), random(96)]
  return { x: random(bytes - '{"x":""}'.length) }
}

test('a text above its limit makes a bad line that names the field and the limit', () => {
  let checked = 0
  for (const { record, data, kind } of builders)
    for (const { path, type } of textsOf(kind.fields)) {
      const longer = JSON.stringify({
        record,
        data: withValue(data, path, ofBytes(type, path[0]!, type.maxBytes! + 1)),
      })
      const place = `${record}.${path.join('.')}`
      const found = problem(longer)
      assert.ok(
        found.startsWith(place) && /must (have at most \d+ (bytes|KiB)|be 1 to 64 visible|be a currency)/.test(found),
        `${place}: ${found}`,
      )
      checked += 1
    }
  assert.ok(checked > 80, `${checked} fields`)
})

test('the limit counts bytes of UTF-8, not characters', () => {
  assert.equal(problem(JSON.stringify(line.session({ locale: '😀'.repeat(64) }))), 'none')
  const place = 'session.locale must have at most 256 bytes'
  assert.equal(problem(JSON.stringify(line.session({ locale: '😀'.repeat(65) }))), place)
})

// The dimensions of a visit are cut.
const isCut = (name: string) => (DIMENSIONS as readonly string[]).includes(name)

test('no field takes a text without a limit', () => {
  const long = 'x'.repeat(100_000)
  for (const { record, data, kind } of builders)
    for (const { name } of kind.fields.filter((one) => record !== 'session' || !isCut(one.name)))
      for (const value of [long, [long], { x: long }, { [long]: 1 }, { id: long }, [{ ...priced, external_id: long }]])
        assert.notEqual(
          problem(JSON.stringify({ record, data: { ...data, [name]: value } })),
          'none',
          `${record}.${name}`,
        )
})

const priced = { id: 'p', type: 'one_time', amount: 1, currency: 'USD' }

test('a line with each text at its limit is stored, and figures are computed from it', async () => {
  const project = await imports.project()
  const ids = Object.fromEntries(KINDS.map(({ name }) => [name, random(64)]))
  const letters = (count: number) =>
    Array.from({ length: count }, () => String.fromCodePoint(0x20000 + randomBytes(2).readUInt16LE()))
  const external_id = letters(256).join('')
  const own: Record<string, unknown> = {
    external_id,
    order_id: uuid(900_001),
    trx_id: uuid(900_002),
    upgrades_to: random(64),
    trial_transaction_id: random(64),
  }
  const lines = builders.map(({ record, data, kind }) => {
    let full = data
    for (const { path, type } of textsOf(kind.fields)) {
      const [name] = path
      const target = name === 'id' ? record : kind.references[name!]
      const value = path.length === 1 ? ((target && ids[target]) ?? own[name!]) : undefined
      if (name === 'currencies' || (name === 'external_id' && record === 'product')) continue
      full = withValue(full, path, value ?? ofBytes(type, name!, type.maxBytes!))
    }
    return { record, data: 'external_id' in data ? { ...full, external_id } : full }
  })
  const { rejects, written } = await imports.run(project, lines)
  assert.deepEqual([rejects, written], [[], lines.length])
  await assertExact(imports.db, project.id)
})

test('a line that only the database refuses is a bad line that names the table', async () => {
  const project = await imports.project()
  await imports.rows(`create index of_the_operator on sessions (user_agent) where project_id = '${project.id}'`)
  const lines = [line.profile(), line.session({ user_agent: random(4000) }), line.session({ id: 'good' })]
  const needsIt = line.reply()
  const reason = /^session is refused by the database at the table sessions \(54000: index row size \d+ exceeds .*\)$/
  for (const dryRun of [true, false]) {
    const { rejects, written } = await imports.run(project, lines, { dryRun })
    assert.deepEqual([rejects.map(({ line }) => line), written], [[2], 0])
    assert.match(rejects[0]!.reason, reason)
  }
  let given = ''
  const result = await imports.run(project, [...lines, needsIt], {
    skipBadLines: true,
    async saveRejected(rejected) {
      for await (const { source, bytes } of rejected) given += `${source}:${bytes}`
    },
  })
  assert.deepEqual([result.written, result.rejected], [2, 2])
  assert.equal(given, [lines[1], needsIt].map((one) => `file:${JSON.stringify(one)}\n`).join(''))
  await imports.rows('drop index of_the_operator')
})

test('lines that the database refuses only together end the import with the file and the table', async () => {
  const project = await imports.project()
  await imports.rows('alter table counts add constraint of_the_operator check (n < 2) not valid')
  await assert.rejects(
    imports.run(project, [line.profile(), line.profile({ id: 'other' })]),
    /^Error: file: the database refused the records at the table counts \(23514\), and none of the lines alone: nothing was written\.$/,
  )
  assert.equal(await imports.count(project, 'profiles'), 0)
  await imports.rows('alter table counts drop constraint of_the_operator')
})
