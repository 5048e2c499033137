// Texts that an older program folded in full, as its migration leaves them: found by simple case folding like all others.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { migrations } from '../../../src/lib/pg/migrate.ts'
import { fold } from '../../../src/lib/text.ts'
import { insert } from '../../support/data.ts'
import { type Project, startTestServer, type TestServer } from '../../support/server.ts'

/** The folding before migration 36. */
const foldedInFull = (text: string) =>
  Array.from(text, (letter) => letter.toLowerCase().toUpperCase().toLowerCase())
    .join('')
    .replaceAll('ς', 'σ')

/** Every letter that it folded to several, between letters that it folded to one. */
const texts = [
  'Straße-😀',
  'ẞ',
  'İ i',
  'ŉΣς',
  ...expanding().map((letter) => `A${letter}Ø${letter}Я`),
  expanding().join(''),
]

function expanding(): string[] {
  const letters = Array.from({ length: 0x10000 - 0x80 }, (_, n) => String.fromCharCode(n + 0x80))
  return letters.filter((letter) => letter.isWellFormed() && letter !== 'ı' && foldedInFull(letter).length > 1)
}

describe('text that was folded by an older version', () => {
  let server: TestServer
  let project: Project
  before(async () => {
    server = await startTestServer()
    project = await server.project()
    const old = { updated_at: '2026-01-02T03:04:05.000006Z' }
    await insert(server.db, project, {
      funnels: texts.map((title, n) => ({ id: `f${n}`, title, title_folded: foldedInFull(title), ...old })),
      profiles: texts.map((email, n) => ({ id: `p${n}`, email, email_folded: foldedInFull(email), ...old })),
    })
    const { sql } = (await migrations()).find(({ version }) => version === 36)!
    await server.db.tx(async (query) => {
      for (const statement of sql.split(/;$/m)) await query(statement)
    })
  })
  after(() => server.stop())

  const found = async (list: string, filter: string, value: string) =>
    (await project.get(`/${list}`, { [`filter[${filter}]`]: value, limit: '100' })).body.data.map(
      ({ id }: { id: string }) => Number(id.slice(1)),
    )

  test('is folded like new texts, and nothing else is changed', async () => {
    assert.equal(expanding().length, 104)
    const rows = await server.db.query(
      `select email as given, email_folded as folded, updated_at from profiles where project_id = $1 union all
       select title, title_folded, updated_at from funnels where project_id = $1`,
      [project.id],
    )
    assert.equal(rows.length, 2 * texts.length)
    for (const { given, folded, updated_at } of rows) {
      assert.equal(folded, fold(given!), given!)
      assert.equal(updated_at, '2026-01-02 03:04:05.000006+00')
    }
  })

  test('is found in either case, and not by the letters that it was folded to', async () => {
    assert.deepEqual(await found('profiles', 'email', 'STRAẞE-😀'), [0])
    assert.deepEqual(await found('profiles', 'email', 'strasse-😀'), [])
    assert.deepEqual((await found('funnels', 'title', 'straẞe')).sort(), [0])
    assert.deepEqual(await found('funnels', 'title', 'strasse'), [])
    assert.deepEqual(await found('profiles', 'email', 'ŉσΣ'), [3])
  })
})
