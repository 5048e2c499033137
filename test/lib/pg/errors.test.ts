// Which errors of PostgreSQL mean that the database is away, so that a caller may try again.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import pg from 'pg'
import { Client } from '../../../src/lib/pg/client.ts'
import { openDb } from '../../../src/lib/pg/db.ts'
import { isPasswordRefused, isUnavailable, sqlState } from '../../../src/lib/pg/errors.ts'
import { wireOf } from '../../../src/lib/pg/protocol.ts'
import { setUpDb } from '../../support/database.ts'
import { titled } from '../../support/titled.ts'

const fresh = setUpDb({ connections: 1 })

const failure = (work: Promise<unknown>) =>
  work.then(
    () => assert.fail('no error'),
    (error: unknown) => error,
  )

test('not a statement with the wrong number of parameters', async () => {
  const text = 'select $1::int + $2::int as n'
  const ways = [
    () => fresh.db.query(text, ['1']),
    () => fresh.db.read({ text }, ['1']),
    () => fresh.db.tx((query) => query(text, ['1'])),
  ]
  for (const ask of ways) {
    const error = await failure(ask())
    assert.deepEqual([sqlState(error), isUnavailable(error)], ['08P01', false])
  }
})

test('a connection that is ended for a violation of the protocol, which poolers give as the reason', async () => {
  const client = new pg.Client(fresh.url)
  await client.connect()
  const ended = once(client, 'error')
  client.on('error', () => {})
  const { stream } = (client as unknown as { connection: { stream: NodeJS.WritableStream } }).connection
  stream.write('no message of PostgreSQL')
  const [error] = await ended
  assert.deepEqual([sqlState(error), isUnavailable(error)], ['08P01', true])
})

test('a connection that an administrator ended', async () => {
  const other = openDb({ url: fresh.url, applicationName: 'victim', connections: 1 })
  const asked = failure(other.query('select pg_sleep(60)'))
  const end = `select pg_terminate_backend(pid) as is_ended from pg_stat_activity
    where application_name = 'victim' and query like '%pg_sleep%' and state = 'active'`
  while ((await fresh.db.query(end)).length === 0);
  const error = await asked
  assert.deepEqual([sqlState(error), isUnavailable(error)], ['57P01', true])
  await other.close()
})

test('a transaction that was ended because its process was frozen', async () => {
  const error = await failure(
    fresh.db.tx(async (query) => {
      const [own] = await query('select pg_backend_pid() as pid')
      await query('set local idle_in_transaction_session_timeout = 50')
      const first = query('select pg_sleep(0.2)')
      await new Promise(setImmediate)
      const second = query('select 1')
      // The process stands still: then the result of the first and the end of the connection arrive together.
      execFileSync('sh', ['-c', `while kill -0 ${own!.pid} 2>/dev/null; do sleep 0.1; done`])
      await Promise.all([first, second])
    }),
  )
  assert.deepEqual([sqlState(error), isUnavailable(error)], ['25P03', true])
})

const SERVER = process.env['TUNDISH_TEST_DATABASE'] ?? ''
const noPassword = URL.parse(SERVER)?.password === '' ? 'the server of the tests requires no password' : undefined

test(titled('an address without its password: the connection is closed', noPassword), {
  skip: noPassword,
}, async () => {
  const client = new Client({ connectionString: Object.assign(new URL(fresh.url), { password: '' }).href })
  client.on('error', () => {})
  const error = await failure(client.connect())
  assert.deepEqual([isPasswordRefused(error), wireOf(client).stream.destroyed], [true, true])
})

test('a server that cannot be connected to, whatever the system says', async () => {
  const ways: Record<string, () => Promise<unknown>> = {
    'a socket in a file': () => new pg.Client({ host: import.meta.filename }).connect(),
    'a socket whose path is too long': () => new pg.Client({ host: `/${'x'.repeat(200)}` }).connect(),
    'a host with two addresses, the first of which is none': () => {
      const both = ['255.255.255.255', '127.0.0.1'].map((address) => ({ address, family: 4 }))
      return once(connect({ host: 'db', port: 1, lookup: (_host, _options, done) => done(null, both) }), 'connect')
    },
  }
  for (const [way, connected] of Object.entries(ways)) assert.ok(isUnavailable(await failure(connected())), way)
})
