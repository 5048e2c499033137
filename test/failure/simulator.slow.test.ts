// A payment provider that is away: charges are told as processing or refused with 503, and all are settled afterwards.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openScene, untilMore } from './trouble.ts'

describe('the provider', { timeout: 120_000 }, () => {
  test('away for a while: reads go on, nothing is lost, nothing charged twice', async () => {
    const scene = await openScene()
    try {
      const { billing, survives } = scene
      const received = await survives(async (soFar) => {
        const many = untilMore(soFar, '200', 101)
        await billing.simulator.stop()
        await Promise.all([sleep(4000), untilMore(soFar, '200', 10)])
        await billing.simulator.start()
        await many
      })
      assert.ok(received.statuses['200']! > 100)
    } finally {
      await scene.close()
    }
  })
})
