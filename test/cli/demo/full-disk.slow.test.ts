// serve --demo whose disk is full: the simulators' ledgers are there, too, and the server survives and stops cleanly.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { isServerOf, lastServer } from '../../../src/lib/embedded/server.ts'
import { freePort, PATIENCE_MS, spawnTundish, tundish } from '../../support/cli.ts'
import { fill, mountSmallDisk } from '../../support/small-disk.ts'
import { until } from '../../support/time.ts'
import { titled } from '../../support/titled.ts'

const disk = mountSmallDisk(200)

describe(titled('the demo on a small disk', disk.why), { skip: disk.why, timeout: PATIENCE_MS }, () => {
  const [dataDir, filler] = [join(disk.folder, 'data'), join(disk.folder, 'filler')]
  const runs = async () => {
    const cluster = join(dataDir, 'postgres/data')
    const server = lastServer(cluster)
    return server !== undefined && (await isServerOf(cluster, server.pid))
  }
  after(disk.unmount)

  test('a ledger that cannot be read ends the start, and no simulator goes on', async () => {
    const broken = join(dataDir, 'simulator-stripe.ndjson')
    mkdirSync(dataDir, { mode: 0o711 })
    writeFileSync(broken, 'no line\n')
    const { code, stderr } = await tundish(['serve', '--demo'], { DATA_DIR: dataDir, PORT: '0', ADMIN_PORT: '0' })
    assert.match(stderr, /simulator-stripe\.ndjson:1 cannot be read/)
    assert.deepEqual([code, await runs()], [2, false])
    rmSync(broken)
  })

  test('charges are settled when there is room, and a stop on a full disk stops PostgreSQL', async () => {
    const port = await freePort()
    const child = spawnTundish(['serve', '--demo'], { DATA_DIR: dataDir, PORT: `${port}`, ADMIN_PORT: '0' })
    const ended = once(child, 'exit')
    let output = ''
    child.stdout.on('data', (text) => (output += text))
    await until('the demo', () => output.includes('Open the dashboard'))
    const key = /service-secret-key +(secret_\S+)/.exec(output)![1]!
    const charge = async (idempotency_key: string) => {
      const response = await fetch(`http://127.0.0.1:${port}/demo/v1/payment/one_off_charge`, {
        method: 'POST',
        headers: { 'service-secret-key': key, 'content-type': 'application/json' },
        body: JSON.stringify({ external_id: 'grace', amount: '9.99', currency_code: 'USD', idempotency_key }),
      })
      return ((await response.json()) as { checkout_status: string }).checkout_status
    }
    const chargeUntilFull = async (keys: string) => {
      for (let n = 1; ; n++) if ((await charge(`${keys}-${n}`)) !== 'succeeded') return `${keys}-${n}`
    }
    assert.equal(await charge('before'), 'succeeded')
    fill(filler)
    const unsettled = await chargeUntilFull('full')
    rmSync(filler)
    await until('the charge to be settled', async () => ['succeeded', 'cancelled'].includes(await charge(unsettled)))
    assert.equal(await charge('after'), 'succeeded')

    fill(filler)
    await chargeUntilFull('again')
    child.kill('SIGTERM')
    await ended
    assert.equal(await runs(), false)
  })
})
