// A database with the demo and its figures: made once in a run of the tests, and copied for each file that needs it.
import { createHash } from 'node:crypto'
import { prepareDemo } from '../../../src/cli/demo/demo.ts'
import { followAll } from '../../../src/data/figures/follow.ts'
import { openDb } from '../../../src/lib/pg/db.ts'
import type { ServerOptions } from '../../../src/server/listeners/server.ts'
import { type FreshDatabase, freshDatabase, runStatement } from '../../support/postgres.ts'
import { startTestServer, type TestServer } from '../../support/server.ts'

const LOCK = 7486

const ALONE: ServerOptions = { worker: false }

/** Starts a server on a copy of the demo, by default without workers. */
export async function startDemoServer(env: Record<string, string> = {}, options = ALONE): Promise<TestServer> {
  const database = await freshDatabase({ url: await theDemo() })
  const server = await serve(database, env, options)
  return {
    ...server,
    async stop() {
      await server.stop()
      await database.drop()
    },
  }
}

/** The URL of the database that is copied; the first file that asks makes it, and the others wait. */
async function theDemo(): Promise<string> {
  const url = new URL(process.env['TUNDISH_TEST_DATABASE']!)
  const name = `${process.env['TUNDISH_TEST_TEMPLATE']}_demo`
  const locks = openDb({ url: url.href, applicationName: 'test' })
  const { query, release } = await locks.connect()
  try {
    await query('set statement_timeout = 0')
    await query('select pg_advisory_lock($1)', [LOCK])
    const made = await query('select 1 from pg_database where datname = $1', [name])
    if (made.length === 0) await make(name)
  } finally {
    release(true)
    await locks.close()
  }
  return Object.assign(url, { pathname: `/${name}` }).href
}

async function make(name: string): Promise<void> {
  const database = await freshDatabase()
  const server = await serve(database, {})
  await prepareDemo(server.app, { url: server.url, adminUrl: server.adminUrl })
  await followAll(server.db)
  await server.stop()
  // Its final name says that it is complete.
  const made = new URL(database.url).pathname.slice(1)
  await runStatement(process.env['TUNDISH_TEST_DATABASE']!, `alter database ${made} rename to ${name}`)
}

/** The secrets of all copies are sealed with the same key. */
function serve({ url }: FreshDatabase, env: Record<string, string>, options = ALONE): Promise<TestServer> {
  const key = createHash('sha256').update(process.env['TUNDISH_TEST_TEMPLATE']!).digest('base64')
  return startTestServer({ DATABASE_URL: url, MASTER_KEY: key, ...env }, options)
}
