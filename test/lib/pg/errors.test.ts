// Which errors of PostgreSQL mean that the database is away, so that a caller may try again.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import pg from 'pg'
import { openDb } from '../../../src/lib/pg/db.ts'
import { isUnavailable, sqlState } from '../../../src/lib/pg/errors.ts'
import { setUpDb } from '../../support/database.ts'

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
      await query('set local idle_in_transaction_session_timeout = 50')
      const first = query('select pg_sleep(0.2)')
      await new Promise(setImmediate)
      const second = query('select 1')
      // The process stands still: then the result of the first and the end of the connection arrive together.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_000)
      await Promise.all([first, second])
    }),
  )
  assert.deepEqual([sqlState(error), isUnavailable(error)], ['25P03', true])
})
