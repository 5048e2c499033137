// Primer's API as the simulator speaks it: keys, routes, idempotency, faults, and work that becomes due.
import { ProviderDialect, type Reply } from '../dialect.ts'
import { type Ordered, OrderedFaults } from '../ordered-faults.ts'
import { PrimerError } from './errors.ts'
import { listPayments, listTokens } from './lists.ts'
import { type Context, cancel, capture, create, endRefund, existing, refund, settle } from './payments.ts'
import type { Payment, State, Task } from './state.ts'
import { behaviourOf } from './tokens.ts'
import { formWebhook } from './webhooks.ts'

export interface Asked {
  method: string
  path: string
  query: Record<string, string>
  body: Record<string, unknown>
  apiKey: string | undefined
  version: string | undefined
  idempotencyKey: string | undefined
}

export type OrderedFault = Ordered & { kind: string; ms: number }

export class PrimerDialect extends ProviderDialect<State, Asked, object> implements Context {
  readonly faults = new OrderedFaults<OrderedFault>()
  readonly #listLagMs: number
  readonly #met = new Set<string>()

  /** @param listLagMs how long a new payment is missing in the list */
  constructor(state: State, listLagMs: number) {
    super(state, formWebhook)
    this.#listLagMs = listLagMs
  }

  readonly emit = (eventType: string, payment: Payment): void => {
    const notificationConfig = { id: 'cc51f9f0-7e1c-492b-9d37-f83a818f6070', description: 'Webhook' }
    this.notify({ eventType, date: this.state.now(), notificationConfig, version: '2.4', payment })
  }

  /** Sends a webhook to the account's endpoint, if it has one. */
  notify(event: object): void {
    if (this.state.endpoint) this.deliveries.add(event)
  }

  protected async perform(asked: Asked): Promise<Reply> {
    const key = asked.method === 'POST' && asked.idempotencyKey ? asked.idempotencyKey : undefined
    try {
      if (!asked.apiKey || asked.apiKey.length < 8 || this.revoked.has(asked.apiKey))
        throw new PrimerError(401, 'Unauthorized', 'The API key is not valid.')
      if (asked.version !== '2.4') throw new PrimerError(400, 'InvalidApiVersion', 'X-API-VERSION must be 2.4.')
      const fault = this.#faultOf(asked, key)
      if (fault?.kind === 'drop_before') return 'dropped'
      if (fault?.kind === 'forbidden') throw new PrimerError(403, 'Forbidden', 'The API key lacks a scope.')
      if (fault?.kind === 'busy') throw new PrimerError(429, 'TooManyRequests', 'Too many requests.')
      if (fault?.kind === 'error_before') throw new PrimerError(500, 'InternalServerError', 'Something went wrong.')
      if (key && this.running.has(key)) throw keyKnown(key, undefined)
      if (fault?.kind === 'late') return this.postpone(asked, fault.ms, key)
      const body = this.#performOnce(asked, key)
      if (fault?.kind === 'drop_after') return 'dropped'
      if (fault?.kind === 'error_after') throw new PrimerError(500, 'InternalServerError', 'Something went wrong.')
      if (fault?.kind === 'slow') await this.delay(fault.ms, key)
      return { status: 200, body }
    } catch (error) {
      if (!(error instanceof PrimerError)) throw error
      return { status: error.status, body: { error: error.body } }
    }
  }

  /** Runs the call, unless its key has been processed: then the first result is withheld. */
  #performOnce(asked: Asked, key: string | undefined): object {
    const known = key === undefined ? undefined : this.state.paymentOfKey(key)
    if (key !== undefined && known !== undefined) throw keyKnown(key, known)
    const body = this.#run(asked)
    if (key !== undefined && 'id' in body) this.state.keepKey(key, String(body.id))
    return body
  }

  #run({ method, path, query, body }: Asked): object {
    const [, id = '', verb = ''] = /^\/payments\/([^/]+)(?:\/([a-z]+))?$/.exec(path) ?? []
    const payment = decodeURIComponent(id)
    if (method === 'POST' && path === '/payments') return create(this, body)
    if (method === 'POST' && verb === 'capture') return capture(this, payment, body)
    if (method === 'POST' && verb === 'cancel') return cancel(this, payment, body)
    if (method === 'POST' && verb === 'refund') return refund(this, payment, body)
    if (method === 'GET' && path === '/payments') return listPayments(this.state, query, this.#listLagMs)
    if (method === 'GET' && payment !== '' && verb === '') return existing(this.state, payment)
    if (method === 'GET' && path === '/payment-instruments') return listTokens(this.state, query)
    const token = /^\/payment-instruments\/([^/]+)$/.exec(path)?.[1]
    if (method === 'DELETE' && token !== undefined) return this.#deleteToken(decodeURIComponent(token))
    throw new PrimerError(404, 'EntityNotFound', 'There is no such resource.')
  }

  #deleteToken(token: string): object {
    if (this.state.ownerOf(token) === undefined || this.state.isDeleted(token))
      throw new PrimerError(400, 'InvalidPaymentInstrumentToken', 'Invalid payment instrument.')
    this.state.deleteToken(token)
    return { token, deleted: true, deletedAt: this.state.now() }
  }

  #faultOf({ method, path, body }: Asked, key: string | undefined): Pick<OrderedFault, 'kind' | 'ms'> | undefined {
    const ordered = this.faults.take({ method, path })
    if (ordered) return ordered
    const on =
      method !== 'POST' ? undefined : path === '/payments' ? 'charge' : /\/refund$/.test(path) ? 'refund' : undefined
    const payment = this.state.find(decodeURIComponent(path.split('/')[2] ?? ''))
    const token = body['paymentMethodToken'] ?? payment?.paymentMethod.paymentMethodToken
    if (on === undefined || typeof token !== 'string') return undefined
    const { fault } = behaviourOf(token)
    if (fault?.on !== on || (fault.once && this.#met.has(key ?? path))) return undefined
    this.#met.add(key ?? path)
    return fault
  }

  protected runJob(task: Task, target: string): void {
    if (task === 'settle') settle(this, target)
    else if (task === 'refund') endRefund(this, target, 'SETTLED')
    else if (task === 'fail_refund') endRefund(this, target, 'FAILED')
  }

  protected runLate(asked: Asked): void {
    this.#performOnce(asked, asked.idempotencyKey)
  }
}

/** Primer's pages show this response in three forms: each key gets one of them. */
function keyKnown(key: string, paymentId: string | undefined): PrimerError {
  const form = paymentId === undefined ? 2 : key.charCodeAt(0) % 3
  const more = form === 2 ? {} : { paymentId, paymentStatus: 'SETTLED' }
  if (form === 0) return new PrimerError(400, 'TransactionRequestIdempotencyKeyAlreadyExists', 'The key exists.', more)
  return new PrimerError(409, 'IdempotencyKeyAlreadyExists', 'The idempotency key already exists.', more)
}
