// The billing API: charges, refunds, what a customer owns, and the report. Amounts are decimal texts.
import { type Http, wait } from './http.ts'
import type {
  CreditsBalance,
  CreditsCapture,
  CreditsHold,
  CreditsRelease,
  CreditsSpend,
  MyAssets,
  OneOffCharge,
  Refund,
  ReportTransaction,
} from './records.ts'

export interface ChargeOptions {
  /** Your own unique identifier of the user. */
  externalId: string
  /** In major units, as text: `10.50`. */
  amount: string
  /** ISO 4217. */
  currencyCode: string
  /** One key for each purchase intent. Send the same one with every retry: a fresh key charges again. */
  idempotencyKey: string
  clientMetadata?: Record<string, unknown> | undefined
  /** The credits that the charge grants, in place of what the organization’s rules grant for its amount. */
  grants?: { unit: string; amount: string; expires_after?: string | null }[] | undefined
  signal?: AbortSignal | undefined
}

export interface SettleOptions extends ChargeOptions {
  /** How long to wait for the outcome; 120,000 by default. After that the charge is returned as it is, `processing`. */
  settleTimeoutMs?: number | undefined
}

export interface RefundOptions {
  externalId: string
  orderId: string
  /** In major units, as text; without it all that is left is refunded. With it the key is required. */
  amount?: string | undefined
  idempotencyKey?: string | undefined
  softRefund?: boolean | undefined
  reason?: string | undefined
  comment?: string | undefined
  signal?: AbortSignal | undefined
}

export interface ReportOptions {
  /** Rows with a later `trx_created_at`; by default all. */
  since?: string | undefined
  subscriptionId?: string | undefined
  orderId?: string | undefined
  oneoffId?: string | undefined
  signal?: AbortSignal | undefined
}

export interface SpendOptions {
  externalId: string
  /** `tokens`, `minutes`, … as the operator created it. */
  unit: string
  /** As text: `10` or `0.25`. */
  amount: string
  /** One key for each use. Send the same one with every retry: a fresh key spends again. */
  idempotencyKey: string
  metadata?: Record<string, unknown> | undefined
  signal?: AbortSignal | undefined
}

export interface HoldOptions extends Omit<SpendOptions, 'metadata'> {
  /** Until the hold ends unless it is captured or released; an hour by default, at most a day. */
  expiresInSeconds?: number | undefined
}

export interface CaptureOptions {
  holdId: string
  /** What was used; by default all that is held. */
  amount?: string | undefined
  idempotencyKey: string
  metadata?: Record<string, unknown> | undefined
  signal?: AbortSignal | undefined
}

export interface Credits {
  /** Spends credits, at most once for each key. Throws a `TundishError` with the code `insufficient_credits` if there are too few. */
  spend(options: SpendOptions): Promise<CreditsSpend>
  /** Reserves credits for a use whose amount is not known yet. */
  hold(options: HoldOptions): Promise<CreditsHold>
  /** Spends what was used of a hold, and releases the rest. */
  capture(options: CaptureOptions): Promise<CreditsCapture>
  release(options: {
    holdId: string
    idempotencyKey: string
    signal?: AbortSignal | undefined
  }): Promise<CreditsRelease>
  /** The balances of a customer, by unit. */
  balance(externalId: string, options?: { signal?: AbortSignal | undefined }): Promise<CreditsBalance[]>
}

export interface Billing {
  /** Charges the customer's saved card, at most once for each key; retried with that key where no outcome arrived. */
  charge(options: ChargeOptions): Promise<OneOffCharge>
  /** The same, and while the outcome is not known it asks again. */
  chargeUntilSettled(options: SettleOptions): Promise<OneOffCharge>
  refund(options: RefundOptions): Promise<Refund>
  credits: Credits
  assets(externalId: string, options?: { signal?: AbortSignal | undefined }): Promise<MyAssets>
  /** The report's rows, oldest first, each once. */
  report(options?: ReportOptions): AsyncGenerator<ReportTransaction>
}

const REPORT_ROWS = 500
const BEGINNING = '1970-01-01T00:00:00Z'
const LONGEST_PAUSE_MS = 15_000
// Unlike the date, the first one is never set; a bare worker lacks it.
const clock = globalThis.performance ?? Date

