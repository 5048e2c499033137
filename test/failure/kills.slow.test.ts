// The database killed and started again and again under reads and charges: TUNDISH_KILLS times, three by default.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openScene, untilMore } from './trouble.ts'

const KILLS = Number(process.env['TUNDISH_KILLS'] ?? 3)

describe('the database', { timeout: 60_000 + KILLS * 30_000 }, () => {
  test(`killed ${KILLS} times: every call has a response or a clean 503, ledger and orders match`, async () => {
    const scene = await openScene()
    try {
      const { cluster, survives } = scene
      const received = await survives(async (soFar) => {
        for (let kill = 0; kill < KILLS; kill++) {
          const noticed = untilMore(soFar, '503', 2)
          await cluster.stop('SIGQUIT')
          await noticed
          await cluster.start()
          // Sometimes it hardly stands when it is killed again.
          await (kill % 2 === 0 ? Promise.all([sleep(1500), untilMore(soFar, '200', 41)]) : sleep(100))
        }
      })
      assert.ok(received.statuses['200']! > KILLS * 20 && received.statuses['503']! > KILLS)
    } finally {
      await scene.close()
    }
  })
})
