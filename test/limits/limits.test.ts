// Limits of callers: how fast keys may send, over all processes; how long wrong keys wait; sizes, slowness, connections.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openApp } from '../../src/app.ts'
import { runOperation } from '../../src/commands/operations.ts'
import { readConfig } from '../../src/config.ts'
import { openLog } from '../../src/lib/log.ts'
import { createUnauthorizedThrottle } from '../../src/limits/unauthorized-throttle.ts'
import { startServer } from '../../src/server/server.ts'
import { until } from '../support/cluster.ts'
import { BASICS, insert } from '../support/data.ts'
import { HandClock } from '../support/hand-clock.ts'
import { type Answer, type Project, startTestServer, type TestServer } from '../support/server.ts'

// No machine is so busy that a connection is closed later.
const PATIENCE_MS = 60_000
const WAIT = /^[1-9][0-9]*$/
const times = <T>(n: number, make: (n: number) => T): T[] => Array.from({ length: n }, (_none, index) => make(index))
const count = (answers: Answer[], status: number) => answers.filter((answer) => answer.status === status).length

describe('the rate of a key', () => {
  let server: TestServer
  let project: Project
  before(async () => {
    server = await startTestServer({ RATE_LIMIT: '20', RATE_LIMIT_BURST: '30' })
    project = await server.project()
  })
  after(() => server.stop())

  test('429 with Retry-After and RateLimit beyond the burst, and 200 again as it says', async () => {
    const first = await project.get('/funnels')
    assert.equal(first.headers['ratelimit-policy'], '"key";q=30;w=2')
    assert.equal(first.headers.ratelimit, '"key";r=29;t=1')
    const begun = performance.now()
    const answers = await Promise.all(times(200, () => project.get('/funnels')))
    const seconds = (performance.now() - begun) / 1000
    const refused = answers.filter(({ status }) => status === 429)
    assert.ok(refused.length > 0, 'none was refused')
    assert.equal(count(answers, 200) + refused.length, 200)
    // The first request took one of the burst.
    assert.ok(count(answers, 200) <= 30 + 20 * seconds, `${count(answers, 200)} in ${seconds} s`)
    for (const { headers, body } of refused) {
      assert.match(headers['retry-after'] ?? '', WAIT)
      assert.match(String(headers.ratelimit), /^"key";r=0;t=[1-9][0-9]*$/)
      assert.match(body.message, /^This key may send 20 requests a second: try again in 1 second\.$/)
    }
    await sleep(Number(refused.at(-1)!.headers['retry-after']) * 1000)
    assert.equal((await project.get('/funnels')).status, 200)
  })

  test('another key of the same server has its own', async () => {
    const other = await server.project()
    await Promise.all(times(60, () => project.get('/funnels')))
    const answers = await Promise.all(times(30, () => other.get('/funnels')))
    assert.equal(count(answers, 200), 30)
  })

  test('the operator sets it for a project and an organization, and it holds within a second', async () => {
    const mine = await server.project()
    const set = (id: string, params: Record<string, string>, rate_limit: string) =>
      runOperation(id, server.app, { params, body: { rate_limit } })
    await mine.get('/funnels')
    const project_id = mine.id
    assert.deepEqual(await set('setProjectRateLimit', { project_id }, '5/2'), { rate_limit: '5/2' })
    await sleep(1100)
    assert.equal((await mine.get('/funnels')).headers['ratelimit-policy'], '"key";q=2;w=1')
    await set('setProjectRateLimit', { project_id }, 'off')
    await sleep(1100)
    const free = await Promise.all(times(60, () => mine.get('/funnels')))
    assert.equal(count(free, 200), 60)
    assert.equal(free[0]!.headers['ratelimit-policy'], undefined)
    const organization_id = mine.organizationId
    assert.deepEqual(await set('setOrganizationRateLimit', { organization_id }, '7'), { rate_limit: '7/35' })
    await assert.rejects(set('setProjectRateLimit', { project_id }, '0'), /must be requests per second such as 200/)
    await assert.rejects(set('setProjectRateLimit', { project_id: 'nobody' }, '5'), /There is no project "nobody"/)
  })
})

