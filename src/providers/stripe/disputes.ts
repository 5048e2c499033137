// Disputes of payments, and the amounts that Stripe withdrew from the account and returned for them.
import type { Dispute } from '../provider.ts'
import { fieldsOf } from '../transport.ts'
import type { Fields, StripeApi } from './api.ts'
import { idOf, readSum, readTime, textOf } from './objects.ts'

/** All disputes of a payment, oldest first. */
export async function disputesOf(api: StripeApi, chargeTransactionId: string, signal: AbortSignal): Promise<Dispute[]> {
  const disputes: Dispute[] = []
  for await (const item of api.all('/v1/disputes', { payment_intent: chargeTransactionId }, signal)) {
    disputes.unshift(readDispute(item))
  }
  return disputes
}

// Banks decide within a few months, so a dispute opened this long before `since` may have been decided after it.
const DECIDED_WITHIN_S = 120 * 86_400

/** The account's disputes that were opened since an instant, or opened earlier and possibly decided since. */
export async function* disputesSince(
  since: string,
  readAll: (path: string, params: { created: { gte: number } }) => AsyncIterable<Fields>,
): AsyncGenerator<Dispute> {
  const gte = Math.max(0, Math.floor(Date.parse(since) / 1000) - DECIDED_WITHIN_S)
  for await (const item of readAll('/v1/disputes', { created: { gte } })) yield readDispute(item)
}

function readDispute(body: Fields): Dispute {
  const movements = Array.isArray(body['balance_transactions']) ? body['balance_transactions'].map(fieldsOf) : []
  const moved = (isIn: boolean) => movements.some(({ amount }) => (isIn ? Number(amount) > 0 : Number(amount) < 0))
  return {
    disputeId: String(body['id']),
    chargeTransactionId: idOf(body['payment_intent']) ?? String(idOf(body['charge'])),
    status: statusOf(body['status']),
    fundsWithdrawn: moved(false),
    fundsReinstated: moved(true),
    ...readSum(body, 'amount'),
    reason: textOf(body['reason']),
    at: readTime(body['created']),
  }
}

/** An inquiry (`warning_…`) is open until it is closed. It is then won, because no money moved. */
function statusOf(status: unknown): Dispute['status'] {
  if (status === 'won' || status === 'warning_closed' || status === 'prevented') return 'won'
  return status === 'lost' ? 'lost' : 'open'
}
