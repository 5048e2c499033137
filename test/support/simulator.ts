// A simulator for tests, on a ledger of its own, that can be stopped and started again at the same address.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { startSimulator } from '../../src/simulator/server.ts'

export const silent = pino({ level: 'silent' })

export async function openSimulator() {
  const folder = await mkdtemp(join(tmpdir(), 'tundish-simulator-'))
  const ledgerFile = join(folder, 'ledger.ndjson')
  let running = await startSimulator({ port: 0, ledgerFile, log: silent })
  const { url } = running
  return {
    url,
    ledgerFile,
    stop: () => running.close(),
    start: async () => {
      running = await startSimulator({ port: Number(new URL(url).port), ledgerFile, log: silent })
    },
    cleanUp: async () => {
      await running.close()
      await rm(folder, { recursive: true })
    },
  }
}
