// A simulator with a provider's API, on its own ledger, with its control interface.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Simulator } from '../../src/simulators/run.ts'
import { silent } from './simulator.ts'

interface Given {
  port: number
  ledgerFile: string
  log: typeof silent
  fsync: boolean
}

/** It can be stopped, and started again at the same address. */
export async function openDialectSimulator<M>(name: string, begin: (given: Given) => Promise<Simulator>) {
  const folder = await mkdtemp(join(tmpdir(), `tundish-${name}-`))
  const ledgerFile = join(folder, 'ledger.ndjson')
  const start = (port: number) => begin({ ledgerFile, log: silent, fsync: false, port })
  let running = await start(0)
  const { url } = running
  const control = async <T = Record<string, unknown>>(path: string, body?: object): Promise<T> => {
    const json = body && { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(`${url}/_control${path}`, { method: 'POST', ...json })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response.json() as Promise<T>
  }
  return {
    url,
    ledgerFile,
    control,
    /** The number of calls to the API so far. */
    calls: async () => ((await (await fetch(`${url}/_control/calls`)).json()) as { calls: number }).calls,
    ledger: async () => (await fetch(`${url}/_control/ledger`)).json() as Promise<M[]>,
    stop: () => running.close(),
    start: async () => {
      running = await start(Number(new URL(url).port))
    },
    cleanUp: async () => {
      await running.close()
      await rm(folder, { recursive: true })
    },
  }
}
