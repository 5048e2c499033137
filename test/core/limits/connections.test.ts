// Limits of requests and connections: sizes, slow clients, idle clients, too many of them.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { readConfig } from '../../../src/config.ts'
import { BASICS, insert } from '../../support/data.ts'
import { countOf, type Project, startTestServer, type TestServer, times } from '../../support/server.ts'
import { until } from '../../support/time.ts'

// No machine is so busy that a connection is closed later.
const PATIENCE_MS = 60_000

describe('sizes', () => {
  let server: TestServer
  let project: Project
  before(async () => {
    const env = { MAX_BODY_BYTES: '2000', MAX_HEADER_BYTES: '4000', MAX_URL_BYTES: '1000' }
    server = await startTestServer({ ...env, KEEP_ALIVE_TIMEOUT_MS: '620000' })
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

  test('MAX_HEADER_BYTES and KEEP_ALIVE_TIMEOUT_MS also hold for the operator’s listener', async () => {
    const { status, body } = await server.admin('/projects', { headers: ['X-Long', 'x'.repeat(4000)] })
    assert.deepEqual([status, body.message], [431, 'The headers are larger than 4000 bytes.'])
    for (const response of [await server.admin('/projects'), await server.call('/health/live')])
      assert.deepEqual([response.status, response.headers['keep-alive']], [200, 'timeout=620'])
  })

  test('414 for an address beyond MAX_URL_BYTES, behind the key', async () => {
    const path = `/funnels?filter[title]=${'x'.repeat(1000)}`
    const { status, body } = await server.api(path, { key: project.key })
    assert.deepEqual([status, body.message], [414, 'The URL is longer than 1000 bytes.'])
    assert.equal((await server.api(path, { key: 'secret_wrong' })).status, 401)
  })

  test('all mistakes in the settings are reported at once', () => {
    const env = { RATE_LIMIT: '-1', TRUST_PROXY: 'nowhere', HEADERS_TIMEOUT_MS: '20000', REQUEST_TIMEOUT_MS: '10000' }
    assert.throws(
      () => readConfig(env),
      /RATE_LIMIT must[\s\S]*TRUST_PROXY must[\s\S]*HEADERS_TIMEOUT_MS must not be more/,
    )
  })
})

describe('slow and many clients', () => {
  let server: TestServer
  /** Its timeouts are those of the default settings, which a busy machine does not reach. */
  let crowded: TestServer
  let project: Project
  const env = {
    HEADERS_TIMEOUT_MS: '300',
    REQUEST_TIMEOUT_MS: '600',
    KEEP_ALIVE_TIMEOUT_MS: '300',
    SEND_TIMEOUT_MS: '500',
  }
  before(async () => {
    server = await startTestServer(env)
    crowded = await startTestServer({
      MAX_CONNECTIONS: '30',
      MAX_CONCURRENT_REQUESTS: '8',
      MAX_CONCURRENT_PER_KEY: '4',
    })
    project = await crowded.project()
  })
  after(async () => {
    await server.stop()
    await crowded.stop()
  })

  /** Opens a connection, sends something, and returns all it receives until the other side closes. */
  async function say(text: string, { url } = server) {
    const { hostname, port } = new URL(url)
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

  // The bounds of time below are those of a busy machine; the default settings would take longer.
  const head = (path: string, more = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${more}`

  for (const [name, text] of [
    ['says nothing', ''],
    ['never ends its headers', head('/health/live', 'X-Slow: ')],
  ] as const) {
    test(`408 for a connection that ${name}`, async () => {
      const { closed } = await say(text)
      const { heard, afterMs } = await closed
      assert.match(heard, /^HTTP\/1\.1 408 /)
      assert.ok(afterMs < 8_000, `closed after ${afterMs} ms`)
    })
  }

  test('408 for a body that never ends', async () => {
    const { key } = await server.project()
    const { closed } = await say(
      `POST /public/v1/profiles/anonymize HTTP/1.1\r\nHost: x\r\nService-Secret: ${key}\r\nContent-Length: 100\r\n\r\n{`,
    )
    const { heard, afterMs } = await closed
    assert.match(heard, /^HTTP\/1\.1 408 /)
    assert.ok(afterMs > 500 && afterMs < 25_000, `closed after ${afterMs} ms`)
  })

  test('an idle connection is closed after its time', async () => {
    const { closed } = await say(head('/health/live', '\r\n'))
    const { heard, afterMs } = await closed
    assert.match(heard, /^HTTP\/1\.1 200 /)
    assert.ok(afterMs > 200 && afterMs < 25_000, `closed after ${afterMs} ms`)
  })

  test('a client that reads nothing of its responses is disconnected', async () => {
    // The other one would disconnect this client, too, on a busy machine.
    const whole = 8 * (await crowded.call('/docs/reference.js')).text.length
    let heard = whole
    const isPart = () => heard > 0 && heard < whole
    // A server on a busy machine may close it later, or have sent nothing yet.
    for (let pauseMs = 1500; !isPart() && pauseMs < PATIENCE_MS; pauseMs *= 3) {
      const { socket, closed } = await say(head('/docs/reference.js', '\r\n').repeat(8))
      socket.pause()
      await sleep(pauseMs)
      socket.resume()
      heard = (await closed).heard.length
    }
    assert.ok(isPart(), `${heard} of ${whole}`)
  })

  test('connections beyond MAX_CONNECTIONS are closed at once, and new ones are accepted when others have ended', async () => {
    const sockets: Socket[] = []
    const closed: Promise<{ afterMs: number; heard: string }>[] = []
    for (const _ of times(40, (n) => n)) {
      const one = await say('G', crowded)
      sockets.push(one.socket)
      closed.push(one.closed)
    }
    const early = await Promise.race([Promise.any(closed), sleep(PATIENCE_MS, undefined, { ref: false })])
    assert.ok(early && early.heard === '', 'none was turned away')
    for (const socket of sockets) socket.destroy()
    await Promise.all(closed)
    await until('room for others', () =>
      crowded.call('/health/live').then(
        ({ status }) => status === 200,
        () => false,
      ),
    )
  })

  test('503 beyond MAX_CONCURRENT_REQUESTS and 429 beyond a key’s share, except for health; 200 again afterwards', async () => {
    await insert(crowded.db, project, BASICS)
    const others = await Promise.all(times(3, () => crowded.project()))
    const { client, release } = await crowded.db.connect()
    try {
      await client.query('begin; lock table funnels')
      const mine = times(6, () => project.get('/funnels'))
      await untilSettled(mine, 2)
      const theirs = times(12, (n) => others[n % 3]!.get('/funnels'))
      await untilSettled(theirs, 8)
      assert.equal((await crowded.call('/health/live')).status, 200)
      await client.query('rollback')
      const [a, b] = await Promise.all([Promise.all(mine), Promise.all(theirs)])
      assert.deepEqual([countOf(a, 200), countOf(a, 429)], [4, 2])
      assert.deepEqual([countOf(b, 200), countOf(b, 503)], [4, 8])
      for (const { status, headers } of [...a, ...b]) if (status !== 200) assert.equal(headers['retry-after'], '1')
    } finally {
      release(true)
    }
    assert.equal(countOf(await Promise.all(times(4, () => project.get('/funnels'))), 200), 4)
  })

  test('requests that their callers abort no longer count', async () => {
    const { client, release } = await crowded.db.connect()
    try {
      await client.query('begin; lock table funnels')
      for (const _ of times(8, (n) => n)) {
        const { socket } = await say(head('/public/v1/funnels', `Service-Secret: ${project.key}\r\n\r\n`), crowded)
        await sleep(30)
        socket.destroy()
      }
      await client.query('rollback')
    } finally {
      release(true)
    }
    await until('all four to be counted out', async () => {
      return countOf(await Promise.all(times(4, () => project.get('/funnels'))), 200) === 4
    })
  })
})

/** Waits until so many of the calls have a response. */
async function untilSettled(calls: Promise<unknown>[], n: number): Promise<void> {
  let settled = 0
  for (const call of calls) void call.then(() => (settled += 1))
  await until(`${n} responses`, () => settled >= n)
}
