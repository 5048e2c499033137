// Large responses to clients that read slowly, hang up, or ask for several at once: the memory of a response serves the next
// one only when all of it has gone.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, afterEach, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { insert } from '../../support/data.ts'
import { type Project, startTestServer, type TestServer } from '../../support/server.ts'

const PROFILES = 300
// With these a page has megabytes: more than the sockets on both sides take without a reader.
const TEXT = 20_000
// No machine is so busy that a test takes longer.
const PATIENCE_MS = 600_000

describe('a large page', { timeout: PATIENCE_MS }, () => {
  let server: TestServer
  let projects: Project[]
  before(async () => {
    server = await startTestServer({ SEND_TIMEOUT_MS: String(PATIENCE_MS) })
    projects = [await server.project(), await server.project(), await server.project()]
    for (const [n, project] of projects.entries()) {
      const profiles = Array.from({ length: PROFILES }, (_, k) => ({
        id: `p${n}-${k}`,
        integrations: { x: mark(n, k) },
      }))
      await insert(server.db, project, { profiles })
    }
  })
  after(() => server.stop())

  /** What only this person of this project has. */
  const mark = (project: number, profile: number) => `${project}-${profile} `.repeat(TEXT / 8)
  const path = (limit: number) => `/public/v1/profiles?limit=${limit}`

  async function ask(n: number, limits: number[]): Promise<Socket> {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    socket.pause()
    await once(socket, 'connect')
    const { key } = projects[n]!
    for (const limit of limits) socket.write(`GET ${path(limit)} HTTP/1.1\r\nHost: x\r\nService-Secret: ${key}\r\n\r\n`)
    return socket
  }

  /** Reads so many responses from a connection. */
  async function read(socket: Socket, responses: number): Promise<string[]> {
    const bodies: string[] = []
    let chunks: Buffer[] = []
    let [length, wanted] = [0, 0]
    for await (const chunk of socket) {
      chunks.push(chunk as Buffer)
      length += (chunk as Buffer).length
      // The chunks are copied together once for a response, not once for each chunk.
      if (length < wanted) continue
      let bytes = Buffer.concat(chunks)
      for (wanted = sizeOf(bytes); wanted <= bytes.length; wanted = sizeOf(bytes)) {
        bodies.push(bytes.toString('utf8', bytes.indexOf('\r\n\r\n') + 4, wanted))
        bytes = bytes.subarray(wanted)
      }
      chunks = [bytes]
      length = bytes.length
      if (bodies.length === responses) break
    }
    return bodies
  }

  /** How many bytes the first response has; while its head is not there, at least one more. */
  function sizeOf(bytes: Buffer): number {
    const end = bytes.indexOf('\r\n\r\n')
    if (end < 0) return bytes.length + 1
    const head = bytes.toString('latin1', 0, end)
    assert.match(head, /^HTTP\/1\.1 200 /)
    return end + 4 + Number(/content-length: (\d+)/i.exec(head)![1])
  }

  async function isServed(n: number, limit: number): Promise<void> {
    const { status, text } = await server.api(path(limit).slice('/public/v1'.length), { key: projects[n]!.key })
    assert.equal(status, 200)
    isWhole(n, limit, text)
  }

  function isWhole(n: number, limit: number, text: string): void {
    const { data } = JSON.parse(text) as { data: { id: string; integrations: { x: string } }[] }
    assert.equal(data.length, Math.min(limit, PROFILES))
    for (const { id, integrations } of data) assert.equal(integrations.x, mark(n, Number(id.split('-')[1])), id)
  }

  test('arrives completely at clients that read late, while others are served', async () => {
    const limits = [PROFILES, 3, 100]
    const slow = await Promise.all(Array.from({ length: 12 }, (_, n) => ask(n % 3, limits)))
    for (let round = 0; round < 10; round++) {
      await Promise.all(projects.map((_, n) => isServed(n, [500, 20, 1, 100][round % 4]!)))
    }
    for (const [n, socket] of slow.entries()) {
      const bodies = await read(socket, limits.length)
      for (const [k, text] of bodies.entries()) isWhole(n % 3, limits[k]!, text)
      assert.equal(bodies.length, limits.length)
      socket.destroy()
    }
  })

  test('whose client has disconnected does not affect other clients', async () => {
    for (let round = 0; round < 10; round++) {
      const leaving = await Promise.all(Array.from({ length: 6 }, (_, n) => ask(n % 3, [500, 500])))
      await Promise.all(projects.map((_, n) => isServed(n, 500)))
      for (const socket of leaving) socket.resetAndDestroy()
      await sleep(5)
      await Promise.all(projects.map((_, n) => isServed(n, 500)))
    }
  })
})

