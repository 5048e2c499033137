// The state of the dialect: payments, keys, deleted tokens, scheduled work and its clock, in memory and in a journal.
import { type Job, Jobs } from '../jobs.ts'
import { Journal } from '../journal.ts'

export type Status =
  | 'PENDING'
  | 'FAILED'
  | 'AUTHORIZED'
  | 'SETTLING'
  | 'PARTIALLY_SETTLED'
  | 'SETTLED'
  | 'DECLINED'
  | 'CANCELLED'

export interface Transaction {
  date: string
  amount: number
  currencyCode: string
  orderId: string
  transactionType: 'SALE' | 'REFUND'
  processorTransactionId: string
  processorName: string
  processorMerchantId: string
  processorStatus: Status
  processorStatusReason?: object
  cardTokenType?: string
  reason?: string
}

/** A payment as `PaymentAPIResponse` of Primer's published OpenAPI document has it. */
export interface Payment {
  id: string
  date: string
  dateUpdated: string
  status: Status
  cardTokenType: string
  orderId: string
  currencyCode: string
  amount: number
  customerId?: string
  metadata: Record<string, string | number>
  paymentMethod: Record<string, unknown> & { paymentMethodToken: string }
  processor: { name: string; processorMerchantId: string; amountCaptured: number; amountRefunded: number }
  requiredAction?: object
  statusReason?: object
  transactions: Transaction[]
}

export type Task = 'settle' | 'refund' | 'fail_refund' | 'call'

export interface Endpoint {
  url: string
  secret: string
  /** The secret before, which signs too until then. */
  rotated?: { secret: string; until_ms: number }
}

interface KeptKey {
  key: string
  paymentId: string
  at_ms: number
}

type Line =
  | { put: Payment }
  | { key: KeptKey }
  | { vaulted: { token: string; customerId: string } }
  | { deleted: string }
  | { endpoint: Endpoint }
  | { job: Job<Task> }
  | { done: string }
  | { ahead_ms: number }

export interface StateOptions {
  file: string
  fsync: boolean
  wallClockMs: () => number
  randomId: () => string
  /** How long a processed key is remembered. Primer does not say; a test chooses. */
  keyLifeMs: number
}

export class State {
  readonly #payments = new Map<string, Payment>()
  readonly #keys = new Map<string, KeptKey>()
  readonly #vaulted = new Map<string, string>()
  readonly #deleted = new Set<string>()
  readonly #jobs = new Jobs<Task>()
  readonly #options: StateOptions
  endpoint: Endpoint | undefined
  #aheadMs = 0
  #journal!: Journal

  private constructor(options: StateOptions) {
    this.#options = options
  }

  static async open(options: StateOptions): Promise<State> {
    const state = new State(options)
    state.#journal = await Journal.open(options.file, options.fsync, (line) => state.#apply(line as Line))
    return state
  }

  /** The dialect's time: the wall clock and what `advance` added. */
  nowMs(): number {
    return this.#options.wallClockMs() + this.#aheadMs
  }

  /** As Primer writes times: in UTC, without a zone. */
  now(): string {
    return new Date(this.nowMs()).toISOString().replace('Z', '000')
  }

  advance(ms: number): void {
    this.#write({ ahead_ms: this.#aheadMs + ms })
  }

  newId(): string {
    return this.#options.randomId()
  }

  find(id: string): Payment | undefined {
    return this.#payments.get(id)
  }

  /** Every payment, oldest first. */
  all(): Payment[] {
    return [...this.#payments.values()]
  }

  put(payment: Payment): Payment {
    this.#write({ put: payment })
    return payment
  }

  /** The payment that was processed under a key, while the key is remembered. */
  paymentOfKey(key: string): string | undefined {
    const kept = this.#keys.get(key)
    return kept && this.nowMs() - kept.at_ms < this.#options.keyLifeMs ? kept.paymentId : undefined
  }

  keepKey(key: string, paymentId: string): void {
    this.#write({ key: { key, paymentId, at_ms: this.nowMs() } })
  }

  vault(token: string, customerId: string): void {
    if (this.#vaulted.get(token) !== customerId) this.#write({ vaulted: { token, customerId } })
  }

  tokensOf(customerId: string): string[] {
    return [...this.#vaulted].flatMap(([token, owner]) =>
      owner === customerId && !this.#deleted.has(token) ? [token] : [],
    )
  }

  ownerOf(token: string): string | undefined {
    return this.#vaulted.get(token)
  }

  isDeleted(token: string): boolean {
    return this.#deleted.has(token)
  }

  deleteToken(token: string): void {
    this.#write({ deleted: token })
  }

  setEndpoint(endpoint: Endpoint): void {
    this.#write({ endpoint })
  }

  schedule(task: Task, target: string, afterMs: number): void {
    this.#write({ job: { id: this.newId(), at_ms: this.nowMs() + afterMs, task, target } })
  }

  /** Takes the jobs whose time has come, in the order of their times. */
  takeDue(): Job<Task>[] {
    const due = this.#jobs.due(this.nowMs())
    for (const { id } of due) this.#write({ done: id })
    return due
  }

  nextDueInMs(): number | undefined {
    return this.#jobs.nextDueInMs(this.nowMs())
  }

  durable(): Promise<void> {
    return this.#journal.durable()
  }

  close(): Promise<void> {
    return this.#journal.close()
  }

  #write(line: Line): void {
    this.#apply(line)
    this.#journal.append(line)
  }

  #apply(line: Line): void {
    if ('put' in line) this.#payments.set(line.put.id, line.put)
    else if ('key' in line) this.#keys.set(line.key.key, line.key)
    else if ('vaulted' in line) this.#vaulted.set(line.vaulted.token, line.vaulted.customerId)
    else if ('deleted' in line) this.#deleted.add(line.deleted)
    else if ('endpoint' in line) this.endpoint = line.endpoint
    else if ('job' in line) this.#jobs.add(line.job)
    else if ('done' in line) this.#jobs.remove(line.done)
    else this.#aheadMs = line.ahead_ms
  }
}
