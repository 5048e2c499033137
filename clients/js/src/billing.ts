// The billing API: charges, refunds, what a customer owns, and the report. Amounts are decimal texts.
import { type Credits, creditsOf, type Post } from './credits.ts'
import { parseExact } from './exact.ts'
import { type Http, wait } from './http.ts'
import { type List, list } from './lists.ts'
import type {
  Consumable,
  Dispute,
  ListOptions,
  MyAssets,
  OneOffCharge,
  Refund,
  ReportTransaction,
  SettledRefund,
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
  clientMetadata?: object | undefined
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
  /** What charges granted. */
  consumables: { list(options?: ListOptions<'listConsumables'>): List<Consumable> }
  /** The refunds whose outcome is known. */
  refunds: { list(options?: ListOptions<'listSettledRefunds'>): List<SettledRefund> }
  disputes: { list(options?: ListOptions<'listDisputes'>): List<Dispute> }
}

const REPORT_ROWS = 500
const LIST_ROWS = 500
const BEGINNING = '1970-01-01T00:00:00Z'
const LONGEST_PAUSE_MS = 15_000
// Unlike the date, the first one is never set; a bare worker lacks it.
const clock = globalThis.performance ?? Date

export function openBilling(http: Http, organizationId: string, key: string): Billing {
  const headers = { 'service-secret-key': key }
  const base = `/${encodeURIComponent(organizationId)}/v1`

  const post: Post = async (path, body, retry, signal, parse = parseExact) =>
    (await http.json<never>({ path: base + path, headers, body, retry, signal, parse })).body

  const listOf = <Item>(path: string) => ({
    list: (options: object = {}): List<Item> =>
      list(http, base + path, () => headers, { ...options }, LIST_ROWS, parseExact),
  })

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
    consumables: listOf<Consumable>('/consumables'),
    refunds: listOf<SettledRefund>('/refunds'),
    disputes: listOf<Dispute>('/disputes'),
  }
}

function chargeBody({ externalId, currencyCode, idempotencyKey, clientMetadata, ...rest }: ChargeOptions): object {
  const names = { external_id: externalId, currency_code: currencyCode, idempotency_key: idempotencyKey }
  const { amount, grants } = rest
  return { ...names, amount, ...(clientMetadata && { client_metadata: clientMetadata }), ...(grants && { grants }) }
}