export function openBilling(http: Http, organizationId: string, key: string): Billing {
  async function post<T>(path: string, body: object, retry: 'safe' | 'refused', signal?: AbortSignal): Promise<T> {
    const headers = { 'service-secret-key': key }
    const whole = `/${encodeURIComponent(organizationId)}/v1${path}`
    return (await http.json<T>({ path: whole, headers, body, retry, signal, parse: parseExact })).body
  }

  const charge = ({ signal, ...options }: ChargeOptions) =>
    post<OneOffCharge>('/payment/one_off_charge', chargeBody(options), 'safe', signal)

  async function* report(options: ReportOptions = {}): AsyncGenerator<ReportTransaction> {
    const { subscriptionId: subs_id, orderId: order_id, oneoffId: oneoff_id, signal } = options
    let since = options.since ?? BEGINNING
    for (;;) {
      const body = { last_transaction_date: since, limit: REPORT_ROWS, subs_id, order_id, oneoff_id }
      const answer = await post<{ transactions: ReportTransaction[] }>('/transaction_report', body, 'safe', signal)
      yield* answer.transactions
      if (answer.transactions.length < REPORT_ROWS) return
      since = answer.transactions.at(-1)!.trx_created_at
    }
  }

  return {
    charge,
    async chargeUntilSettled({ settleTimeoutMs = 120_000, ...options }) {
      const end = clock.now() + settleTimeoutMs
      for (let pauseMs = 1000; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
        const answer = await charge(options)
        if (answer.checkout_status !== 'processing' || clock.now() + pauseMs > end) return answer
        await wait(pauseMs, options.signal)
      }
    },
    credits: creditsOf(post),
    refund({ externalId, orderId, idempotencyKey, softRefund, signal, ...rest }) {
      const names = { external_id: externalId, order_id: orderId }
      const body = { ...names, ...rest, idempotency_key: idempotencyKey, soft_refund: softRefund }
      // Without a key a second request is a second refund, unless nothing was left after the first.
      return post<Refund>('/payment/refund', body, idempotencyKey === undefined ? 'refused' : 'safe', signal)
    },
    assets: (externalId, { signal } = {}) => post<MyAssets>('/my_assets', { external_id: externalId }, 'safe', signal),
    report,
  }
}

function chargeBody({ externalId, currencyCode, idempotencyKey, clientMetadata, ...rest }: ChargeOptions): object {
  const names = { external_id: externalId, currency_code: currencyCode, idempotency_key: idempotencyKey }
  const { amount, grants } = rest
  return { ...names, amount, ...(clientMetadata && { client_metadata: clientMetadata }), ...(grants && { grants }) }
}

type Post = <T>(path: string, body: object, retry: 'safe' | 'refused', signal?: AbortSignal) => Promise<T>

function creditsOf(post: Post): Credits {
  return {
    spend: ({ externalId, idempotencyKey, signal, ...rest }) =>
      post('/credits/spend', { external_id: externalId, idempotency_key: idempotencyKey, ...rest }, 'safe', signal),
    hold({ externalId, idempotencyKey, expiresInSeconds, signal, ...rest }) {
      const names = { external_id: externalId, idempotency_key: idempotencyKey, expires_in: expiresInSeconds }
      return post('/credits/hold', { ...names, ...rest }, 'safe', signal)
    },
    capture: ({ holdId, idempotencyKey, signal, ...rest }) =>
      post('/credits/capture', { hold_id: holdId, idempotency_key: idempotencyKey, ...rest }, 'safe', signal),
    release: ({ holdId, idempotencyKey, signal }) =>
      post('/credits/release', { hold_id: holdId, idempotency_key: idempotencyKey }, 'safe', signal),
    async balance(externalId, { signal } = {}) {
      const body = { external_id: externalId }
      const { balances } = await post<{ balances: CreditsBalance[] }>('/credits/balance', body, 'safe', signal)
      return balances
    },
  }
}

// A quote within a JSON text is escaped, so that this matches names of properties only.
const AMOUNTS = /(?<!\\)"(amount|amount_usd|amount_refunded|balance|held|available)":(-?[0-9.]+)/g

/** JSON whose amounts become text with every digit that was sent. */
function parseExact(text: string): unknown {
  return JSON.parse(text.replace(AMOUNTS, '"$1":"$2"'))
}
