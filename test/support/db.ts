// A fresh database, opened as the program opens it.
import { after, before } from 'node:test'
import { type Db, type DbOptions, openDb } from '../../src/lib/pg/db.ts'
import { type FreshDatabase, freshDatabase } from './postgres.ts'

/** For the tests of a file or a `describe`: a fresh database, opened with these options. */
export function setUpDb(options: Partial<DbOptions> = {}) {
  let database: FreshDatabase
  let db: Db
  before(async () => {
    database = await freshDatabase()
    db = openDb({ url: database.url, applicationName: 'test', ...options })
  })
  after(async () => {
    await db.close()
    await database.drop()
  })
  return {
    get url() {
      return database.url
    },
    get db() {
      return db
    },
  }
}
