// The state of the dialect, in memory and in a journal: objects, idempotency keys, test tokens.
import { randomBytes } from 'node:crypto'
import type { Stripe } from 'stripe'
import { JournaledState } from '../journaled-state.ts'

/** The kinds of objects, by their field `object`. */
export interface Objects {
  balance_transaction: Stripe.BalanceTransaction
  charge: Stripe.Charge
  'checkout.session': Stripe.Checkout.Session
  coupon: Stripe.Coupon
  customer: Stripe.Customer | Stripe.DeletedCustomer
  discount: Stripe.Discount
  dispute: Stripe.Dispute
  event: Stripe.Event
  invoice: Stripe.Invoice
  payment_intent: Stripe.PaymentIntent
  payment_method: Stripe.PaymentMethod
  /** `entries`: the balance transactions that it consists of, with its own. */
  payout: Stripe.Payout & { entries: string[] }
  price: Stripe.Price
  product: Stripe.Product
  refund: Stripe.Refund
  subscription: Stripe.Subscription
  /** `rolled`: the secret that was replaced, which signs as well until then. */
  webhook_endpoint: Stripe.WebhookEndpoint & { rolled?: { secret: string; until_s: number } }
}
export type Kind = keyof Objects
export type EventType = Stripe.Event.Type

/** The fields by which `related` finds objects: ids of other objects. */
const REFERENCES = ['customer', 'payment_intent', 'charge', 'product', 'source', 'subscription'] as const
type ReferenceField = (typeof REFERENCES)[number]

export const isReference = (field: string): field is ReferenceField => REFERENCES.some((one) => one === field)

/** An outcome that is replayed for an idempotency key. */
export interface KeptOutcome {
  key: string
  /** Method, path and parameters of the first call. */
  purpose: string
  status: number
  body: unknown
  at_ms: number
}

export type Task = 'call' | 'settle_payment' | 'settle_refund' | 'fail_refund' | 'dispute' | 'post_charge'

type Line = { put: Objects[Kind] } | { token: string; of: string } | { retired: string } | { kept: KeptOutcome }

// Stripe removes keys after at least 24 hours.
const KEY_LIFE_MS = 24 * 3_600_000

export class State extends JournaledState<Line, Task> {
  readonly #objects = new Map<string, Objects[Kind]>()
  readonly #ids = new Map<Kind, Set<string>>()
  readonly #related = new Map<string, Set<string>>()
  readonly #tokens = new Map<string, string>()
  readonly #retired = new Set<string>()
  readonly #kept = new Map<string, KeptOutcome>()
  #pastMs: number | undefined

  override nowMs(): number {
    return this.#pastMs ?? super.nowMs()
  }

  /** Runs `work` with the clock set to that moment: for accounts with a made-up history. */
  inThePast<T>(seconds: number, work: () => T): T {
    this.#pastMs = seconds * 1000
    try {
      return work()
    } finally {
      this.#pastMs = undefined
    }
  }

  /** Stripe's timestamps are whole seconds. */
  now(): number {
    return Math.floor(this.nowMs() / 1000)
  }

  newId(prefix: string): string {
    return `${prefix}_${randomName()}`
  }

  find<K extends Kind>(kind: K, id: string): Objects[K] | undefined {
    const object = this.#objects.get(id)
    return object?.object === kind ? (object as Objects[K]) : undefined
  }

  /** Every object of a kind, oldest first. */
  all<K extends Kind>(kind: K): Objects[K][] {
    return this.#objectsOf(this.#ids.get(kind))
  }

  /** The objects of a kind whose `field` holds this id, oldest first. */
  related<K extends Kind>(kind: K, field: ReferenceField, id: string): Objects[K][] {
    return this.#objectsOf(this.#related.get(`${kind} ${field} ${id}`))
  }

  #objectsOf<K extends Kind>(ids: Iterable<string> = []): Objects[K][] {
    return Array.from(ids, (id) => this.#objects.get(id) as Objects[K])
  }

  put<T extends Objects[Kind]>(object: T): T {
    this.write({ put: object })
    return object
  }

  /** The test token that decides how a payment method behaves. */
  tokenOf(paymentMethod: string): string | undefined {
    return this.#tokens.get(paymentMethod)
  }

  setToken(paymentMethod: string, token: string): void {
    this.write({ token, of: paymentMethod })
  }

  /** Whether a payment method may not be used again. */
  isRetired(paymentMethod: string): boolean {
    return this.#retired.has(paymentMethod)
  }

  retire(paymentMethod: string): void {
    this.write({ retired: paymentMethod })
  }

  /** The outcome kept under an idempotency key, until the key is forgotten. */
  keptOutcome(key: string): KeptOutcome | undefined {
    const kept = this.#kept.get(key)
    return kept && this.nowMs() - kept.at_ms < KEY_LIFE_MS ? kept : undefined
  }

  keep(outcome: Omit<KeptOutcome, 'at_ms'>): void {
    this.write({ kept: { ...outcome, at_ms: this.nowMs() } })
  }

  protected apply(line: Line): void {
    if ('put' in line) this.#putObject(line.put)
    else if ('token' in line) this.#tokens.set(line.of, line.token)
    else if ('retired' in line) this.#retired.add(line.retired)
    else this.#kept.set(line.kept.key, line.kept)
  }

  #putObject(object: Objects[Kind]): void {
    const before = this.#objects.get(object.id)
    this.#objects.set(object.id, object)
    addTo(this.#ids, object.object, object.id)
    for (const field of REFERENCES) {
      const [old, now] = [before && referenceIn(before, field), referenceIn(object, field)]
      if (old === now) continue
      if (old) this.#related.get(`${object.object} ${field} ${old}`)?.delete(object.id)
      if (now) addTo(this.#related, `${object.object} ${field} ${now}`, object.id)
    }
  }
}

/** 24 letters and digits, as in Stripe's ids. */
export function randomName(): string {
  return BigInt(`0x${randomBytes(20).toString('hex')}`)
    .toString(36)
    .padStart(24, '0')
    .slice(-24)
}

function referenceIn(object: object, field: ReferenceField): string | undefined {
  const value = (object as Record<string, unknown>)[field]
  return typeof value === 'string' ? value : undefined
}

function addTo<K>(sets: Map<K, Set<string>>, key: K, id: string): void {
  const known = sets.get(key)
  if (known) known.add(id)
  else sets.set(key, new Set([id]))
}
