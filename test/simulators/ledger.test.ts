// What the simulator's ledger survives: kill -9, a torn line, a full disk, a second simulator.
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { rmSync } from 'node:fs'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, beforeEach, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { UsageError } from '../../src/lib/errors.ts'
import type { ChargeRequest } from '../../src/payments/providers/provider.ts'
import { SimulatorProvider } from '../../src/payments/providers/simulator.ts'
import { startSimulator } from '../../src/simulators/server.ts'
import { assertSettled, chargeRequest } from '../payments/providers/charging.ts'
import { temporaryFolder } from '../support/folder.ts'
import { silent } from '../support/simulators.ts'
import { fill, mountSmallDisk } from '../support/small-disk.ts'
import { HandClock, until } from '../support/time.ts'
import { titled } from '../support/titled.ts'

// No machine is so busy that the simulator needs longer for a response, or a test longer than until a late charge.
const DEADLINE_MS = 120_000
const LATE = 'sim_late_3600000ms'

let folder: string
let ledgerFile: string
const children: ChildProcess[] = []

beforeEach(() => {
  folder = temporaryFolder()
  ledgerFile = join(folder, 'ledger.ndjson')
})
afterEach(async () => {
  for (const child of children.splice(0)) if (child.exitCode === null && child.signalCode === null) await kill(child)
})

test('what was acknowledged before a kill -9 is there after it, refusals and late charges too', async () => {
  const child = await spawnSimulator()
  const before = adapter(child.url)
  const charges = Array.from({ length: 200 }, () => chargeRequest('pm_card_visa'))
  const [refused, late] = [chargeRequest('pm_card_visa'), chargeRequest(LATE)]
  assert.equal((await before.refuse(refused)).outcome, 'refused')
  assert.equal((await before.charge(late)).outcome, 'unknown')
  const charged: typeof charges = []
  const storm = charges.map((request) =>
    before.charge(request).then((response) => response.outcome === 'succeeded' && charged.push(request)),
  )
  while (charged.length < 20) await sleep(1)
  await kill(child.process)
  await Promise.all(storm)

  await withSimulator(async (provider) => {
    for (const request of charged) assertSettled(await provider.lookUp(request), 'succeeded')
    assert.equal((await provider.charge(refused)).outcome, 'refused')
    assert.equal((await provider.lookUp(late)).outcome, 'not_found')
  })
  await makeDue()
  await withSimulator(async (provider) => {
    await until('the late charge', async () => (await provider.lookUp(late)).outcome !== 'not_found')
    assertSettled(await provider.lookUp(late), 'succeeded')
  })
})

test('a late charge that was refused after a restart is never made', async () => {
  for (let lateMs = 500; ; lateMs *= 4) {
    const late = chargeRequest(`sim_late_${lateMs}ms`)
    await withSimulator(async (provider) => void (await provider.charge(late)))
    const refused = await withSimulator(async (provider) => {
      if ((await provider.refuse(late)).outcome !== 'refused') return false
      await sleep(lateMs + 200)
      assert.equal((await provider.lookUp(late)).outcome, 'refused')
      return true
    })
    if (refused) return
    // On a busy machine the charge came before the refusal: once more, with more time.
  }
})

test('a last line cut short by a crash is removed, and the next line is complete', async () => {
  const [one, two] = [chargeRequest('pm_card_visa'), chargeRequest('pm_card_visa')]
  await withSimulator(async (provider) => void (await provider.charge(one)))
  await appendFile(ledgerFile, '{"kind":"charge","key":"torn","sta')
  await withSimulator(async (provider) => {
    assertSettled(await provider.lookUp(one), 'succeeded')
    assertSettled(await provider.charge(two), 'succeeded')
  })
  await withSimulator(async (provider) => assertSettled(await provider.lookUp(two), 'succeeded'))
  assert.doesNotMatch(await readFile(ledgerFile, 'utf8'), /torn/)
})

test('a damaged line in the middle stops the start, and says which', async () => {
  await writeFile(ledgerFile, '{"kind":"charge","key":"a","state":"refused","at":"x"}\nnonsense\n{}\n')
  await assert.rejects(startSimulator({ port: 0, ledgerFile, log: silent }), /ledger\.ndjson:2 cannot be read/)
})

test('a second simulator is turned away while the first runs, in this process and in another', async () => {
  await withSimulator(async () => {
    await assert.rejects(startSimulator({ port: 0, ledgerFile, log: silent }), UsageError)
    await assert.rejects(spawnSimulator(), /Another simulator has .* open/)
  })
  const child = await spawnSimulator()
  await assert.rejects(startSimulator({ port: 0, ledgerFile, log: silent }), UsageError)
  await kill(child.process)
  await withSimulator(async () => {})
})

