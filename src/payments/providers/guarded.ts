// The part that the adapters share: every call of one merchant account goes through the guard of the account.
import { Guard, type GuardOptions } from './guard.ts'
import type { NotBegun, Unknown } from './outcomes.ts'
import { errorOf, type ProviderError } from './provider.ts'
import { causeOfError } from './transport.ts'

export interface GuardedOptions extends GuardOptions {
  merchantId: string
  isSandbox: boolean
  /** ISO 4217 codes in capitals. An empty list allows every currency whose amounts can be exchanged. */
  currencies?: readonly string[]
}

interface Api<Params> {
  get(path: string, params: Params, signal: AbortSignal): Promise<{ status: number }>
  close(): void
}

type Call<A, Request, Result> = (api: A, request: Request, deadline: AbortSignal) => Promise<Result>
type Guarded<Request, Result> = (request: Request, signal?: AbortSignal) => Promise<Result>

// Stripe allows about 100 calls a second, which is 40 concurrent calls of 400 ms. The others publish no limit.
const MAX_IN_FLIGHT = 40

export abstract class GuardedProvider<A extends Api<Record<string, string>>> {
  readonly merchantId: string
  readonly isSandbox: boolean
  protected readonly guard: Guard
  protected readonly api: A
  readonly #currencies: ReadonlySet<string>

  constructor(options: GuardedOptions, openApi: (maxInFlight: number) => A) {
    const { merchantId, isSandbox, currencies = [], maxInFlight = MAX_IN_FLIGHT, ...limits } = options
    this.merchantId = merchantId
    this.isSandbox = isSandbox
    this.#currencies = new Set(currencies)
    this.guard = new Guard({ ...limits, maxInFlight })
    this.api = openApi(maxInFlight)
  }

  /** A sentence that says that the merchant account does not offer the currency; undefined if it does. */
  protected refusesCurrency(currencyCode: string): string | undefined {
    if (this.#currencies.size === 0 || this.#currencies.has(currencyCode)) return undefined
    return `currency_code ${currencyCode} is not offered by the merchant account.`
  }

  admits(): boolean {
    return this.guard.admits()
  }

  circuitIsOpen(): boolean {
    return this.guard.circuit.isOpen()
  }

  takeTurn(signal: AbortSignal): Promise<void> {
    return this.guard.takeTurn(signal)
  }

  close(): void {
    this.api.close()
  }

  /** Whether a list, or another object that costs little, can be read. */
  protected async canRead(path: string, params: Record<string, string>): Promise<boolean> {
    const response = await this.guard.read((deadline) => this.api.get(path, params, deadline))
    return 'status' in response && response.status === 200
  }

  /** The result of a reading. Throws a `ProviderError` in place of `unknown`. */
  protected async orThrow<T extends object>(call: (deadline: AbortSignal) => Promise<T>, signal?: AbortSignal) {
    const read = await this.guard.read(call, signal)
    if ('outcome' in read) throw errorOf(read as Unknown)
    return read as T
  }

  /** Guards the call that begins a charge or a refund. */
  protected beginning<Q, R>(
    call: Call<A, Q, R>,
    causeOf = causeOfError as CauseOf,
  ): Guarded<Q, R | Unknown | NotBegun> {
    return (request, signal) => this.guard.begin((deadline) => call(this.api, request, deadline), signal, causeOf)
  }

  /** Guards another call that moves money. */
  protected moving<Q, R>(call: Call<A, Q, R>): Guarded<Q, R | Unknown> {
    return (request, signal) => this.guard.run((deadline) => call(this.api, request, deadline), signal)
  }

  /** Guards a call that finds the outcome of a charge or refund. */
  protected finding<Q, R>(call: Call<A, Q, R>): Guarded<Q, R | Unknown> {
    return (request, signal) => this.guard.find((deadline) => call(this.api, request, deadline), signal)
  }

  /** Guards a call that moves no money. */
  protected reading<Q, R>(call: Call<A, Q, R>): Guarded<Q, R | Unknown> {
    return (request, signal) => this.guard.read((deadline) => call(this.api, request, deadline), signal)
  }
}

type CauseOf = (error: ProviderError) => NotBegun['cause'] | undefined
