// How the database is reached: settings of the address beside ours.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Db, openDb } from '../../src/lib/db.ts'
import { freshDatabase } from '../support/postgres.ts'

describe('a database address with settings of its own', () => {
  let database: Awaited<ReturnType<typeof freshDatabase>>
  let db: Db
  before(async () => {
    database = await freshDatabase()
    const separator = database.url.includes('?') ? '&' : '?'
    const options = encodeURIComponent('-c work_mem=5MB -c TimeZone=Asia/Tokyo')
    db = openDb({ url: `${database.url}${separator}options=${options}`, applicationName: 'test' })
  })
  after(async () => {
    await db.close()
    await database.drop()
  })

  test('has both, and ours where they differ: times stay UTC', async () => {
    const settings = 'work_mem TimeZone jit statement_timeout'.split(' ')
    const shown =
      "select string_agg(current_setting(name), ' ' order by place) as all from unnest($1::text[]) with ordinality as s (name, place)"
    const expected = '5MB UTC off 30s'
    assert.equal((await db.query(shown, [settings]))[0]?.all, expected)
    assert.deepEqual(await db.read({ text: shown }, [settings]), [[expected]])
  })
})