test('a start on a port that is taken releases the ledger', async () => {
  await withSimulator(async (_provider, url) => {
    const other = { port: Number(new URL(url).port), ledgerFile: join(folder, 'other.ndjson'), log: silent }
    await assert.rejects(startSimulator(other), { code: 'EADDRINUSE' })
    await (await startSimulator({ ...other, port: 0 })).close()
  })
})

test('on a full disk every response is 500, and after a restart every acknowledged charge is there', async () => {
  const child = await spawnSimulator('ulimit -f 8; trap "" XFSZ;')
  const provider = adapter(child.url)
  const told: ChargeRequest[] = []
  let response = await provider.charge(chargeRequest('pm_card_visa'))
  for (let i = 0; i < 100 && response.outcome === 'succeeded'; i++) {
    const request = chargeRequest('pm_card_visa')
    response = await provider.charge(request)
    if (response.outcome === 'succeeded') told.push(request)
  }
  assert.deepEqual(response, { outcome: 'unknown', why: 'returned status 500' })
  assert.ok(told.length > 3)
  assert.equal((await provider.lookUp(told[0]!)).outcome, 'unknown')
  assert.equal(await provider.isReachable(), false)
  await kill(child.process)
  await withSimulator(async (again) => {
    for (const request of told) assertSettled(await again.lookUp(request), 'succeeded')
    assertSettled(await again.charge(chargeRequest('pm_card_visa')), 'succeeded')
  })
})

const disk = mountSmallDisk(1)
after(disk.unmount)

test(titled('with room on the disk again every charge is there, also the one that failed', disk.why), {
  skip: disk.why,
}, async () => {
  const filler = join(disk.folder, 'filler')
  ledgerFile = join(disk.folder, 'ledger.ndjson')
  const charges = Array.from({ length: 100 }, () => chargeRequest('pm_card_visa'))
  await withSimulator(async (provider) => {
    fill(filler)
    let charged = 0
    while ((await provider.charge(charges[charged]!)).outcome === 'succeeded') charged++
    rmSync(filler)
    for (const request of charges.slice(0, charged + 1)) assertSettled(await provider.charge(request), 'succeeded')
    charges.splice(charged + 1)
  })
  await withSimulator(async (provider) => {
    for (const request of charges) assertSettled(await provider.lookUp(request), 'succeeded')
  })
})

/** Puts the times of late charges in the ledger into the past. */
async function makeDue(): Promise<void> {
  const text = await readFile(ledgerFile, 'utf8')
  await writeFile(ledgerFile, text.replaceAll(/"due_at":"[^"]+"/g, '"due_at":"2026-01-01T00:00:00.000000Z"'))
}

function adapter(url: string): SimulatorProvider {
  return new SimulatorProvider({ url, clock: new HandClock(), deadlineMs: DEADLINE_MS })
}

async function withSimulator<T>(work: (provider: SimulatorProvider, url: string) => Promise<T>): Promise<T> {
  const { url, close } = await startSimulator({ port: 0, ledgerFile, log: silent })
  const provider = adapter(url)
  try {
    return await work(provider, url)
  } finally {
    provider.close()
    await close()
  }
}

/** Runs one as its own process; rejects with what it wrote when it does not start. */
async function spawnSimulator(limits = ''): Promise<{ process: ChildProcess; url: string }> {
  const server = new URL('../../src/simulators/server.ts', import.meta.url).href
  const program = `
    import { startSimulator } from ${JSON.stringify(server)}
    const log = { error() {} }
    const { url } = await startSimulator({ port: 0, ledgerFile: process.argv[1], log })
    console.log(url)`
  const command = `${limits} exec "$@"`
  const node = [process.execPath, '--input-type=module', '--eval', program, ledgerFile]
  const child = spawn('bash', ['-c', command, 'bash', ...node], { stdio: ['ignore', 'pipe', 'pipe'] })
  children.push(child)
  let said = ''
  child.stderr.on('data', (text) => {
    said += text
  })
  const first = await Promise.race([once(child.stdout, 'data'), once(child, 'close').then(() => null)])
  if (first === null) throw new Error(said)
  return { process: child, url: String(first[0]).trim() }
}

async function kill(child: ChildProcess): Promise<void> {
  const end = once(child, 'close')
  child.kill('SIGKILL')
  await end
}
