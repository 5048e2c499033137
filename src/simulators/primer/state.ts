// The state of the dialect, in memory and in a journal: payments, keys, saved and deleted tokens.
import { randomBytes } from 'node:crypto'
import { JournaledState, type JournalOptions } from '../journaled-state.ts'

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

export class State extends JournaledState<Line, Task> {
  readonly #payments = new Map<string, Payment>()
  readonly #keys = new Map<string, KeptKey>()
  readonly #vaulted = new Map<string, string>()
  readonly #deleted = new Set<string>()
  readonly #keyLifeMs: number
  endpoint: Endpoint | undefined

  /** @param keyLifeMs how long a processed key is remembered; Primer does not say, a test chooses */
  constructor(options: JournalOptions, keyLifeMs: number) {
    super(options)
    this.#keyLifeMs = keyLifeMs
  }

  /** As Primer writes times: in UTC, without a zone. */
  now(): string {
    return new Date(this.nowMs()).toISOString().replace('Z', '000')
  }

  newId(): string {
    return randomBytes(9).toString('base64url').replace(/[-_]/g, 'x')
  }

  find(id: string): Payment | undefined {
    return this.#payments.get(id)
  }

  /** Every payment, oldest first. */
  all(): Payment[] {
    return [...this.#payments.values()]
  }

  put(payment: Payment): Payment {
    this.write({ put: payment })
    return payment
  }

  /** The payment that was processed under a key, while the key is remembered. */
  paymentOfKey(key: string): string | undefined {
    const kept = this.#keys.get(key)
    return kept && this.nowMs() - kept.at_ms < this.#keyLifeMs ? kept.paymentId : undefined
  }

  keepKey(key: string, paymentId: string): void {
    this.write({ key: { key, paymentId, at_ms: this.nowMs() } })
  }

  vault(token: string, customerId: string): void {
    if (this.#vaulted.get(token) !== customerId) this.write({ vaulted: { token, customerId } })
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
    this.write({ deleted: token })
  }

  setEndpoint(endpoint: Endpoint): void {
    this.write({ endpoint })
  }

  protected apply(line: Line): void {
    if ('put' in line) this.#payments.set(line.put.id, line.put)
    else if ('key' in line) this.#keys.set(line.key.key, line.key)
    else if ('vaulted' in line) this.#vaulted.set(line.vaulted.token, line.vaulted.customerId)
    else if ('deleted' in line) this.#deleted.add(line.deleted)
    else this.endpoint = line.endpoint
  }
}
