// @tundish/client from its packed tarball, in Node 24, in Node 20 and in a worker, against the real server.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { gzipSync } from 'node:zlib'
import { type Billing, type Organization, startBilling } from '../support/billing.ts'
import { until } from '../support/time.ts'
import { titled } from '../support/titled.ts'
import { configOf, EXPECTED, findNode20, install, openRedirects, openShop } from './packed.ts'

const run = promisify(execFile)
const node20 = findNode20()

describe('@tundish/client', () => {
  let billing: Billing
  let shop: Organization
  let folder: string
  let redirects: Awaited<ReturnType<typeof openRedirects>>
  before(async () => {
    billing = await startBilling()
    shop = await openShop(billing)
    redirects = await openRedirects(billing.server.url)
    folder = await install()
  })
  after(async () => {
    redirects.close()
    await billing.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const inNode24 = 'reads, charges once, reports errors and walks all changes'
  test(`${inNode24}: Node 24`, () => check(process.execPath, ['run-scenario.mjs']))
  test(titled(`${inNode24}: Node 20`, node20 ? undefined : 'there is none on the PATH'), { skip: !node20 }, () =>
    check(node20!, ['run-scenario.mjs']),
  )
  test('the built files stay whole while another program packs the client', async () => {
    const dist = join(import.meta.dirname, '../../clients/js/dist')
    const built = () =>
      Object.fromEntries(readdirSync(dist).map((name) => [name, readFileSync(join(dist, name), 'utf8')]))
    // What the compiler has opened is empty until it is written.
    const slow = join(folder, 'slow.cjs')
    writeFileSync(
      slow,
      `const fs = require('node:fs'); const { writeSync } = fs; const cell = new Int32Array(new SharedArrayBuffer(4))
       fs.writeSync = (file, ...more) => { if (file > 2) Atomics.wait(cell, 0, 0, 100); return writeSync(file, ...more) }`,
    )
    const before = built()
    let isOver = false
    const packing = run('npm', ['run', 'prepack'], {
      cwd: join(dist, '..'),
      env: { ...process.env, NODE_OPTIONS: `--require ${slow}` },
    }).finally(() => {
      isOver = true
    })
    await until('the other program to end', () => {
      assert.deepEqual(built(), before)
      return isOver
    })
    await packing
  })
  test(`${inNode24}: a worker without the modules of Node`, () =>
    check(process.execPath, [
      '--experimental-vm-modules',
      '--disable-warning=ExperimentalWarning',
      'run-in-worker.mjs',
    ]))

  test('the packed runtime is under 15 kB gzipped', () => {
    const dist = join(folder, 'node_modules/@tundish/client/dist')
    const files = readdirSync(dist).filter((name) => name.endsWith('.js'))
    const bytes = gzipSync(Buffer.concat(files.map((name) => readFileSync(join(dist, name))))).length
    assert.ok(files.length > 5 && bytes < 15_000, `${bytes} bytes`)
  })

  async function check(node: string, args: string[]): Promise<void> {
    const config = await configOf(billing, shop, redirects.url)
    const { stdout } = await run(node, args, { cwd: folder, env: { CONFIG: JSON.stringify(config) }, timeout: 60_000 })
    const { horizon, ...result } = JSON.parse(stdout)
    assert.match(horizon, /^20\d\d-.+Z$/)
    assert.deepEqual(result, EXPECTED)
  }
})
