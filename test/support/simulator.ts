// A simulator with its own ledger, which can be stopped and restarted at the same address.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pino from 'pino'
import { startSimulator } from '../../src/simulators/server.ts'

export const silent = pino({ level: 'silent' })

/** The ledger is not synced to disk, because in tests it has to survive only the end of the process. */
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
