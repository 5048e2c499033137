// Titles and e-mail addresses are found by simple case folding, by which ß is not ss.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { fold } from '../../../src/lib/text.ts'
import { insert } from '../../support/data.ts'
import { startTestServer } from '../../support/server.ts'

const texts = ['Straße-😀', 'ẞ', 'İ i', 'ŉΣς']

const server = await startTestServer()
after(() => server.stop())
const project = await server.project()
await insert(server.db, project, {
  funnels: texts.map((title, n) => ({ id: `f${n}`, title, title_folded: fold(title) })),
  profiles: texts.map((email, n) => ({ id: `p${n}`, email, email_folded: fold(email) })),
})

describe('text with letters that full folding would make several of', () => {
  const found = async (list: string, filter: string, value: string) =>
    (await project.get(`/${list}`, { [`filter[${filter}]`]: value, limit: '100' })).body.data.map(
      ({ id }: { id: string }) => Number(id.slice(1)),
    )

  test('is found in either case, and not by the letters that it was folded to', async () => {
    assert.deepEqual(await found('profiles', 'email', 'STRAẞE-😀'), [0])
    assert.deepEqual(await found('profiles', 'email', 'strasse-😀'), [])
    assert.deepEqual((await found('funnels', 'title', 'straẞe')).sort(), [0])
    assert.deepEqual(await found('funnels', 'title', 'strasse'), [])
    assert.deepEqual(await found('profiles', 'email', 'ŉσΣ'), [3])
  })
})
