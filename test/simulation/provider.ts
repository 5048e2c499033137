// The scripted provider behind an unreliable network: messages get lost, come late, and answers too.
import {
  type ChargeRequest,
  type Conflict,
  type NotFound,
  noDetails,
  type Provider,
  type Reference,
  type RefundRequest,
  type Refused,
  type Settled,
  type Unknown,
} from '../../src/providers/provider.ts'
import { oneStep } from '../support/scripted-provider.ts'
import type { Process, Scheduler } from './scheduler.ts'

export interface NetworkFaults {
  /** The request never arrives. */
  lost: number
  /** It arrives late, perhaps long after its caller has given up. */
  late: number
  /** The answer never arrives, or late. */
  unanswered: number
  /** The card is declined. */
  declined: number
}

export interface Movement {
  type: 'charge' | 'refund'
  key: string
  reference: string
  amountMinor: bigint
  /** Of a refund: what it pays back. */
  charge: string | undefined
}

type Entry = { state: 'refused' } | { state: 'settled'; verdict: Settled; charge: string | undefined }

/** What the provider knows; it honours one movement a key, and nothing else: rules on sums are for us to keep. */
export class Ledger {
  readonly movements: Movement[] = []
  readonly #entries = new Map<string, Entry>()

  find(type: 'charge' | 'refund', key: string): Entry | undefined {
    return this.#entries.get(`${type} ${key}`)
  }

  take(
    type: 'charge' | 'refund',
    request: ChargeRequest | RefundRequest,
    isDeclined: boolean,
  ): Settled | Refused | Conflict {
    const { key, reference, amountMinor, currencyCode } = request
    const charge = 'chargeTransactionId' in request ? request.chargeTransactionId : undefined
    const known = this.find(type, key)
    if (known?.state === 'refused') return { outcome: 'refused' }
    if (known) return isSame(known, amountMinor, charge) ? known.verdict : { outcome: 'conflict' }
    const details = { ...noDetails, psp_transaction_id: `${type}-${reference}` }
    const verdict: Settled = {
      outcome: isDeclined ? 'failed' : 'succeeded',
      reference,
      amountMinor,
      currencyCode,
      details,
    }
    this.#entries.set(`${type} ${key}`, { state: 'settled', verdict, charge })
    if (!isDeclined) this.movements.push({ type, key, reference, amountMinor, charge })
    return verdict
  }

  look(type: 'charge' | 'refund', key: string): Settled | Refused | NotFound {
    const known = this.find(type, key)
    if (!known) return { outcome: 'not_found' }
    return known.state === 'refused' ? { outcome: 'refused' } : known.verdict
  }

  refuse(type: 'charge' | 'refund', key: string): Settled | Refused {
    const known = this.find(type, key)
    if (known?.state === 'settled') return known.verdict
    this.#entries.set(`${type} ${key}`, { state: 'refused' })
    return { outcome: 'refused' }
  }
}

function isSame(known: Entry & { state: 'settled' }, amountMinor: bigint, charge: string | undefined): boolean {
  return known.verdict.amountMinor === amountMinor && known.charge === charge
}

/** The calls that processes are making for charges they claimed: within the deadline nobody else may touch them. */
export class OwnersCalls {
  readonly #open = new Map<string, { process: Process; untilMs: number }>()

  begin(key: string, process: Process, untilMs: number): void {
    this.#open.set(key, { process, untilMs })
  }

  end(key: string): void {
    this.#open.delete(key)
  }

  isOpen(key: string, nowMs: number): boolean {
    const call = this.#open.get(key)
    return call?.process.isAlive === true && nowMs < call.untilMs
  }
}

export function providerOf(
  process: Process,
  scheduler: Scheduler,
  ledger: Ledger,
  owners: OwnersCalls,
  faults: NetworkFaults,
  deadlineMs: number,
  violated: (text: string) => void,
): Provider {
  const { random } = scheduler

  /** One call: a request and an answer, each with a fate of its own, and the deadline. */
  function call<T>(name: string, handle: () => T): Promise<T | Unknown> {
    return new Promise((resolve) => {
      const answer = (value: T | Unknown) => {
        scheduler.cancel(deadline)
        resolve(value)
      }
      const deadline = scheduler.add(process, deadlineMs, () => answer({ outcome: 'unknown', why: 'the deadline' }))
      const fate = random.next()
      if (fate < faults.lost) return scheduler.tell(`${process.name}: ${name} gets lost`)
      const isLate = fate < faults.lost + faults.late
      const travelMs = isLate ? random.between(1, 4 * deadlineMs) : random.between(0, 20)
      scheduler.add(undefined, travelMs, () => {
        const value = handle()
        scheduler.tell(`provider: ${name} of ${process.name}: ${(value as { outcome: string }).outcome}`)
        if (random.chance(faults.unanswered)) return
        scheduler.add(process, random.between(0, 20), () => answer(value))
      })
    })
  }

  const isDeclined = () => random.chance(faults.declined)

  async function owned<T>(key: string, calling: Promise<T>): Promise<T> {
    owners.begin(key, process, scheduler.nowMs + deadlineMs)
    const value = await calling
    owners.end(key)
    return value
  }

  function refuse(type: 'charge' | 'refund', { key }: Reference) {
    return call(`refuse ${type}`, () => {
      if (owners.isOpen(key, scheduler.nowMs)) violated(`the ${type} was refused under the hands of its own process`)
      return ledger.refuse(type, key)
    })
  }

  return {
    name: 'simulator',
    merchantId: '*',
    isSandbox: true,
    traits: oneStep,
    accepts: () => undefined,
    admits: () => true,
    circuitIsOpen: () => false,
    isReachable: async () => true,
    charge: (request) =>
      owned(
        request.key,
        call('charge', () => ledger.take('charge', request, isDeclined())),
      ),
    lookUp: ({ key }) => call('look-up', () => ledger.look('charge', key)),
    refuse: (about) => refuse('charge', about),
    refund: (request) =>
      owned(
        request.key,
        call('refund', () => ledger.take('refund', request, isDeclined())),
      ),
    lookUpRefund: ({ key }) => call('look-up of a refund', () => ledger.look('refund', key)),
    refuseRefund: (about) => refuse('refund', about),
    refundsOf: async () => ({ outcome: 'unknown', why: 'the simulation has no list' }),
    async *list() {},
    close() {},
  }
}