describe('the rate of a key at several processes', () => {
  test('in the long run it is one rate, and what was too much is waited for', async () => {
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

  test('a clock set back locks nobody out', async () => {
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

describe('wrong keys', () => {
  test('wait, beyond ten seconds’ worth, each longer than the one before; then 429', async () => {
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

  test('one machine owns a whole /64 of IPv6, however it is written', async () => {
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
      const answers = await Promise.all(times(30, () => wrong('192.0.2.1')))
      // Fifteen, and one more for each second that passed meanwhile.
      assert.ok(count(answers, 401) >= 15 && count(answers, 401) <= 17)
      assert.equal(count(answers, 401) + count(answers, 429), 30)
      assert.ok(performance.now() - begun > 3000)
      const refused = answers.find(({ status }) => status === 429)!
      assert.match(refused.headers['retry-after'] ?? '', WAIT)
      assert.match(refused.body.message, /without a valid key came from this address: try again in [0-9]+ seconds\.$/)
      assert.equal((await wrong('192.0.2.2')).status, 401)
      const fine = await server.api('/funnels', { key: project.key, headers: ['X-Forwarded-For', '192.0.2.1'] })
      assert.equal(fine.status, 200)
    } finally {
      await server.stop()
    }
  })
})

describe('sizes', () => {
  let server: TestServer
  let project: Project
  before(async () => {
    const env = { MAX_BODY_BYTES: '2000', MAX_HEADER_BYTES: '4000', MAX_URL_BYTES: '1000' }
    server = await startTestServer(env)
    project = await server.project()
  })
  after(() => server.stop())

  test('413 for a body beyond MAX_BODY_BYTES', async () => {
    const { status, body } = await project.post('/profiles/anonymize', { profile_ids: ['x'.repeat(2000)] })
    assert.deepEqual([status, body.message], [413, 'The body is larger than 2000 bytes.'])
  })

  test('431 for headers beyond MAX_HEADER_BYTES', async () => {
    const { status } = await server.api('/funnels', { key: project.key, headers: ['X-Long', 'x'.repeat(4000)] })
    assert.equal(status, 431)
  })

  test('414 for an address beyond MAX_URL_BYTES, behind the key', async () => {
    const path = `/funnels?filter[title]=${'x'.repeat(1000)}`
    const { status, body } = await server.api(path, { key: project.key })
    assert.deepEqual([status, body.message], [414, 'The URL is longer than 1000 bytes.'])
    assert.equal((await server.api(path, { key: 'secret_wrong' })).status, 401)
  })

  test('every mistake in the settings is told', () => {
    const env = { RATE_LIMIT: '-1', TRUST_PROXY: 'nowhere', HEADERS_TIMEOUT_MS: '20000', REQUEST_TIMEOUT_MS: '10000' }
    assert.throws(
      () => readConfig(env),
      /RATE_LIMIT must[\s\S]*TRUST_PROXY must[\s\S]*HEADERS_TIMEOUT_MS must not be more/,
    )
  })
})

describe('slow and many clients', () => {
  let server: TestServer
  let project: Project
  const env = {
    HEADERS_TIMEOUT_MS: '300',
    REQUEST_TIMEOUT_MS: '600',
    KEEP_ALIVE_TIMEOUT_MS: '300',
    SEND_TIMEOUT_MS: '500',
    MAX_CONNECTIONS: '30',
    MAX_CONCURRENT_REQUESTS: '8',
    MAX_CONCURRENT_PER_KEY: '4',
  }
  before(async () => {
    server = await startTestServer(env)
    project = await server.project()
  })
  after(() => server.stop())

  /** Opens a connection, says something, and answers all it hears until the other side closes. */
  async function say(text: string) {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    let heard = ''
    socket.on('error', () => {})
    socket.on('data', (chunk) => (heard += chunk))
    socket.write(text)
    const begun = performance.now()
    const closed = new Promise<{ heard: string; afterMs: number }>((resolve) =>
      socket.once('close', () => resolve({ heard, afterMs: performance.now() - begun })),
    )
    return { socket, closed }
  }

  const head = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}`

  for (const [name, text] of [
    ['says nothing', ''],
    ['never ends its headers', head('/health/live', 'X-Slow: ')],
  ] as const) {
    test(`408 for a connection that ${name}`, async () => {
      const { closed } = await say(text)
      const { heard, afterMs } = await closed
      assert.match(heard, /^HTTP\/1\.1 408 /)
      assert.ok(afterMs < 2000, `closed after ${afterMs} ms`)
    })
  }

  test('408 for a body that never ends', async () => {
    const { closed } = await say(
      `POST /public/v1/profiles/anonymize HTTP/1.1\r\nHost: x\r\nService-Secret: ${project.key}\r\nContent-Length: 100\r\n\r\n{`,
    )
    const { heard, afterMs } = await closed
    assert.match(heard, /^HTTP\/1\.1 408 /)
    assert.ok(afterMs > 500 && afterMs < 2500, `closed after ${afterMs} ms`)
  })

  test('an idle connection is closed after its time', async () => {
    const { closed } = await say(head('/health/live', '\r\n'))
    const { heard, afterMs } = await closed
    assert.match(heard, /^HTTP\/1\.1 200 /)
    assert.ok(afterMs > 200 && afterMs < 2500, `closed after ${afterMs} ms`)
  })

  test('a client that takes nothing of its answers loses its connection', async () => {
    const whole = (await server.call('/docs/reference.js')).text.length
    const { socket, closed } = await say(head('/docs/reference.js', '\r\n').repeat(8))
    socket.pause()
    await sleep(2500)
    socket.resume()
    const { heard } = await closed
    assert.ok(heard.length > 0 && heard.length < 8 * whole, `${heard.length} of ${8 * whole}`)
  })

  test('connections beyond MAX_CONNECTIONS are closed at once, and room is for others again', async () => {
    const sockets: Socket[] = []
    const closed: Promise<{ afterMs: number; heard: string }>[] = []
    for (const _ of times(40, (n) => n)) {
      const one = await say('G')
      sockets.push(one.socket)
      closed.push(one.closed)
    }
    const early = await Promise.race([Promise.any(closed), sleep(PATIENCE_MS, undefined, { ref: false })])
    assert.ok(early && early.heard === '', 'none was turned away')
    for (const socket of sockets) socket.destroy()
    await Promise.all(closed)
    await until('room for others', () =>
      server.call('/health/live').then(
        ({ status }) => status === 200,
        () => false,
      ),
    )
  })

  test('503 beyond MAX_CONCURRENT_REQUESTS and 429 beyond a key’s share; health is answered; then all is well', async () => {
    await insert(server.db, project, BASICS)
    const others = await Promise.all(times(3, () => server.project()))
    const { client, release } = await server.db.connect()
    try {
      await client.query('begin; lock table funnels')
      const mine = times(6, () => project.get('/funnels'))
      await sleep(100)
      const theirs = times(12, (n) => others[n % 3]!.get('/funnels'))
      await sleep(200)
      assert.equal((await server.call('/health/live')).status, 200)
      await client.query('rollback')
      const [a, b] = await Promise.all([Promise.all(mine), Promise.all(theirs)])
      assert.deepEqual([count(a, 200), count(a, 429)], [4, 2])
      assert.deepEqual([count(b, 200), count(b, 503)], [4, 8])
      for (const { status, headers } of [...a, ...b]) if (status !== 200) assert.equal(headers['retry-after'], '1')
    } finally {
      release(true)
    }
    assert.equal(count(await Promise.all(times(4, () => project.get('/funnels'))), 200), 4)
  })

  test('requests that their callers break off are counted out', async () => {
    const { client, release } = await server.db.connect()
    try {
      await client.query('begin; lock table funnels')
      for (const _ of times(8, (n) => n)) {
        const { socket } = await say(head('/public/v1/funnels', `Service-Secret: ${project.key}\r\n\r\n`))
        await sleep(30)
        socket.destroy()
      }
      await client.query('rollback')
    } finally {
      release(true)
    }
    await sleep(200)
    assert.equal(count(await Promise.all(times(4, () => project.get('/funnels'))), 200), 4)
  })
})
