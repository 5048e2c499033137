// The adapter of the provider simulator: one call moves the money, and a key is remembered for ever.
import { MOST_MINOR, minorUnits } from '../lib/money.ts'
import { defaultMaxInFlight, Guard, type GuardOptions } from './guard.ts'
import {
  type ChargeRequest,
  type Conflict,
  type Movement,
  type NotFound,
  noDetails,
  type PaymentDetails,
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
import { type Answer, fieldsOf, type Question, Transport } from './transport.ts'

export interface SimulatorOptions extends GuardOptions {
  /** The simulator's address; a function when it can change, for another process may take the simulator over. */
  url: string | (() => string)
  /** The merchant account; left out: every one. */
  merchantId?: string
  /** Connections that several accounts share, and that their owner closes. */
  transport?: Transport
}

type Kind = 'charges' | 'refunds'
type Verdict = Settled | Refused | NotFound | Conflict
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

  charge(request: ChargeRequest, signal?: AbortSignal): Promise<Settled | Unknown | Refused | Conflict> {
    return this.#order('charges', request, { token: request.token }, signal)
  }

  lookUp(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused | NotFound> {
    return this.#lookUp('charges', reference.key, signal)
  }

  refuse(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused> {
    return this.#refuse('charges', reference.key, signal)
  }

  refund(request: RefundRequest, signal?: AbortSignal): Promise<Settled | Unknown | Refused | Conflict> {
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
  ): Promise<Settled | Unknown | Refused | Conflict> {
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
    return this.#ask({ method: 'POST', path: `/${kind}`, body, headers }, afterOrder, signal, { moves: true })
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
    { moves = false } = {},
  ): Promise<Extract<Verdict, { outcome: Expected }> | Unknown> {
    const ask = async (deadline: AbortSignal) => {
      const answer = await this.#transport.ask(question, deadline)
      const verdict = readVerdict(answer)
      if (!isOneOf(verdict, expected)) throw new ProviderTrouble(`answered ${answer.status} ${verdict.outcome}`)
      return verdict
    }
    return this.#guard.run(ask, signal, { moves })
  }
}

function isOneOf<Expected extends Outcome>(
  verdict: Verdict,
  expected: readonly Expected[],
): verdict is Extract<Verdict, { outcome: Expected }> {
  return (expected as readonly Outcome[]).includes(verdict.outcome)
}

/** Trusts only what the simulator says in so many words: a 404 of a proxy in between is not "this key is unknown". */
function readVerdict({ status, body }: Answer): Verdict {
  const { outcome, reference, amount_minor, currency_code, details } = fieldsOf(body)
  if (status === 404 && outcome === 'not_found') return { outcome }
  if (status === 409 && outcome === 'conflict') return { outcome }
  if (status !== 200) throw new ProviderTrouble(`answered ${status}`)
  if (outcome === 'refused') return { outcome }
  if (outcome !== 'succeeded' && outcome !== 'failed') throw new ProviderTrouble('answered without an outcome')
  if (typeof reference !== 'string' || typeof currency_code !== 'string' || !isDigits(amount_minor)) {
    throw new ProviderTrouble('answered an outcome without saying of what')
  }
  // What no charge of ours can be: settling by it would fail, however often it is tried.
  if (!isPayable(BigInt(amount_minor), currency_code))
    throw new ProviderTrouble('answered an outcome of no payable sum')
  return {
    outcome,
    reference,
    amountMinor: BigInt(amount_minor),
    currencyCode: currency_code,
    details: readDetails(fieldsOf(details)),
  }
}

function readRefunds({ status, body }: Answer): RefundAtProvider[] {
  const { refunds } = fieldsOf(body)
  if (status !== 200 || !Array.isArray(refunds)) throw new ProviderTrouble(`answered ${status} without a list`)
  return refunds.map((refund): RefundAtProvider => {
    const verdict = readVerdict({ status, body: refund })
    const { key, at } = fieldsOf(refund)
    if (verdict.outcome !== 'succeeded' || typeof key !== 'string' || typeof at !== 'string') {
      throw new ProviderTrouble('listed a refund that cannot be read')
    }
    const { outcome, reference, amountMinor, currencyCode, details } = verdict
    const transactionId = details.psp_transaction_id
    if (transactionId === null) throw new ProviderTrouble('listed a refund without its id')
    return { key, reference, transactionId, status: outcome, amountMinor, currencyCode, at, details }
  })
}

function readDetails(told: Record<string, unknown>): PaymentDetails {
  const known = Object.keys(noDetails).filter((name) => isScalar(told[name]))
  return { ...noDetails, ...Object.fromEntries(known.map((name) => [name, told[name]])) }
}

function readMovement(line: string): Movement {
  const told = fieldsOf(parse(line))
  const { type, key, reference, amount_minor, currency_code, psp_transaction_id, at } = told
  if (
    (type !== 'charge' && type !== 'refund') ||
    typeof key !== 'string' ||
    typeof reference !== 'string' ||
    !isDigits(amount_minor) ||
    typeof currency_code !== 'string' ||
    typeof psp_transaction_id !== 'string' ||
    typeof at !== 'string'
  ) {
    throw new ProviderTrouble('listed a movement that cannot be read')
  }
  const amountMinor = BigInt(amount_minor)
  const movement = { type, key, reference, amountMinor, currencyCode: currency_code, at } as const
  const charge = told.charge_transaction_id
  return {
    ...movement,
    transactionId: psp_transaction_id,
    ...(typeof charge === 'string' && { chargeTransactionId: charge }),
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line.replace(/,$/, ''))
  } catch {
    throw new ProviderTrouble('listed something that is not JSON')
  }
}

function isPayable(amountMinor: bigint, currencyCode: string): boolean {
  return amountMinor > 0n && amountMinor <= MOST_MINOR && minorUnits(currencyCode) !== undefined
}

function isDigits(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9]{1,30}$/.test(value)
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean'
}
