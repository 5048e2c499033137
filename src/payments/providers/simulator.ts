// The adapter for the provider simulator, which moves money in one call and never forgets a key.
import { defaultMaxInFlight, Guard, type GuardOptions } from './guard.ts'
import type { Conflict, NotBegun, NotFound, Refused, Settled, Unknown } from './outcomes.ts'
import {
  type ChargeRequest,
  type Movement,
  type Provider,
  ProviderError,
  type Reference,
  type RefundAtProvider,
  type RefundRequest,
  type Traits,
} from './provider.ts'
import { readMovement, readRefunds, readVerdict, type Verdict } from './simulator-responses.ts'
import { type HttpCall, Transport } from './transport.ts'

export interface SimulatorOptions extends GuardOptions {
  /** The simulator's address. A function if it can change, because another process may take over the simulator. */
  url: string | (() => string)
  /** The merchant account; all of them if omitted. */
  merchantId?: string
  /** Connections shared by several accounts; the caller closes them. */
  transport?: Transport
}

type Kind = 'charges' | 'refunds'
type Outcome = Verdict['outcome']

const afterRefusal = ['succeeded', 'failed', 'refused'] as const
const afterOrder = [...afterRefusal, 'conflict'] as const
const afterLookUp = [...afterRefusal, 'not_found'] as const

export class SimulatorProvider implements Provider {
  readonly name = 'simulator'
  readonly merchantId: string
  readonly isSandbox = true
  readonly traits: Traits = {
    prepares: false,
    lookUp: 'reference',
    keyLifeMs: Number.POSITIVE_INFINITY,
    refuse: 'cancel_by_key',
    refunds: 'synchronous',
    refuseRefund: 'cancel_by_key',
  }
  readonly #guard: Guard
  readonly #transport: Transport
  readonly #sharesTransport: boolean

  constructor({ url, merchantId = '*', transport, ...limits }: SimulatorOptions) {
    this.merchantId = merchantId
    this.#guard = new Guard(limits)
    this.#sharesTransport = transport !== undefined
    const address = typeof url === 'string' ? () => url : url
    this.#transport = transport ?? new Transport(address, limits.maxInFlight ?? defaultMaxInFlight)
  }

  /** The simulator accepts every amount and currency that the billing API accepts. */
  accepts(): undefined {}

  admits(): boolean {
    return this.#guard.admits()
  }

  circuitIsOpen(): boolean {
    return this.#guard.circuit.isOpen()
  }

  async isReachable(): Promise<boolean> {
    const ask = (signal: AbortSignal) => this.#transport.send({ method: 'GET', path: '/health' }, signal)
    const response = await this.#guard.run(ask, undefined, { moves: false })
    return 'status' in response && response.status === 200
  }

  charge(request: ChargeRequest, signal?: AbortSignal): Promise<Settled | NotBegun | Unknown | Refused | Conflict> {
    return this.#order('charges', request, { token: request.token }, signal)
  }

  lookUp(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused | NotFound> {
    return this.#lookUp('charges', reference.key, signal)
  }

  refuse(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused> {
    return this.#refuse('charges', reference.key, signal)
  }

  refund(request: RefundRequest, signal?: AbortSignal): Promise<Settled | NotBegun | Unknown | Refused | Conflict> {
    return this.#order('refunds', request, { charge_transaction_id: request.chargeTransactionId }, signal)
  }

  lookUpRefund(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused | NotFound> {
    return this.#lookUp('refunds', reference.key, signal)
  }

  refuseRefund(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused> {
    return this.#refuse('refunds', reference.key, signal)
  }

  async refundsOf(
    { chargeTransactionId }: { chargeTransactionId: string },
    signal?: AbortSignal,
  ): Promise<RefundAtProvider[] | Unknown> {
    const path = `/refunds?charge_transaction_id=${encodeURIComponent(chargeTransactionId)}`
    const ask = async (deadline: AbortSignal) =>
      readRefunds(await this.#transport.send({ method: 'GET', path }, deadline))
    return this.#guard.run(ask, signal, { moves: false })
  }

  /**
   * The deadline limits the time between two lines, not the whole list, which may be long. Time that the reader spends on an
   * item does not count.
   */
  async *list(since: string): AsyncGenerator<Movement> {
    const { deadlineMs } = this.#guard
    const abort = new AbortController()
    const startTimer = () => setTimeout(() => abort.abort(new ProviderError(`silent for ${deadlineMs} ms`)), deadlineMs)
    let timer = startTimer()
    let isWhole = false
    try {
      for await (const line of this.#transport.lines(`/ledger?since=${encodeURIComponent(since)}`, abort.signal)) {
        clearTimeout(timer)
        if (line.startsWith('{')) yield readMovement(line)
        isWhole ||= line.startsWith(']')
        timer = startTimer()
      }
      if (!isWhole) throw new ProviderError('the list broke off')
    } finally {
      clearTimeout(timer)
    }
  }

  close(): void {
    if (!this.#sharesTransport) this.#transport.close()
  }

  #order(
    kind: Kind,
    request: ChargeRequest | RefundRequest,
    target: { token: string } | { charge_transaction_id: string },
    signal?: AbortSignal,
  ): Promise<Settled | NotBegun | Unknown | Refused | Conflict> {
    const body = {
      key: request.key,
      reference: request.reference,
      amount_minor: String(request.amountMinor),
      currency_code: request.currencyCode,
      merchant_id: request.merchantId,
      region: request.region,
      ...target,
    }
    const headers: Record<string, string> =
      request.traceparent === undefined ? {} : { traceparent: request.traceparent }
    const call: HttpCall = { method: 'POST', path: `/${kind}`, body, headers }
    return this.#guard.begin((deadline) => this.#verdict(call, afterOrder, deadline), signal)
  }

  #lookUp(kind: Kind, key: string, signal?: AbortSignal): Promise<Settled | Unknown | Refused | NotFound> {
    return this.#ask({ method: 'GET', path: `/${kind}/${encodeURIComponent(key)}` }, afterLookUp, signal)
  }

  #refuse(kind: Kind, key: string, signal?: AbortSignal): Promise<Settled | Unknown | Refused> {
    return this.#ask({ method: 'POST', path: `/${kind}/${encodeURIComponent(key)}/refuse` }, afterRefusal, signal)
  }

  #ask<Expected extends Outcome>(
    call: HttpCall,
    expected: readonly Expected[],
    signal?: AbortSignal,
  ): Promise<Extract<Verdict, { outcome: Expected }> | Unknown> {
    return this.#guard.run((deadline) => this.#verdict(call, expected, deadline), signal, { moves: false })
  }

  async #verdict<Expected extends Outcome>(
    call: HttpCall,
    expected: readonly Expected[],
    deadline: AbortSignal,
  ): Promise<Extract<Verdict, { outcome: Expected }>> {
    const response = await this.#transport.send(call, deadline)
    const verdict = readVerdict(response)
    if (!isOneOf(verdict, expected)) throw new ProviderError(`returned status ${response.status} ${verdict.outcome}`)
    return verdict
  }
}

function isOneOf<Expected extends Outcome>(
  verdict: Verdict,
  expected: readonly Expected[],
): verdict is Extract<Verdict, { outcome: Expected }> {
  return (expected as readonly Outcome[]).includes(verdict.outcome)
}
