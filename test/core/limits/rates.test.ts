// How fast a key may send: at one process and at several, and as the operator sets it.
import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openApp } from '../../../src/app.ts'
import { runOperation } from '../../../src/cli/commands/operations.ts'
import { readConfig } from '../../../src/config.ts'
import { openRateLimiter } from '../../../src/core/limits/rate.ts'
import { openLog } from '../../../src/lib/log.ts'
import { startServer } from '../../../src/server/listeners/server.ts'
import { countOf, startTestServer, times } from '../../support/server.ts'
import { HandClock, until } from '../../support/time.ts'

const WAIT = /^[1-9][0-9]*$/

const server = await startTestServer({ RATE_LIMIT: '2', RATE_LIMIT_BURST: '30' })
after(() => server.stop())
const project = await server.project()

describe('the rate of a key', () => {
  test('429 with Retry-After and RateLimit beyond the burst, and 200 again as it says', async () => {
    const first = await project.get('/funnels')
    assert.equal(first.headers['ratelimit-policy'], '"key";q=30;w=15')
    assert.equal(first.headers.ratelimit, '"key";r=29;t=1')
    const begun = performance.now()
    const responses = await Promise.all(times(200, () => project.get('/funnels')))
    const seconds = (performance.now() - begun) / 1000
    const refused = responses.filter(({ status }) => status === 429)
    assert.ok(refused.length > 0, 'none was refused')
    assert.equal(countOf(responses, 200) + refused.length, 200)
    // The first request took one of the burst.
    assert.ok(countOf(responses, 200) <= 30 + 2 * seconds, `${countOf(responses, 200)} in ${seconds} s`)
    for (const { headers, body } of refused) {
      assert.match(headers['retry-after'] ?? '', WAIT)
      assert.match(String(headers.ratelimit), /^"key";r=0;t=[1-9][0-9]*$/)
      assert.match(body.message, /^This key may send 2 requests a second: try again in 1 second\.$/)
    }
    await sleep(Number(refused.at(-1)!.headers['retry-after']) * 1000)
    assert.equal((await project.get('/funnels')).status, 200)
  })

  test('another key of the same server has its own', async () => {
    const other = await server.project()
    await Promise.all(times(60, () => project.get('/funnels')))
    const responses = await Promise.all(times(30, () => other.get('/funnels')))
    assert.equal(countOf(responses, 200), 30)
  })

  test('the operator sets it for a project and an organization, and it holds within a second', async () => {
    const mine = await server.project()
    const set = (id: string, params: Record<string, string>, rate_limit: string) =>
      runOperation(id === 'setProjectRateLimit' ? 'project' : 'org', id, server.app, { params, body: { rate_limit } })
    await mine.get('/funnels')
    const project_id = mine.id
    assert.deepEqual(await set('setProjectRateLimit', { project_id }, '5/2'), { rate_limit: '5/2' })
    await sleep(1100)
    assert.equal((await mine.get('/funnels')).headers['ratelimit-policy'], '"key";q=2;w=1')
    await set('setProjectRateLimit', { project_id }, 'off')
    await sleep(1100)
    const free = await Promise.all(times(60, () => mine.get('/funnels')))
    assert.equal(countOf(free, 200), 60)
    assert.equal(free[0]!.headers['ratelimit-policy'], undefined)
    const organization_id = mine.organizationId
    assert.deepEqual(await set('setOrganizationRateLimit', { organization_id }, '7'), { rate_limit: '7/35' })
    await assert.rejects(set('setProjectRateLimit', { project_id }, '0'), /must be requests per second such as 200/)
    await assert.rejects(set('setProjectRateLimit', { project_id: 'nobody' }, '5'), /There is no project "nobody"/)
  })
})

