// The payment provider as a process sees it: behind a network that loses or delays requests and loses responses.
import type { Settled, Unknown } from '../../src/payments/providers/outcomes.ts'
import type { Provider, Reference, RefundRequest, Traits } from '../../src/payments/providers/provider.ts'
import { oneStep } from '../payments/billing/scripted-provider.ts'
import { type Fate, KEY_LIFE_MS, type Ledger, LIST_LAG_MS } from './ledger.ts'
import type { Process, Scheduler } from './scheduler.ts'

export interface NetworkFaults {
  /** The request never arrives. */
  lost: number
  /** It arrives late, perhaps long after its caller has given up. */
  late: number
  /** The response never arrives, or late. */
  unheard: number
  /** The card is declined. */
  declined: number
  /** A cent less than requested is approved. */
  partial: number
}

/** The current calls of processes for charges they claimed: within the deadline no other process may end these charges. */
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

export interface Behind {
  process: Process
  scheduler: Scheduler
  ledger: Ledger
  owners: OwnersCalls
  faults: NetworkFaults
  deadlineMs: number
  /** Whether the seed has the withholding provider, too. */
  withholds: boolean
  violated(text: string): void
}

/** A one-step provider for all merchant accounts, the accounts of a two-step provider, and one that withholds known results. */
export function providersOf(behind: Behind): Provider[] {
  const { process, scheduler, ledger, owners, faults, deadlineMs, violated } = behind
  const { random } = scheduler

  /** One call: a request and a response, each with its own faults, and the deadline. */
  function call<T>(name: string, handle: () => T): Promise<T | Unknown> {
    return new Promise((resolve) => {
      const response = (value: T | Unknown) => {
        scheduler.cancel(deadline)
        resolve(value)
      }
      const deadline = scheduler.add(process, deadlineMs, () => response({ outcome: 'unknown', why: 'the deadline' }))
      const fate = random.next()
      if (fate < faults.lost) return scheduler.tell(`${process.name}: ${name} gets lost`)
      const isLate = fate < faults.lost + faults.late
      const travelMs = isLate ? random.between(1, 4 * deadlineMs) : random.between(0, 20)
      scheduler.add(undefined, travelMs, () => {
        const value = handle()
        scheduler.tell(`provider: ${name} of ${process.name}: ${(value as { outcome?: string }).outcome ?? 'a list'}`)
        if (random.chance(faults.unheard)) return
        scheduler.add(process, random.between(0, 20), () => response(value))
      })
    })
  }

  const fate = (): Fate => ({ isDeclined: random.chance(faults.declined), isPartial: random.chance(faults.partial) })

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

  const shared = {
    isSandbox: true,
    accepts: () => undefined,
    admits: () => true,
    circuitIsOpen: () => false,
    isReachable: async () => true,
    lookUpRefund: ({ key }: Reference) => call('look-up of a refund', () => ledger.look('refund', key) as Settled),
    refundsOf: (charge: { chargeTransactionId: string }) =>
      call('refunds of a charge', () => ledger.refundsOf(charge.chargeTransactionId)),
    close() {},
  }

  const refund = (request: RefundRequest, keyLifeMs?: number) =>
    owned(
      request.key,
      call('refund', () => ledger.take(scheduler.nowMs, request, { ...fate(), isPartial: false }, keyLifeMs)),
    )

  const inOneStep: Provider = {
    ...shared,
    refund: (request) => refund(request),
    name: ONE_STEP,
    merchantId: '*',
    traits: oneStep,
    charge: (request) =>
      owned(
        request.key,
        call('charge', () => ledger.take(scheduler.nowMs, request, fate())),
      ),
    lookUp: ({ key }) => call('look-up', () => ledger.look('charge', key)),
    refuse: (about) => refuse('charge', about),
    refuseRefund: (about) => refuse('refund', about),
    async *list(since) {
      yield* ledger.list(ONE_STEP, '*', since)
    },
  }

  const inTwoSteps = (merchantId: string): Provider => ({
    ...shared,
    refund: (request) => refund(request, KEY_LIFE_MS),
    name: TWO_STEPS,
    merchantId,
    traits: twoStepTraits,
    prepare: (request) => call('prepare', () => ledger.prepare(scheduler.nowMs, request)),
    confirm: ({ key, handle }) =>
      owned(
        key,
        call('confirm', () => ledger.confirm(scheduler.nowMs, handle, fate())),
      ),
    lookUp: ({ handle }) => call('look-up', () => ledger.lookAt(handle)),
    refuse: ({ key, handle }) =>
      call('cancel', () => {
        if (owners.isOpen(key, scheduler.nowMs)) violated('a charge was cancelled under the hands of its own process')
        return ledger.cancel(handle!)
      }),
    findByKey: ({ key }, span) => call('find by key', () => ledger.findByKey({ key, merchantId }, span)),
    disputesOf: ({ chargeTransactionId }) => call('disputes of a charge', () => ledger.disputesOf(chargeTransactionId)),
    async *list(since) {
      yield* ledger.list(TWO_STEPS, merchantId, since)
    },
    async *listDisputes() {
      yield* ledger.listDisputes(merchantId)
    },
  })
  const once = (type: 'charge' | 'refund', about: Reference) =>
    call(`look-up of a ${type}`, () => ledger.lookOnce(scheduler.nowMs, type, about))
  const withholding: Provider = {
    ...shared,
    name: WITHHOLDING,
    merchantId: WITHHOLDING_ACCOUNT,
    traits: withholdingTraits(deadlineMs),
    charge: (request) =>
      owned(
        request.key,
        call('charge', () =>
          ledger.takeOnce(scheduler.nowMs, request, { ...fate(), isAuthorized: random.chance(0.4) }, WITHHOLDING),
        ),
      ),
    capture: ({ key }) =>
      owned(
        key,
        call('capture', () => ledger.capture(scheduler.nowMs, key, fate(), WITHHOLDING)),
      ),
    lookUp: (about) => once('charge', about),
    // The core waits such charges out.
    refuse: () => Promise.resolve({ outcome: 'unknown', why: 'what is not listed cannot be cancelled' }),
    refund: (request) =>
      owned(
        request.key,
        call(
          'refund',
          () => ledger.takeOnce(scheduler.nowMs, request, { ...fate(), isPartial: false }, WITHHOLDING) as Settled,
        ),
      ),
    lookUpRefund: (about) => once('refund', about) as Promise<Settled>,
    async *list(since) {
      yield* ledger.list(WITHHOLDING, WITHHOLDING_ACCOUNT, since)
    },
  }
  return [inOneStep, ...TWO_STEP_ACCOUNTS.map(inTwoSteps), ...(behind.withholds ? [withholding] : [])]
}

export const ONE_STEP = 'simulator'
export const TWO_STEPS = 'two-steps'
/** The second one is connected later, in some seeds after a backup was taken. */
export const TWO_STEP_ACCOUNTS = ['m2', 'm3'] as const
/** As Primer: one step, the response to a known key is without the result, and payments are listed late. */
export const WITHHOLDING = 'withholding'
export const WITHHOLDING_ACCOUNT = 'm4'

const twoStepTraits: Traits = {
  prepares: true,
  lookUp: 'handle',
  keyLifeMs: KEY_LIFE_MS,
  refuse: 'cancel',
  refunds: 'synchronous',
  refuseRefund: 'wait_out',
}

// A late request takes up to four deadlines.
const withholdingTraits = (deadlineMs: number): Traits => ({
  prepares: false,
  lookUp: 'reference',
  keyLifeMs: 'unknown',
  lookUpLagMs: 4 * deadlineMs + LIST_LAG_MS,
  refuse: 'wait_out',
  refunds: 'synchronous',
  refuseRefund: 'wait_out',
})
