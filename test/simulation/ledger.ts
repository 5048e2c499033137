// The state of the payment providers of a seed: one movement for each key, prepared payments, refusals.
import type {
  Authorized,
  Conflict,
  NotFound,
  Prepared,
  Refused,
  Settled,
  Unconfirmed,
  Withheld,
} from '../../src/payments/providers/outcomes.ts'
import {
  type ChargeRequest,
  type Dispute,
  noDetails,
  type RefundAtProvider,
  type RefundRequest,
  type Span,
  type Movement as Told,
} from '../../src/payments/providers/provider.ts'
import { instantOf } from './virtual-clock.ts'

export interface Movement {
  type: 'charge' | 'refund'
  psp: string
  merchantId: string
  key: string
  reference: string
  amountMinor: bigint
  /** The provider's reference of it. */
  transactionId: string
  /** For a refund: the provider's reference of the refunded charge. */
  charge: string | undefined
  atMs: number
  /** Only authorized: no money has moved. */
  isPending?: boolean
}

type Type = Movement['type']

export type Entry =
  | { state: 'refused' }
  | { state: 'prepared' }
  | { state: 'authorized'; request: ChargeRequest; atMs: number }
  | { state: 'settled'; verdict: Settled; asked: bigint; charge: string | undefined; atMs: number }

interface Payment {
  handle: string
  request: ChargeRequest
  atMs: number
  verdict: Settled | Refused | undefined
}

/** How long the two-step provider remembers a key. */
export const KEY_LIFE_MS = 24 * 3600 * 1000

/** How long a payment is missing in the list of the withholding provider. */
export const LIST_LAG_MS = 60_000

/** The outcome of a charge without faults. */
export interface Fate {
  isDeclined: boolean
  /** The provider approves a cent less than requested. */
  isPartial: boolean
  /** The withholding provider only authorizes it, and moves the money when it is captured. */
  isAuthorized?: boolean
}

export class Ledger {
  readonly movements: Movement[] = []
  /** By type and key: the outcome of the last payment or refund with the key. */
  readonly #entries = new Map<string, Entry>()
  /** Prepared payments by their handles; a key has several if the provider had forgotten it in between. */
  readonly #payments = new Map<string, Payment>()
  readonly #disputes = new Map<string, Dispute & { merchantId: string }>()
  /** Charges in two steps that were declined, which the provider lists, too. */
  readonly #declined: Movement[] = []

  find(type: Type, key: string): Entry | undefined {
    return this.#entries.get(`${type} ${key}`)
  }

  /** A charge or refund in one step; after `keyLifeMs` a repeated key moves money again. */
  take(
    nowMs: number,
    request: ChargeRequest | RefundRequest,
    fate: Fate,
    keyLifeMs = Number.POSITIVE_INFINITY,
  ): Settled | Refused | Conflict {
    const type = typeOf(request)
    const charge = 'chargeTransactionId' in request ? request.chargeTransactionId : undefined
    const known = this.find(type, request.key)
    if (known?.state === 'refused') return { outcome: 'refused' }
    if (known?.state === 'settled' && nowMs - known.atMs < keyLifeMs) {
      const isSame = known.asked === request.amountMinor && known.charge === charge
      return isSame ? known.verdict : { outcome: 'conflict' }
    }
    return this.#settle(nowMs, request, fate)
  }

  /** A charge or refund whose result is given once: for a key that was processed it is withheld. A day later the key is forgotten. */
  takeOnce(
    nowMs: number,
    request: ChargeRequest | RefundRequest,
    fate: Fate,
    psp: string,
  ): Settled | Authorized | Withheld {
    const type = typeOf(request)
    const known = this.find(type, request.key)
    if (known && 'atMs' in known && nowMs - known.atMs < KEY_LIFE_MS) return { outcome: 'withheld' }
    if (type === 'refund' || !fate.isAuthorized || fate.isDeclined)
      return this.#settle(nowMs, request, fate, undefined, psp)
    const authorized = request as ChargeRequest
    this.#entries.set(`charge ${request.key}`, { state: 'authorized', request: authorized, atMs: nowMs })
    return { outcome: 'authorized', handle: `charge-${request.reference}` }
  }

  /** Moves the money of an authorized payment, once. */
  capture(nowMs: number, key: string, fate: Fate, psp: string): Settled | Authorized {
    const known = this.find('charge', key)
    if (known?.state === 'authorized') return this.#settle(nowMs, known.request, fate, undefined, psp)
    return (known as Entry & { state: 'settled' }).verdict
  }

