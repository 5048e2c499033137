// Attacks beside which others are served: slow senders, idle connections, huge bodies and headers, a thousand large lists.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BASICS, insert } from './support/data.ts'
import { manyRequests } from './support/many-requests.ts'
import { type Project, send, startTestServer, type TestServer } from './support/server.ts'

// TUNDISH_ATTACK=10 makes each attack ten times as large, as many idle connections and lists as the full measure has, and
// compares the time that others wait with their usual one. Without it nobody is timed: what else the machine does would
// decide. Then it is enough that everybody is served.
const SCALE = Number(process.env['TUNDISH_ATTACK'] ?? 1)
const IS_TIMED = process.env['TUNDISH_ATTACK'] !== undefined
const IDLE = 1000 * SCALE
const LISTS = 100 * SCALE
const BODY_MB = 10 * SCALE
// What a busy machine may take for a request, whatever is usual.
const FLOOR_MS = 50
const FACTOR = 5

const times = <T>(n: number, make: (n: number) => T): T[] => Array.from({ length: n }, (_none, index) => make(index))

describe('a normal caller', { timeout: 120_000 + 30_000 * SCALE }, () => {
  let server: TestServer
  let normal: Project
  let attacker: Project
  let usualMs: number
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const sockets: Socket[] = []

  before(async () => {
    server = await startTestServer({ HEADERS_TIMEOUT_MS: '2000' })
    normal = await server.project()
    attacker = await server.project()
    const rows = (n: number) => ({ ...BASICS, subscriptions: times(n, (one) => ({ id: `sub_${one}` })) })
    await insert(server.db, normal, rows(200))
    await insert(server.db, attacker, rows(2000))
    await served(2000)
    usualMs = (await served(2000)).p99Ms
  })
  after(async () => {
    for (const socket of sockets) socket.destroy()
    agent.destroy()
    await server.stop()
  })

  /** Pages of 20 by four callers for so long, or as long as something else lasts; all must be fine. */
  async function served(forMs: number, beside = Promise.resolve()): Promise<{ p99Ms: number; answers: number }> {
    const took: number[] = []
    const end = performance.now() + forMs
    let isOver = false
    void beside.finally(() => {
      isOver = true
    })
    const caller = async () => {
      while (!isOver || performance.now() < end) {
        const begun = performance.now()
        const { status, text } = await send(agent, server.url, '/public/v1/subscriptions', { key: normal.key })
        assert.equal(status, 200, text)
        took.push(performance.now() - begun)
        await sleep(5)
      }
    }
    await Promise.all(times(4, caller))
    took.sort((a, b) => a - b)
    return { p99Ms: took[Math.floor(took.length * 0.99)]!, answers: took.length }
  }

  async function isServedBeside(attack: () => Promise<unknown>): Promise<void> {
    const attacking = attack().then(() => {})
    const [{ p99Ms, answers }] = await Promise.all([served(3000, attacking), attacking])
    assert.ok(answers > 0)
    if (!IS_TIMED) return
    const most = Math.max(FLOOR_MS, FACTOR * usualMs)
    console.log({ usualMs, p99Ms, answers })
    assert.ok(p99Ms < most, `p99 ${p99Ms.toFixed(1)} ms beside it, ${usualMs.toFixed(1)} ms usually`)
  }

  async function open(text: string): Promise<Socket> {
    const { hostname, port } = new URL(server.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    sockets.push(socket)
    await once(socket, 'connect')
    socket.write(text)
    return socket
  }

  const asAttacker = (path: string) => send(agent, server.url, path, { key: attacker.key })

  test(`is served beside ${IDLE} idle connections`, async () => {
    await isServedBeside(async () => {
      for (let n = 0; n < IDLE; n += 100) await Promise.all(times(100, () => open('')))
    })
  })

  test('is served beside slowloris', async () => {
    await isServedBeside(async () => {
      const slow = await Promise.all(times(200, () => open('GET /public/v1/funnels HTTP/1.1\r\nHost: x\r\n')))
      for (const socket of slow) socket.resume()
      for (let second = 0; second < 5; second++) {
        for (const socket of slow) if (socket.writable) socket.write(`X-Slow-${second}: x\r\n`)
        await sleep(600)
      }
      // All were thrown out, though each sent something all the time.
      await sleep(1000)
      assert.equal(slow.filter(({ destroyed, readableEnded }) => !destroyed && !readableEnded).length, 0)
    })
  })

  test(`is served beside bodies of ${BODY_MB} MB`, async () => {
    await isServedBeside(async () => {
      const chunk = Buffer.alloc(1024 * 1024, ' ')
      await Promise.all(
        times(4, async () => {
          const length = BODY_MB * chunk.length
          const head = `POST /public/v1/profiles/anonymize HTTP/1.1\r\nHost: x\r\nService-Secret: ${attacker.key}\r\nContent-Length: ${length}\r\n\r\n`
          const socket = await open(head)
          let heard = ''
          socket.on('data', (data) => {
            heard += data
          })
          for (let sent = 0; sent < BODY_MB && socket.writable; sent++) {
            if (!socket.write(chunk)) await Promise.race([once(socket, 'drain').catch(() => {}), sleep(500)])
          }
          await sleep(100)
          assert.match(heard, /^HTTP\/1\.1 413 /)
        }),
      )
    })
  })

  test('is served beside headers of 64 KiB', async () => {
    await isServedBeside(() =>
      Promise.all(
        times(100, async () => {
          const socket = await open(`GET / HTTP/1.1\r\nHost: x\r\nX-Long: ${'x'.repeat(64 * 1024)}\r\n\r\n`)
          const [data] = (await once(socket, 'data')) as [Buffer]
          assert.match(data.toString(), /^HTTP\/1\.1 431 /)
        }),
      ),
    )
  })

  test(`is served beside ${LISTS} large lists at once`, async () => {
    await isServedBeside(async () => {
      const url = `${server.url}/public/v1/subscriptions?limit=500&filter[updated_at.from]=2000-01-01T00:00:00Z`
      const statuses = await manyRequests({ url, headers: { 'Service-Secret': attacker.key }, times: LISTS, rounds: 3 })
      assert.equal(statuses.length, 3 * LISTS)
      assert.ok(statuses.every((status) => status === 200 || status === 429))
    })
    assert.equal((await asAttacker('/public/v1/funnels')).status, 200)
  })
})
