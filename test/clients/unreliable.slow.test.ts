// @tundish/client from its packed tarball, killed, offline and throttled: what it says is written is there, nothing is there twice,
// and what was not written is told.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, rmSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { openRandom } from '../../src/lib/seeded-random.ts'
import { type Json, startTestServer } from '../support/server.ts'
import { until } from '../support/time.ts'
import { install } from './packed.ts'

const PROFILES = 100

const server = await startTestServer()
const project = await server.project()
const folder = await install()
cpSync(join(import.meta.dirname, 'steady-writer.mjs'), join(folder, 'steady-writer.mjs'))
after(async () => {
  await server.stop()
  rmSync(folder, { recursive: true, force: true })
})

type Trouble = 'offline' | 'throttled' | 'unavailable' | 'lost' | 'none'

/** Passes requests on, or does what `next` says. */
async function openTrouble(to: string, next: () => Trouble) {
  const met = new Set<Trouble>()
  const handle = async (request: IncomingMessage, response: ServerResponse) => {
    const trouble = next()
    met.add(trouble)
    const body = Buffer.concat(await request.toArray())
    if (trouble === 'offline') return request.socket.destroy()
    if (trouble === 'throttled') return response.writeHead(429, { 'retry-after': '0' }).end('{"message":"Slower."}')
    if (trouble === 'unavailable') return response.writeHead(503).end('{"message":"Later."}')
    const key = String(request.headers['service-secret'])
    const passed = await fetch(to + request.url, {
      method: 'POST',
      headers: { 'Service-Secret': key, 'Content-Type': 'application/json' },
      body,
    })
    const text = await passed.text()
    if (trouble === 'lost') return request.socket.destroy()
    return response.writeHead(passed.status, { 'content-type': 'application/json' }).end(text)
  }
  const proxy = createServer((request, response) => void handle(request, response).catch(() => response.destroy()))
  await once(proxy.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    met,
    close() {
      proxy.closeAllConnections()
      proxy.close()
    },
  }
}

test('killed, offline and throttled: what it told as written is there once, and what is not was told', async () => {
  const random = openRandom(7)
  let isOffline = false
  const weights = { offline: 8, throttled: 8, unavailable: 8, lost: 8, none: 68 }
  const trouble = await openTrouble(server.url, () => (isOffline ? 'offline' : random.weighted(weights)))
  const told: Json[] = []
  let written = 0
  let failures = 0

  /** Starts the program after what is written, and calls `each` with what it prints. */
  function start(each: (child: ChildProcess) => void = () => {}): ChildProcess {
    const config = { url: trouble.url, projectKey: project.key, from: written, to: PROFILES }
    const env = { CONFIG: JSON.stringify(config) }
    const child = spawn(process.execPath, ['steady-writer.mjs'], {
      cwd: folder,
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    createInterface({ input: child.stdout! }).on('line', (text) => {
      const one = JSON.parse(text)
      told.push(one)
      if (one.written) written = one.written
      if (one.failed) failures += 1
      each(child)
    })
    return child
  }
  try {
    for (const at of [20, 40, 60]) {
      const child = start((running) => written >= at && running.kill('SIGKILL'))
      await once(child, 'close')
    }
    // Offline: it is told to end, and says what it could not send.
    const child = start(() => {
      isOffline ||= written >= 75
    })
    await until('the program to be offline', () => isOffline)
    const before = failures
    await until('failures', () => failures > before)
    child.kill('SIGTERM')
    await once(child, 'close')
    const { left } = told.at(-1)!
    const stored = new Set((await profiles()).map(({ id }) => id))
    assert.deepEqual(
      [...new Set<string>(left)].filter((id) => id.startsWith('p') && !stored.has(id)).sort(),
      Array.from({ length: 5 }, (_, n) => `p${written + n}`)
        .filter((id) => !stored.has(id))
        .sort(),
    )
    isOffline = false
    const [code] = await once(start(), 'close')
    assert.equal(code, 0)
    const all = await profiles()
    assert.equal(all.length, PROFILES)
    for (const { id, phone } of all) assert.equal(phone, `late ${id.slice(1)}`)
    const created = await server.db.query(
      "select count(*) as all, count(distinct object_id) as ids from events where project_id = $1 and type = 'profile.created'",
      [project.id],
    )
    assert.deepEqual(created, [{ all: String(PROFILES), ids: String(PROFILES) }])
    const rejected = new Set(told.filter(({ code }) => code === 'unknown_reference').map(({ rejected: id }) => id))
    assert.ok(rejected.size >= 15, `${rejected.size} rejected`)
    assert.deepEqual([...trouble.met].sort(), ['lost', 'none', 'offline', 'throttled', 'unavailable'])
  } finally {
    trouble.close()
  }

  async function profiles(): Promise<{ id: string; phone: string }[]> {
    const rows = await server.db.query('select id, phone from profiles where project_id = $1', [project.id])
    return rows as { id: string; phone: string }[]
  }
})