  /** A payment or refund of the withholding provider; by its key alone it is not found before it is listed. */
  lookOnce(nowMs: number, type: Type, { key, handle }: { key: string; handle: string | null }) {
    const known = this.find(type, key)
    if (!known || !('atMs' in known)) return { outcome: 'not_found' as const }
    // A refund is inside its payment, which is always current.
    if (type === 'charge' && handle === null && nowMs - known.atMs < LIST_LAG_MS)
      return { outcome: 'not_found' as const }
    if (known.state === 'settled') return known.verdict
    return { outcome: 'authorized' as const, handle: `charge-${known.request.reference}` }
  }

  /** The first of two steps: creates the payment without moving money. Its account remembers a key for a day. */
  prepare(nowMs: number, request: ChargeRequest): Prepared | Conflict {
    const known = [...this.#payments.values()].find(
      (one) =>
        one.request.key === request.key &&
        one.request.merchantId === request.merchantId &&
        nowMs - one.atMs < KEY_LIFE_MS,
    )
    if (known && known.request.amountMinor !== request.amountMinor) return { outcome: 'conflict' }
    if (known) return { outcome: 'prepared', handle: known.handle }
    const handle = `pay-${this.#payments.size + 1}`
    this.#payments.set(handle, { handle, request, atMs: nowMs, verdict: undefined })
    if (!this.find('charge', request.key)) this.#entries.set(`charge ${request.key}`, { state: 'prepared' })
    return { outcome: 'prepared', handle }
  }

  /** The second step, by the handle. A declined payment is cancelled, so that it can never be confirmed again. */
  confirm(nowMs: number, handle: string, fate: Fate): Settled | Refused {
    const payment = this.#payments.get(handle)!
    payment.verdict ??= this.#settle(nowMs, payment.request, fate, handle)
    return payment.verdict
  }

  lookAt(handle: string | null): Settled | Refused | NotFound | Unconfirmed {
    const payment = handle === null ? undefined : this.#payments.get(handle)
    if (!payment) return { outcome: 'not_found' }
    return payment.verdict ?? { outcome: 'unconfirmed' }
  }

  cancel(handle: string): Settled | Refused {
    const payment = this.#payments.get(handle)!
    payment.verdict ??= { outcome: 'refused' }
    if (payment.verdict.outcome === 'refused' && this.find('charge', payment.request.key)?.state === 'prepared')
      this.#entries.set(`charge ${payment.request.key}`, { state: 'refused' })
    return payment.verdict
  }

  /** The payment with a key since an instant; one that charged is preferred. */
  findByKey(
    { key, merchantId }: { key: string; merchantId: string },
    { since, until = '9' }: Span,
  ): Prepared | Settled | NotFound {
    const found = [...this.#payments.values()].filter(
      ({ request, atMs, verdict }) =>
        request.key === key &&
        request.merchantId === merchantId &&
        instantOf(atMs) >= since &&
        instantOf(atMs) <= until &&
        verdict?.outcome !== 'refused',
    )
    const settled = found.map(({ verdict }) => verdict).find((verdict) => verdict?.outcome === 'succeeded')
    if (settled) return settled as Settled
    const open = found.find(({ verdict }) => verdict === undefined)
    if (open) return { outcome: 'prepared', handle: open.handle }
    const failed = found.map(({ verdict }) => verdict).find((verdict) => verdict?.outcome === 'failed')
    return (failed as Settled | undefined) ?? { outcome: 'not_found' }
  }

  look(type: Type, key: string): Settled | Refused | NotFound | Unconfirmed {
    const known = this.find(type, key)
    if (!known) return { outcome: 'not_found' }
    if (known.state === 'prepared' || known.state === 'authorized') return { outcome: 'unconfirmed' }
    return known.state === 'refused' ? { outcome: 'refused' } : known.verdict
  }

  refuse(type: Type, key: string): Settled | Refused {
    const known = this.find(type, key)
    if (known?.state === 'settled') return known.verdict
    this.#entries.set(`${type} ${key}`, { state: 'refused' })
    return { outcome: 'refused' }
  }

  refundsOf(chargeTransactionId: string): RefundAtProvider[] {
    return this.movements
      .filter(({ charge }) => charge === chargeTransactionId)
      .map((one) => ({
        key: one.key,
        reference: one.reference,
        transactionId: one.transactionId,
        status: 'succeeded',
        amountMinor: one.amountMinor,
        currencyCode: 'EUR',
        at: instantOf(one.atMs),
        details: { ...noDetails, psp_transaction_id: one.transactionId },
      }))
  }

