// Attacks beside which others are served: slow senders, idle connections, huge bodies and headers, a thousand large lists.
// The server is its own process, so that what the attackers and the callers do is not on its account.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { Agent, get, type IncomingMessage } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { type ServerProcess, startProcess } from '../../support/cli.ts'
import { BASICS, insert } from '../../support/data.ts'
import { type Project, send, startTestServer, type TestServer, times } from '../../support/server.ts'
import { startCallers } from './callers.ts'

// TUNDISH_ATTACK=10 makes each attack ten times as large, as many idle connections and lists as the full measure has, and
// compares the time that others wait with their usual one. Without it nobody is timed: what else the machine does would
// decide. Then it is enough that everybody is served.
const SCALE = Number(process.env['TUNDISH_ATTACK'] ?? 1)
const IS_TIMED = process.env['TUNDISH_ATTACK'] !== undefined
const IDLE = 1000 * SCALE
const LISTS = 100 * SCALE
const BODY_MB = 10 * SCALE
// Long enough for all idle connections to be opened, also on a busy machine.
const HEADERS_TIMEOUT_MS = 10_000
const PATIENCE_MS = 60_000
const FACTOR = 5
const LARGE_LIST = '/public/v1/subscriptions?limit=500&filter[updated_at.from]=2000-01-01T00:00:00Z'

function ignore(): void {}

/** Sends a request and ignores the response. */
async function skim(agent: Agent, url: string, key: string): Promise<{ status: number }> {
  const asked = get(url, { agent, headers: { 'Service-Secret': key } })
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  await once(response.resume(), 'end')
  return { status: response.statusCode! }
}

describe('a normal caller', { timeout: 120_000 + 30_000 * SCALE }, () => {
  let maker: TestServer
  let server: ServerProcess
  let normal: Project
  let attacker: Project
  let usualMs: number
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const sockets: Socket[] = []

  before(async () => {
    maker = await startTestServer()
    server = await startProcess({ ...maker.env, HEADERS_TIMEOUT_MS: String(HEADERS_TIMEOUT_MS) })
    normal = await maker.project()
    attacker = await maker.project()
    const rows = (n: number) => ({ ...BASICS, subscriptions: times(n, (one) => ({ id: `sub_${one}` })) })
    await insert(maker.db, normal, rows(200))
    await insert(maker.db, attacker, rows(2000))
    // The usual is only worth measuring when it is compared.
    await served(IS_TIMED ? 5000 : 500)
    usualMs = (await served(IS_TIMED ? 5000 : 500)).p99Ms
  })
  after(async () => {
    for (const socket of sockets) socket.destroy()
    agent.destroy()
    await server.stop()
    await maker.stop()
  })

  /** Pages of 20 by four callers for so long, or as long as something else lasts; all must be fine. */
  async function served(forMs: number, beside = Promise.resolve()): Promise<{ p99Ms: number; responses: number }> {
    const path = '/public/v1/subscriptions'
    const stop = await startCallers({ url: server.url, path, key: normal.key, callers: 4, pauseMs: 5 })
    await Promise.all([sleep(forMs), beside])
    const { tookMs, wrong } = await stop()
    assert.deepEqual(wrong, [])
    tookMs.sort((a, b) => a - b)
    return { p99Ms: tookMs[Math.floor(tookMs.length * 0.99)]!, responses: tookMs.length }
  }

  async function isServedBeside(attack: () => Promise<unknown>, atLeastMs = 3000): Promise<void> {
    const { p99Ms, responses } = await served(atLeastMs, attack().then(ignore))
    assert.ok(responses > 0)
    if (!IS_TIMED) return
    console.log(`p99 ${p99Ms.toFixed(1)} ms of ${responses} responses, ${usualMs.toFixed(1)} ms usually`)
    assert.ok(p99Ms < FACTOR * usualMs)
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

  test(`is served while ${IDLE} connections are opened, while they are idle, and while they are closed`, async () => {
    const idle: Socket[] = []
    const areOpen = () => idle.filter(({ readyState }) => readyState === 'open').length
    let opened = 0
    // Some two thousand a second: as fast as one process can, it is the opener that is measured.
    await isServedBeside(async () => {
      for (let n = 0; n < IDLE; n += 20) {
        idle.push(...(await Promise.all(times(20, async () => (await open('')).resume()))))
        await sleep(10)
      }
      // Now: on a busy machine the callers may begin and stop when the first of these are closed.
      opened = areOpen()
    }, 0)
    assert.equal(opened, IDLE)
    await isServedBeside(() => sleep(HEADERS_TIMEOUT_MS / 4), 0)
    await isServedBeside(async () => {
      const ends = performance.now() + HEADERS_TIMEOUT_MS + PATIENCE_MS
      while (areOpen() > 0 && performance.now() < ends) await sleep(100)
    }, 0)
    assert.equal(areOpen(), 0)
  })

  test('is served during slowloris', async () => {
    await isServedBeside(async () => {
      const slow = await Promise.all(times(200, () => open('GET /public/v1/funnels HTTP/1.1\r\nHost: x\r\n')))
      for (const socket of slow) socket.resume()
      const remaining = () => slow.filter(({ destroyed, readableEnded }) => !destroyed && !readableEnded).length
      const ends = performance.now() + HEADERS_TIMEOUT_MS + PATIENCE_MS
      for (let sent = 0; remaining() > 0 && performance.now() < ends; sent++) {
        for (const socket of slow) if (socket.writable) socket.write(`X-Slow-${sent}: x\r\n`)
        await sleep(500)
      }
      // All were thrown out, though each sent something all the time.
      assert.equal(remaining(), 0)
    })
  })

  test(`is served during bodies of ${BODY_MB} MB`, async () => {
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
          // Who goes on sending may be cut off before they hear it.
          assert.match(heard, /^(HTTP\/1\.1 413 .*)?$/s)
        }),
      )
    })
  })

  test('is served during headers of 64 KiB', async () => {
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

  test(`is served during ${LISTS} large lists at once`, async () => {
    await isServedBeside(async () => {
      const many = new Agent({ keepAlive: true })
      const lists = times(LISTS, async () => {
        for (let round = 0; round < 3; round++) {
          const { status } = await skim(many, server.url + LARGE_LIST, attacker.key)
          assert.ok(status === 200 || status === 429, String(status))
        }
      })
      await Promise.all(lists)
      many.destroy()
    })
    assert.equal((await asAttacker('/public/v1/funnels')).status, 200)
  })

  test('responses to many large lists finish one after another, not all at the end', async () => {
    const many = new Agent({ keepAlive: true })
    // Everybody is connected before the crowd comes.
    await Promise.all(times(60, () => skim(many, `${server.url}/health/live`, attacker.key)))
    const begun = performance.now()
    const cameMs = await Promise.all(
      times(60, async () => {
        await skim(many, server.url + LARGE_LIST, attacker.key)
        return performance.now() - begun
      }),
    )
    many.destroy()
    cameMs.sort((a, b) => a - b)
    assert.ok(cameMs[6]! < cameMs[59]! / 2, `a tenth had come after ${cameMs[6]} ms, all had after ${cameMs[59]} ms`)
  })
})
