// PostgreSQL of either shard crashes at each step of a move and comes back: the same command begins anew or finishes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { giveUpBroken } from '../../src/operations/shards/give-up.ts'
import { assertNotServedTwice } from './not-twice.ts'
import { SIDES, type Side, setUpPair } from './pair.ts'

const { clusters, between, moveWhile, assertServedBy } = setUpPair()

// 'Waiting for the directories' is after the commit on the new shard.
const STEPS = ['Copying', 'Stopping requests', 'Locking', 'Copying the rest', 'Waiting for the directories']
let here: Side = 'a'
let there: Side = 'b'

for (const [n, step] of STEPS.entries()) {
  for (const role of ['old', 'new'] as const) {
    test(`the ${role} shard crashes at "${step}"`, async () => {
      const crashing = clusters[role === 'old' ? here : there]
      const crash = async () => {
        await crashing.stop('SIGQUIT')
        await crashing.start()
      }
      await assert.rejects(moveWhile(step, crash, [here, there]), (error: Error) => {
        assert.doesNotMatch(error.message, /Bug/)
        return true
      })
      await assertNotServedTwice(clusters)
      const isThere = step === 'Waiting for the directories'
      // In turn by the command itself, or given up first.
      if (!isThere && n % 2 === 1) {
        await giveUpBroken(between(here, there))
        await assertServedBy(here)
      } else if (isThere) await assert.rejects(giveUpBroken(between(here, there)), /is on . already/)
      await moveWhile('', async () => {}, [here, there])
      ;[here, there] = [there, here]
      await assertServedBy(here)
      for (const side of SIDES) await clusters[side].query('select 1')
    })
  }
}
