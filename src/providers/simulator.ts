// The adapter of the provider simulator: one call moves the money, and a key is remembered for ever.
import { defaultMaxInFlight, Guard, type GuardOptions } from './guard.ts'
import {
  type ChargeRequest,
  type Conflict,
  type Movement,
  type NotBegun,
  type NotFound,
  type Provider,
  ProviderTrouble,
  type Reference,
  type RefundAtProvider,
  type RefundRequest,
  type Refused,
  type Settled,
  type Traits,
  type Unknown,
} from './provider.ts'
import { readMovement, readRefunds, readVerdict, type Verdict } from './simulator-answers.ts'
import { type Question, Transport } from './transport.ts'

export interface SimulatorOptions extends GuardOptions {
  /** The simulator's address; a function when it can change, for another process may take the simulator over. */
  url: string | (() => string)
  /** The merchant account; left out: every one. */
  merchantId?: string
  /** Connections that several accounts share, and that their owner closes. */
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

  /** The simulator takes every amount and currency that the core lets pass. */
  accepts(): undefined {}

  admits(): boolean {
    return this.#guard.admits()
  }

  circuitIsOpen(): boolean {
    return this.#guard.circuit.isOpen()
  }

  async isReachable(): Promise<boolean> {
    const ask = (signal: AbortSignal) => this.#transport.ask({ method: 'GET', path: '/health' }, signal)
    const answer = await this.#guard.run(ask, undefined, { moves: false })
    return 'status' in answer && answer.status === 200
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
      readRefunds(await this.#transport.ask({ method: 'GET', path }, deadline))
    return this.#guard.run(ask, signal, { moves: false })
  }

  /**
   * The deadline limits each silence of the simulator, not the whole list, which may be long. Time that the reader spends
   * between two items does not count.
   */
  async *list(since: string): AsyncGenerator<Movement> {
    const { deadlineMs } = this.#guard
    const abort = new AbortController()
    const listen = () => setTimeout(() => abort.abort(new ProviderTrouble(`silent for ${deadlineMs} ms`)), deadlineMs)
    let timer = listen()
    let isWhole = false
    try {
      for await (const line of this.#transport.lines(`/ledger?since=${encodeURIComponent(since)}`, abort.signal)) {
        clearTimeout(timer)
        if (line.startsWith('{')) yield readMovement(line)
        isWhole ||= line.startsWith(']')
        timer = listen()
      }
      if (!isWhole) throw new ProviderTrouble('the list broke off')
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
    const question: Question = { method: 'POST', path: `/${kind}`, body, headers }
    return this.#guard.begin((deadline) => this.#answer(question, afterOrder, deadline), signal)
  }

  #lookUp(kind: Kind, key: string, signal?: AbortSignal): Promise<Settled | Unknown | Refused | NotFound> {
    return this.#ask({ method: 'GET', path: `/${kind}/${encodeURIComponent(key)}` }, afterLookUp, signal)
  }

  #refuse(kind: Kind, key: string, signal?: AbortSignal): Promise<Settled | Unknown | Refused> {
    return this.#ask({ method: 'POST', path: `/${kind}/${encodeURIComponent(key)}/refuse` }, afterRefusal, signal)
  }

  #ask<Expected extends Outcome>(
    question: Question,
    expected: readonly Expected[],
    signal?: AbortSignal,
  ): Promise<Extract<Verdict, { outcome: Expected }> | Unknown> {
    return this.#guard.run((deadline) => this.#answer(question, expected, deadline), signal, { moves: false })
  }

  async #answer<Expected extends Outcome>(
    question: Question,
    expected: readonly Expected[],
    deadline: AbortSignal,
  ): Promise<Extract<Verdict, { outcome: Expected }>> {
    const answer = await this.#transport.ask(question, deadline)
    const verdict = readVerdict(answer)
    if (!isOneOf(verdict, expected)) throw new ProviderTrouble(`answered ${answer.status} ${verdict.outcome}`)
    return verdict
  }
}

function isOneOf<Expected extends Outcome>(
  verdict: Verdict,
  expected: readonly Expected[],
): verdict is Extract<Verdict, { outcome: Expected }> {
  return (expected as readonly Outcome[]).includes(verdict.outcome)
}