  /** A charge is disputed, and the bank may take its money at once. */
  dispute(nowMs: number, chargeTransactionId: string, fundsWithdrawn: boolean): void {
    const { amountMinor, merchantId } = this.movements.find(
      ({ transactionId }) => transactionId === chargeTransactionId,
    )!
    const about = { disputeId: `dispute-${chargeTransactionId}`, chargeTransactionId, amountMinor, merchantId }
    const state = { status: 'open' as const, fundsWithdrawn, reinstatedMinor: 0n, reason: 'fraudulent' }
    this.#disputes.set(chargeTransactionId, { ...about, ...state, currencyCode: 'EUR', at: instantOf(nowMs) })
  }

  /** The bank decides; of a dispute that is won it may return the money. */
  decide(chargeTransactionId: string, status: 'won' | 'lost', returns: boolean): void {
    const before = this.#disputes.get(chargeTransactionId)!
    const isReturned = status === 'won' && returns && before.fundsWithdrawn
    this.#disputes.set(chargeTransactionId, {
      ...before,
      status,
      reinstatedMinor: isReturned ? before.amountMinor : 0n,
    })
  }

  disputesOf(chargeTransactionId: string): Dispute[] {
    const found = this.#disputes.get(chargeTransactionId)
    return found ? [found] : []
  }

  /** With those opened long before, which may have been decided since, as the adapter of Stripe reads them. */
  listDisputes(merchantId: string): Dispute[] {
    return [...this.#disputes.values()].filter((one) => one.merchantId === merchantId)
  }

  /** The movements that a provider lists for a reconciliation. */
  list(psp: string, merchantId: string, since: string): Told[] {
    const declined = new Set(this.#declined)
    return [...this.movements, ...this.#declined, ...this.#authorized(psp)]
      .filter(
        (one) =>
          one.psp === psp && (merchantId === '*' || one.merchantId === merchantId) && instantOf(one.atMs) >= since,
      )
      .map((one) => ({ ...one, hasFailed: declined.has(one) }))
      .map(({ type, key, reference, amountMinor, transactionId, charge, atMs, hasFailed, isPending }) => ({
        type,
        key,
        reference,
        amountMinor,
        currencyCode: 'EUR',
        transactionId,
        ...(hasFailed && { hasFailed }),
        ...(isPending && { isPending }),
        ...(charge !== undefined && { chargeTransactionId: charge }),
        at: instantOf(atMs),
      }))
  }

  /** Payments that are authorized and not captured are pending in the list. */
  #authorized(psp: string): Movement[] {
    if (psp !== 'withholding') return []
    return [...this.#entries.values()].flatMap((entry) => {
      if (entry.state !== 'authorized') return []
      const { key, reference, merchantId, amountMinor } = entry.request
      const about = { type: 'charge' as const, psp, merchantId, key, reference, amountMinor, isPending: true }
      return [{ ...about, transactionId: `charge-${reference}`, charge: undefined, atMs: entry.atMs }]
    })
  }

  #settle(
    nowMs: number,
    request: ChargeRequest | RefundRequest,
    { isDeclined, isPartial }: Fate,
    handle?: string,
    given?: string,
  ): Settled {
    const type = typeOf(request)
    const { key, reference, currencyCode, merchantId } = request
    const charge = 'chargeTransactionId' in request ? request.chargeTransactionId : undefined
    const isLess = type === 'charge' && isPartial && request.amountMinor > 1n && !isDeclined
    const amountMinor = request.amountMinor - (isLess ? 1n : 0n)
    const transactionId = handle ?? `${type}-${reference}`
    const verdict: Settled = {
      outcome: isDeclined ? 'failed' : 'succeeded',
      reference,
      amountMinor,
      currencyCode,
      ...(isLess && { askedMinor: request.amountMinor }),
      details: { ...noDetails, psp_transaction_id: transactionId },
    }
    this.#entries.set(`${type} ${key}`, { state: 'settled', verdict, asked: request.amountMinor, charge, atMs: nowMs })
    const isInTwoSteps =
      this.#payments.values().some((one) => one.request.reference === reference) || this.#isOfPayment(charge)
    const psp = given ?? (isInTwoSteps ? 'two-steps' : 'simulator')
    if (isDeclined) {
      if (handle !== undefined || given !== undefined)
        this.#declined.push({ type, psp, merchantId, key, reference, amountMinor, transactionId, charge, atMs: nowMs })
    } else
      this.movements.push({ type, psp, merchantId, key, reference, amountMinor, transactionId, charge, atMs: nowMs })
    return verdict
  }

  #isOfPayment(charge: string | undefined): boolean {
    return this.movements.some((one) => one.transactionId === charge && one.psp === 'two-steps')
  }
}

const typeOf = (request: object): Type => ('chargeTransactionId' in request ? 'refund' : 'charge')
