// An adapter for Airwallex as far as the contract of charges and refunds: not registered in `adapters.ts`, so it cannot be connected.
import { type GuardedOptions, GuardedProvider } from '../guarded.ts'
import type { Movement, Provider, Reference, Traits } from '../provider.ts'
import { AIRWALLEX_API_URL, AirwallexApi, type Fields } from './api.ts'
import { confirm, findByKey, lookUp, prepare, refuse } from './charges.ts'
import { ownIds, readIntent, sumIn, timeOf } from './objects.ts'
import { lookUpRefund, readRefund, refund, refundsOf } from './refunds.ts'

export interface AirwallexOptions extends GuardedOptions {
  /** The client id and the API key, with a colon between them. */
  secretKey: string
  apiUrl?: string
}

const TRAITS: Traits = {
  prepares: true,
  lookUp: 'handle',
  keyLifeMs: 'unknown',
  refuse: 'cancel',
  refunds: 'may_fail_later',
  refuseRefund: 'wait_out',
}

export class AirwallexProvider extends GuardedProvider<AirwallexApi> implements Provider {
  readonly name = 'airwallex'
  readonly traits = TRAITS
  readonly prepare = this.beginning(prepare)
  readonly confirm = this.moving(confirm)
  readonly lookUp = this.finding(lookUp)
  readonly refuse = this.finding(refuse)
  readonly refund = this.beginning(refund)
  readonly lookUpRefund = this.finding(lookUpRefund)
  readonly refundsOf = this.reading(refundsOf)

  constructor({ secretKey, apiUrl, ...options }: AirwallexOptions) {
    const url = apiUrl ?? AIRWALLEX_API_URL[options.isSandbox ? 'sandbox' : 'live']
    super(options, (maxInFlight) => new AirwallexApi(secretKey, url, maxInFlight))
  }

  /** Amounts are JSON numbers, which other programs read as doubles: more digits than these are not exact. */
  accepts({ amountMinor }: { amountMinor: bigint }): string | undefined {
    return amountMinor > LARGEST ? 'amount is more than can be charged through Airwallex.' : undefined
  }

  isReachable(): Promise<boolean> {
    return this.canRead('/payment_intents', { page_size: '10' })
  }

  findByKey(request: Reference, _span: unknown, signal?: AbortSignal) {
    return this.finding(findByKey)(request, signal)
  }

  async *list(since: string): AsyncGenerator<Movement> {
    const from = { from_created_at: since }
    const charges = (await this.#all('/payment_intents', from)).flatMap(chargeIn)
    const refunds = (await this.#all('/refunds', from)).flatMap(refundIn)
    yield* [...charges, ...refunds].sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0))
  }

  async #all(path: string, params: Record<string, string>): Promise<Fields[]> {
    const read = async (deadline: AbortSignal) => ({
      items: await Array.fromAsync(this.api.all(path, params, deadline)),
    })
    return (await this.guard.list(read)).items
  }
}

const LARGEST = 999_999_999_999n

function chargeIn(item: Fields): Movement[] {
  const { key, reference } = ownIds(item)
  if (key === null) return []
  const { id, status, captured, asked, attempt, at } = readIntent(item)
  const about = { type: 'charge' as const, key, reference, transactionId: id, at }
  if (status === 'SUCCEEDED') return [{ ...about, ...captured }]
  // Without an attempt it was cancelled before it was confirmed.
  const hasFailed = status === 'CANCELLED' && Object.keys(attempt).length > 0
  return hasFailed ? [{ ...about, ...asked, hasFailed }] : []
}

function refundIn(item: Fields): Movement[] {
  const { key, reference, status, transactionId } = readRefund(item)
  if (key === null || status === 'failed') return []
  const about = { type: 'refund' as const, key, reference, transactionId, at: timeOf(item['created_at']) }
  const isPending = status === 'pending' && { isPending: true }
  return [{ ...about, ...sumIn(item, 'amount'), ...isPending, chargeTransactionId: String(item['payment_intent_id']) }]
}
