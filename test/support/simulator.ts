// A simulator for tests, on a ledger of its own, that can be stopped and started again at the same address.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { startSimulator } from '../../src/simulator/server.ts'

export const silent = pino({ level: 'silent' })

/** Its ledger does not wait for the disk: it has to survive a process here, not a power failure. */
export async function openSimulator() {
  const folder = await mkdtemp(join(tmpdir(), 'tundish-simulator-'))
  const ledgerFile = join(folder, 'ledger.ndjson')
  const options = { ledgerFile, log: silent, fsync: false }
  let running = await startSimulator({ ...options, port: 0 })
  const { url } = running
  return {
    url,
    ledgerFile,
    stop: () => running.close(),
    start: async () => {
      running = await startSimulator({ ...options, port: Number(new URL(url).port) })
    },
    cleanUp: async () => {
      await running.close()
      await rm(folder, { recursive: true })
    },
  }
}
