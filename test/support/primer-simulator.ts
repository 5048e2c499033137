// The simulator with Primer's API on a ledger of its own, with the control interface; and the adapter for it.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PrimerProvider } from '../../src/payments/providers/primer/primer.ts'
import { type PrimerSimulatorOptions, startPrimerSimulator } from '../../src/simulators/primer/server.ts'
import { charging } from './charging.ts'
import { HandClock } from './hand-clock.ts'
import { silent } from './simulator.ts'

export const PRIMER_KEY = 'simulated-primer-key-0001'

export interface PrimerMovement {
  type: 'charge' | 'refund'
  payment: string
  key: string
  amount: number
  currencyCode: string
  metadata: Record<string, string>
}

/** It can be stopped, and started again at the same address. */
export async function openPrimerSimulator(more: Partial<PrimerSimulatorOptions> = {}) {
  const folder = await mkdtemp(join(tmpdir(), 'tundish-primer-'))
  const options = { ledgerFile: join(folder, 'ledger.ndjson'), log: silent, fsync: false, ...more }
  let running = await startPrimerSimulator({ ...options, port: 0 })
  const { url } = running
  const control = async <T = Record<string, unknown>>(path: string, body: object = {}): Promise<T> => {
    const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
    const response = await fetch(`${url}/_control${path}`, { method: 'POST', ...json })
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`)
    return response.json() as Promise<T>
  }
  return {
    url,
    ledgerFile: options.ledgerFile,
    control,
    /** Calls the API as the adapter does. */
    call: async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
      const own = { 'x-api-key': PRIMER_KEY, 'x-api-version': '2.4', 'content-type': 'application/json', ...headers }
      const response = await fetch(url + path, { method, headers: own, ...(body && { body: JSON.stringify(body) }) })
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
    },
    calls: async () => ((await (await fetch(`${url}/_control/calls`)).json()) as { calls: number }).calls,
    ledger: async () => (await fetch(`${url}/_control/ledger`)).json() as Promise<PrimerMovement[]>,
    stop: () => running.close(),
    start: async () => {
      running = await startPrimerSimulator({ ...options, port: Number(new URL(url).port) })
    },
    cleanUp: async () => {
      await running.close()
      await rm(folder, { recursive: true })
    },
  }
}

/** A Primer account: the simulator and the adapter for it. */
export async function openPrimerAccount(options: Partial<PrimerSimulatorOptions> = {}) {
  const simulator = await openPrimerSimulator(options)
  const account = { apiKey: PRIMER_KEY, apiUrl: simulator.url, merchantId: 'primer-1', isSandbox: true }
  const provider = new PrimerProvider({ ...account, clock: new HandClock() })
  return {
    ...simulator,
    ...charging(provider),
    provider,
    cleanUp: async () => {
      provider.close()
      await simulator.cleanUp()
    },
  }
}