describe('the rate of a key at several processes', () => {
  test('two servers together admit one rate over several seconds', async () => {
    const first = await startTestServer({ RATE_LIMIT: '100', RATE_LIMIT_BURST: '100' })
    const app = await openApp(readConfig(first.env), { log: openLog('silent') })
    const second = await startServer(app, { worker: false })
    try {
      const { key } = await first.project()
      const stop = performance.now() + 4000
      const begun = performance.now()
      let asked = 0
      const hammer = async (url: string) => {
        let admitted = 0
        while (performance.now() < stop) {
          asked += 1
          const { status } = await fetch(`${url}/public/v1/funnels`, { headers: { 'Service-Secret': key } })
          if (status === 200) admitted += 1
          // Three hundred a second at each, three times what is allowed in all.
          await sleep(10)
        }
        return admitted
      }
      const admitted = (await Promise.all(times(6, (n) => hammer(n % 2 ? first.url : second.url)))).reduce(
        (a, b) => a + b,
      )
      const seconds = (performance.now() - begun) / 1000
      // One burst at each, then the rate with a sixteenth for each, and what two processes hear late.
      const most = 2 * 100 + 100 * seconds * (1 + 2 / 16) + 2 * 100 * 0.5
      assert.ok(admitted <= most, `${admitted} of at most ${most}`)
      // A busy machine asks for less than the rate.
      assert.ok(admitted >= Math.min(asked, 100 * seconds) * 0.8, `only ${admitted} of ${asked} in ${seconds} s`)
      // Without sharing, the two would have admitted twice the rate.
      assert.ok(admitted < 2 * 100 * seconds * 0.95 + 100, `${admitted} is no sharing`)
    } finally {
      await second.stop()
      await app.close()
      await first.stop()
    }
  })

  test('a database clock that is set back blocks no key', async () => {
    const server = await startTestServer({ RATE_LIMIT: '10', RATE_LIMIT_BURST: '20' })
    try {
      const id = '00000000-0000-7000-8000-000000000000'
      const spend = async (seconds: number) =>
        Number((await server.db.query('select spend($1, $2, 12) as s', [id, seconds]))[0]!.s)
      assert.ok((await spend(1)) <= 1)
      assert.ok((await spend(100)) <= 12, 'never more than the most')
      await server.db.query(`update key_usage set busy_until = busy_until + interval '1 hour'`)
      const afterJump = await spend(1)
      assert.ok(afterJump <= 1 && afterJump > 0.9, String(afterJump))
    } finally {
      await server.stop()
    }
  })
})

describe('a process whose keys send nothing', () => {
  /** Each sleep lasts until the next `wake`; of a sleep that is aborted already, only that it was asked for is known. */
  class SleepingClock extends HandClock {
    isAsleep = false
    isStopped = false
    wake = () => {}
    override sleep = (ms: number, signal?: AbortSignal) => {
      if (signal?.aborted) {
        this.isStopped = true
        return Promise.resolve()
      }
      this.isAsleep = true
      return new Promise<void>((resolve) => {
        this.wake = () => {
          this.isAsleep = false
          this.advance(ms)
          resolve()
        }
        signal?.addEventListener('abort', () => resolve(), { once: true })
      })
    }
  }

  test('has no timer from the moment when every key has its full burst again until the next request', async () => {
    const server = await startTestServer()
    const clock = new SleepingClock()
    const limiter = openRateLimiter({ db: server.db, clock, log: openLog('silent') })
    const key = '00000000-0000-7000-8000-000000000001'
    try {
      for (let round = 0; round < 2; round += 1) {
        clock.isStopped = false
        for (let n = 0; n < 20; n += 1) limiter.take(key, { rate: 10, burst: 50 })
        // Twenty requests are ten a second for two seconds, which is eight times a quarter of one.
        for (let woken = 0; !clock.isStopped; woken += 1) {
          assert.ok(woken < 20, 'The process is woken again and again.')
          await until('the process to sleep', () => clock.isAsleep || clock.isStopped)
          if (clock.isAsleep) clock.wake()
        }
        const [row] = await server.db.query(`select 1 from key_usage where key_id = $1`, [key])
        assert.ok(row, 'What the key used was not shared.')
        await server.db.query('delete from key_usage')
      }
    } finally {
      await limiter.close()
      await server.stop()
    }
  })
})
