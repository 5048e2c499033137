// The simulator with Primer's API on its own ledger, with the control interface; and the adapter for it.
import { PrimerProvider } from '../../src/payments/providers/primer/primer.ts'
import { type PrimerSimulatorOptions, startPrimerSimulator } from '../../src/simulators/primer/server.ts'
import { charging } from '../payments/providers/charging.ts'
import { openDialectSimulator } from './dialect-simulator.ts'
import { HandClock } from './hand-clock.ts'

export const PRIMER_KEY = 'simulated-primer-key-0001'

export interface PrimerMovement {
  type: 'charge' | 'refund'
  payment: string
  key: string
  amount: number
  currencyCode: string
  metadata: Record<string, string>
}

export async function openPrimerSimulator(more: Partial<PrimerSimulatorOptions> = {}) {
  const simulator = await openDialectSimulator<PrimerMovement>('primer', (given) =>
    startPrimerSimulator({ ...given, ...more, port: given.port }),
  )
  return {
    ...simulator,
    /** Calls the API as the adapter does. */
    call: async (method: string, path: string, body?: object, headers: Record<string, string> = {}) => {
      const type = body && { 'content-type': 'application/json' }
      const own = { 'x-api-key': PRIMER_KEY, 'x-api-version': '2.4', ...type, ...headers }
      const sent = { method, headers: own, ...(body && { body: JSON.stringify(body) }) }
      const response = await fetch(simulator.url + path, sent)
      return { status: response.status, body: (await response.json()) as Record<string, unknown> }
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
