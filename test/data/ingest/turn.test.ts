// The turn of an import: the connection that has it is kept awake, also while a statement on it takes long.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turnOfLoop } from 'node:timers/promises'
import { releaseTurn, tryTurn } from '../../../src/data/ingest/turn.ts'
import type { Query } from '../../../src/lib/pg/types.ts'
import { holding, setUpDb } from '../../support/database.ts'

const database = setUpDb()

test('a statement that takes minutes has one statement behind it, of which pg does not warn', async (t) => {
  const { db } = database
  const warnings: string[] = []
  const note = ({ message }: Error) => warnings.push(message)
  process.on('warning', note)
  t.after(() => process.off('warning', note))
  const release = await holding(db, 'select pg_advisory_xact_lock(1)', [])
  const connection = await db.connect()
  const sent: unknown[] = []
  const query: Query = (statement, params) => {
    sent.push(statement)
    return connection.query(statement, params)
  }
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  assert.ok(await tryTurn(query, 'import'))
  const slow = query('select pg_advisory_lock(1)')
  const wakes = () => sent.filter((statement) => statement === 'select 1').length
  for (let n = 0; n < 4; n += 1) {
    t.mock.timers.tick(60_000)
    await turnOfLoop()
  }
  const behind = wakes()
  await release()
  await slow
  await query('select 2')
  t.mock.timers.tick(60_000)
  const later = wakes()
  await releaseTurn(connection)
  assert.deepEqual([behind, later, warnings], [1, 2, []])
})

test('a connection stays awake after a statement was refused, and not after it is closed', async (t) => {
  const connection = await database.db.connect()
  const { query } = connection
  let wakes = 0
  const counting: Query = (statement, params) => {
    if (statement === 'select 1') wakes += 1
    return query(statement, params)
  }
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  assert.ok(await tryTurn(counting, 'import'))
  const minutes = async (count: number) => {
    for (let n = 0; n < count; n += 1) {
      t.mock.timers.tick(60_000)
      // Behind that statement, on the same connection.
      await query('select 2').catch(() => {})
      await turnOfLoop()
    }
    return wakes
  }
  await query('begin')
  await query('select 1 / 0').catch(() => {})
  assert.equal(await minutes(1), 1)
  await query('rollback')
  assert.equal(await minutes(1), 2)
  await releaseTurn(connection)
  assert.equal(await minutes(3), 3)
})
