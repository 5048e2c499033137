// Wrong keys wait longer and longer, by the address that they come from.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import { createUnauthorizedThrottle } from '../../../src/core/limits/unauthorized-throttle.ts'
import { countOf, ok, startTestServer, times } from '../../support/server.ts'
import { HandClock } from '../../support/time.ts'

const WAIT = /^[1-9][0-9]*$/

describe('wrong keys', () => {
  test('beyond ten seconds’ worth are delayed, each longer than the one before, then refused with 429', async () => {
    const clock = new HandClock()
    const waits: number[] = []
    clock.sleep = async (ms) => void waits.push(ms)
    const throttle = createUnauthorizedThrottle(clock, 2)
    for (const _ of times(20, (n) => n)) assert.equal(await throttle.delay('192.0.2.1'), undefined)
    assert.deepEqual(waits, [])
    for (const _ of times(11, (n) => n)) await throttle.delay('192.0.2.1')
    assert.deepEqual(waits, [500, 1000, 1500, 2000, 2500, 3000, 3500, 4000, 4500, 5000])
    assert.equal(await throttle.delay('192.0.2.1'), 5500)
    assert.equal(await throttle.delay('192.0.2.2'), undefined)
    assert.equal(waits.length, 10)
  })

  test('of one IPv6 /64 count as from one address, however it is written', async () => {
    const clock = new HandClock()
    const throttle = createUnauthorizedThrottle(clock, 1)
    const addresses = ['2001:db8:0:7::1', '2001:DB8:0:7:ffff:1:2:3', '2001:db8:0:07::']
    for (const n of times(15, (n) => n)) assert.equal(await throttle.delay(addresses[n % 3]!), undefined)
    assert.equal(await createUnauthorizedThrottle(clock, 1).delay('2001:db8:0:8::1'), undefined)
  })

  test('are slowed by the address that a trusted proxy names, and a valid key never is', async () => {
    const server = await startTestServer({
      UNAUTHORIZED_RATE: '1',
      TRUST_PROXY: '127.0.0.1',
      MAX_CONCURRENT_PER_KEY: '3',
    })
    try {
      const project = await server.project()
      const wrong = (address: string) =>
        server.api('/funnels', {
          key: `secret_${randomBytes(8).toString('hex')}`,
          headers: ['X-Forwarded-For', address],
        })
      const begun = performance.now()
      const responses = await Promise.all(times(60, () => wrong('192.0.2.1')))
      const seconds = (performance.now() - begun) / 1000
      assert.ok(seconds > 3)
      // Fifteen, and one more for each second that has passed.
      assert.ok(
        countOf(responses, 401) >= 15 && countOf(responses, 401) <= 16 + seconds,
        `${countOf(responses, 401)} in ${seconds} s`,
      )
      assert.equal(countOf(responses, 401) + countOf(responses, 429), 60)
      const refused = responses.find(({ status }) => status === 429)!
      assert.match(refused.headers['retry-after'] ?? '', WAIT)
      assert.match(refused.body.message, /without a valid key came from this address: try again in [0-9]+ seconds\.$/)
      assert.equal((await wrong('192.0.2.2')).status, 401)
      await ok(server.api('/funnels', { key: project.key, headers: ['X-Forwarded-For', '192.0.2.1'] }))
    } finally {
      await server.stop()
    }
  })
})
