// Moves that wait for their replication slot, which PostgreSQL creates when all transactions that write have ended.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import pg from 'pg'
import { giveUpBroken } from '../../src/operations/shards/give-up.ts'
import { move } from '../../src/operations/shards/move.ts'
import { spawnTundish } from '../support/cli.ts'
import type { Cluster } from '../support/cluster.ts'
import { until } from '../support/time.ts'
import { SIDES, setUpPair } from './pair.ts'

const { settings, clusters, between, numberOf, assertServedBy, assertNothingLeft } = setUpPair()

/** A transaction that has written, for which a replication slot that is created on its server waits. */
async function writeOn({ url }: Cluster): Promise<pg.Client> {
  const writing = new pg.Client({ connectionString: url })
  await writing.connect()
  await writing.query('begin')
  await writing.query('select pg_current_xact_id()')
  return writing
}

const isWaiting = async ({ query }: Cluster) =>
  (
    await query(
      `select 1 from pg_stat_activity where query ilike '%create%replication%slot%' and wait_event = 'transactionid'`,
    )
  ).length > 0

test('a mover that is killed while it waits has no locks: the move can be given up at once', async () => {
  const writing = await writeOn(clusters.a)
  const words = ['shards', 'move', 'shop', '--in', settings, '--from', 'a', '--to', 'b']
  const mover = spawnTundish(words, {}, 'ignore')
  await until('the slot to be waited for', () => isWaiting(clusters.a))
  mover.kill('SIGKILL')
  await once(mover, 'close')
  await until('the move to be given up', () =>
    giveUpBroken(between('a', 'b')).then(
      () => true,
      () => false,
    ),
  )
  await assertServedBy('a')
  await writing.end()
})

test('two organizations change their shards at the same time', async () => {
  const writing = await Promise.all(SIDES.map((side) => writeOn(clusters[side])))
  const say = () => {}
  const moves = Promise.all([
    move({ ...between('a', 'b'), say }),
    move({ ...between('b', 'a'), organization: 'other', say }),
  ])
  for (const side of SIDES) await until(`the slot on ${side} to be waited for`, () => isWaiting(clusters[side]))
  for (const one of writing) await one.end()
  await moves
  assert.equal(await numberOf('a', `profiles where project_id = 'other-app'`), 4)
  assert.equal(await numberOf('b', `profiles where project_id = 'shop-app'`), 4)
  for (const side of SIDES) await assertNothingLeft(side)
})
