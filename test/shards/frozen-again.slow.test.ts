// A mover that is frozen and continues after the move was given up, after its locks were lost, or never.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { giveUpBroken } from '../../src/operations/shards/give-up.ts'
import { move } from '../../src/operations/shards/move.ts'
import { cutOff, freeze, untilDisconnected } from './frozen-mover.ts'
import { assertNotServedTwice } from './not-twice.ts'
import { type Side, setUpPair } from './pair.ts'

const { settings, clusters, between, numberOf, assertServedBy } = setUpPair()

const moveAgain = (from: Side, to: Side) => move({ ...between(from, to), say: () => {} })
const giveUp = (from: Side, to: Side) => giveUpBroken(between(from, to))

const BUSY = /"shop" is being moved by another process/
let here: Side = 'a'
let there: Side = 'b'
const turn = () => {
  ;[here, there] = [there, here]
}

test('frozen when its keys have ended: after the move was given up it changes nothing', async () => {
  const frozen = await freeze(settings, 'when its keys have ended', here, there)
  await cutOff(clusters[here], clusters[there])
  await giveUp(here, there)
  await assertServedBy(here)
  assert.equal((await frozen.end('SIGCONT')).code, 1)
  await assertServedBy(here)
})

test('killed while it is frozen: what was under way is undone, and the move is begun anew', async () => {
  const frozen = await freeze(settings, 'before the commit on the new shard', here, there)
  await frozen.end('SIGKILL')
  await untilDisconnected(clusters[here], clusters[there])
  await moveAgain(here, there)
  turn()
  await assertServedBy(here)
})

test('its locks on the old shard are lost before the commit: nothing begins there, and the next mover removes the old rows', async () => {
  const frozen = await freeze(settings, 'before the commit on the new shard', here, there)
  await cutOff(clusters[here])
  await assert.rejects(moveAgain(here, there), BUSY)
  await assert.rejects(giveUp(here, there), BUSY)
  await assert.rejects(clusters[here].query(`select begin_write('shop-app')`), /"shop" is being moved to another shard/)
  const { code, errors } = await frozen.end('SIGCONT')
  assert.equal(code, 1)
  assert.match(errors, /The move of "shop" was broken off .* Run the same command again/)
  await assertNotServedTwice(clusters)
  await assert.rejects(clusters[here].query(`select begin_write('shop-app')`), /"shop" is being moved to another shard/)
  await assert.rejects(giveUp(here, there), new RegExp(`"shop" is on ${there} already`))
  await moveAgain(here, there)
  turn()
  await assertServedBy(here)
})

test('the new shard has lost it before the old rows are deleted: they stay, and the old shard serves it again', async () => {
  const frozen = await freeze(settings, 'after the commit on the new shard', here, there)
  // As a restore of the other shard from a backup made before.
  await clusters[there].query(`delete from instance where name = 'moved shop'`)
  const { code, errors } = await frozen.end('SIGCONT')
  assert.equal(code, 1)
  assert.match(errors, new RegExp(`"shop" is no longer on ${there}: its rows stay where they were`))
  assert.equal(await numberOf(here, `profiles where project_id = 'shop-app'`), 4)
  assert.equal(await numberOf(here, `secret_keys where organization_id = 'shop' and expires_at is null`), 2)
})
