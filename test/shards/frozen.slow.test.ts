// A mover that is frozen at a step and continues later: nobody else moves meanwhile, or else it changes nothing any more.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { giveUpBroken } from '../../src/operations/shards/give-up.ts'
import { move } from '../../src/operations/shards/move.ts'
import { cutOff, freeze, STEPS, type Step } from './frozen-mover.ts'
import { assertNotServedTwice } from './not-twice.ts'
import { type Side, setUpPair } from './pair.ts'

const { settings, clusters, between, assertServedBy } = setUpPair()

const moveAgain = (from: Side, to: Side) => move({ ...between(from, to), say: () => {} })
const giveUp = (from: Side, to: Side) => giveUpBroken(between(from, to))

const BUSY = /"shop" is being moved by another process/
let here: Side = 'a'
let there: Side = 'b'
const turn = () => {
  ;[here, there] = [there, here]
}

for (const step of Object.keys(STEPS) as Step[]) {
  test(`frozen ${step}: another mover is refused; once it is cut off, another one moves, and it changes nothing`, async () => {
    const frozen = await freeze(settings, step, here, there)
    await assertNotServedTwice(clusters)
    await assert.rejects(moveAgain(here, there), BUSY)
    await assert.rejects(giveUp(here, there), BUSY)
    await cutOff(clusters[here], clusters[there])
    await assertNotServedTwice(clusters)
    await moveAgain(here, there)
    turn()
    await assertServedBy(here)
    const { code, errors } = await frozen.end('SIGCONT')
    assert.equal(code, 1, errors)
    await assertServedBy(here)
  })
}