describe('a large page, alone on its connection', { timeout: PATIENCE_MS }, () => {
  const SIZE = 500 * TEXT
  let server: TestServer | undefined
  afterEach(() => server?.stop())

  /** Asks its own server for a page, and waits until it comes. */
  async function askAlone(env: Record<string, string>, more = '') {
    server = await startTestServer(env)
    const { id, organizationId, key } = await server.project()
    const profiles = Array.from({ length: 500 }, (_, k) => ({ id: `p${k}`, integrations: { x: 'x'.repeat(TEXT) } }))
    await insert(server.db, { id, organizationId }, { profiles })
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname).on('error', () => {})
    socket.write(`GET /public/v1/profiles?limit=500 HTTP/1.1\r\nHost: x\r\nService-Secret: ${key}\r\n${more}\r\n`)
    await once(socket, 'readable')
    return socket
  }

  /** Whether the response is there to its last byte. */
  function isWhole(text: string): boolean {
    const length = Number(/content-length: (\d+)/i.exec(text)![1])
    return length > SIZE && text.length - text.indexOf('\r\n\r\n') - 4 === length
  }

  test('arrives completely at a client that reads slowly, for longer than SEND_TIMEOUT_MS', () =>
    onAnyMachine(async (timeoutMs) => {
      const socket = await askAlone({ SEND_TIMEOUT_MS: String(timeoutMs) })
      const begun = performance.now()
      const text = await readAll(socket, timeoutMs / 40)
      return isWhole(text) && performance.now() - begun > 2 * timeoutMs
    }))

  test('arrives completely even if the server itself was frozen for longer than SEND_TIMEOUT_MS', () =>
    onAnyMachine(async (timeoutMs) => {
      const socket = await askAlone({ SEND_TIMEOUT_MS: String(timeoutMs) })
      // The server has noticed that something is left to send.
      await sleep(timeoutMs / 3)
      standStill(1.5 * timeoutMs)
      return isWhole(await readAll(socket))
    }))

  /** The pauses of a client on a busy machine are longer than it means them: it is tried again with more time. */
  async function onAnyMachine(isFine: (timeoutMs: number) => Promise<boolean>): Promise<void> {
    for (const timeoutMs of [1_000, 10_000, 60_000]) {
      if (await isFine(timeoutMs)) return
      await server?.stop()
      server = undefined
    }
    assert.fail('The page came in part only.')
  }

  async function readAll(socket: Socket, pauseMs = 0): Promise<string> {
    let text = ''
    let read = 0
    for await (const chunk of socket) {
      text += (chunk as Buffer).toString('latin1')
      read += (chunk as Buffer).length
      // To look into the text copies all of it: only where it may be complete.
      if (read > SIZE && isWhole(text)) break
      if (pauseMs > 0) await sleep(pauseMs)
    }
    socket.destroy()
    return text
  }

  /** Holds up this process, and so the server and its client. */
  const standStill = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

  for (const more of ['', 'Connection: close\r\n']) {
    test(`arrives completely at a client that reads late, while the server stops${more && ', with Connection: close'}`, async () => {
      const { socket, stopped } = await askAndStop({ REQUEST_TIMEOUT_MS: String(PATIENCE_MS) }, more)
      await sleep(1500)
      const chunks: Buffer[] = []
      for await (const chunk of socket) chunks.push(chunk as Buffer)
      const text = Buffer.concat(chunks).toString('latin1')
      assert.ok(isWhole(text), `${text.length} bytes`)
      await stopped
    })
  }

  test('that is not read holds up a stopping server for REQUEST_TIMEOUT_MS', async () => {
    const { socket, stopped } = await askAndStop({ HEADERS_TIMEOUT_MS: '2000', REQUEST_TIMEOUT_MS: '2000' })
    const afterMs = await stopped
    assert.ok(afterMs > 1500 && afterMs < 25_000, `stopped after ${afterMs} ms`)
    socket.destroy()
  })

  async function askAndStop(env: Record<string, string>, more = '') {
    const socket = await askAlone(env, more)
    const begun = performance.now()
    const stopped = server!.stop().then(() => performance.now() - begun)
    server = undefined
    return { socket, stopped }
  }
})
