// Disputes of payments, and the amounts that Stripe withdrew from the account and returned for them.
import { DAY_S } from '../../../lib/days.ts'
import type { Dispute } from '../provider.ts'
import { fieldsOf, textOf } from '../transport.ts'
import type { Fields, StripeApi } from './api.ts'
import { isConvertible, nearestStripeAmount } from './money.ts'
import { idOf, readSum, readTime } from './objects.ts'

/** All disputes of a payment, oldest first. */
export async function disputesOf(
  api: StripeApi,
  { chargeTransactionId }: { chargeTransactionId: string },
  signal: AbortSignal,
): Promise<Dispute[]> {
  const disputes: Dispute[] = []
  for await (const item of api.all('/v1/disputes', { payment_intent: chargeTransactionId }, signal)) {
    disputes.unshift(readDispute(item))
  }
  return disputes
}

// Banks decide within a few months, so a dispute opened this long before `since` may have been decided after it.
const DECIDED_WITHIN_S = 120 * DAY_S

/** The account's disputes that were opened since an instant, or opened earlier and possibly decided since. */
export async function* disputesSince(
  since: string,
  readAll: (path: string, params: { created: { gte: number } }) => AsyncIterable<Fields>,
): AsyncGenerator<Dispute> {
  const gte = Math.max(0, Math.floor(Date.parse(since) / 1000) - DECIDED_WITHIN_S)
  for await (const item of readAll('/v1/disputes', { created: { gte } })) {
    // Of another program's payment: Tundish charges no currency that cannot be converted.
    if (!isConvertible(String(item['currency']).toUpperCase())) continue
    yield readDispute(item)
  }
}

function readDispute(body: Fields): Dispute {
  return {
    disputeId: String(body['id']),
    chargeTransactionId: idOf(body['payment_intent']) ?? String(idOf(body['charge'])),
    status: statusOf(body['status']),
    fundsWithdrawn: movementsOf(body).some(({ amount }) => Number(amount) < 0),
    reinstatedMinor: readSum({ ...body, amount: returnedAmount(body) }, 'amount').amountMinor,
    ...readSum(body, 'amount'),
    reason: textOf(body['reason']),
    at: readTime(body['created']),
  }
}

/**
 * What Stripe returned of a dispute's amount, in Stripe's units of its currency. Of a lost dispute it returns what had been
 * refunded before. The balance transactions may be in another currency, that of the account; then the same part of the amount
 * as of what was withdrawn counts as returned.
 */
export function returnedAmount(dispute: Fields): number {
  const [amount, currency] = [Number(dispute['amount']), String(dispute['currency'])]
  const moved = movementsOf(dispute)
  const sum = (sign: 1 | -1) => moved.reduce((all, one) => all + Math.max(0, sign * Number(one['amount'])), 0)
  const [returned, withdrawn] = [sum(1), sum(-1)]
  if (returned === 0) return 0
  if (dispute['status'] === 'won' || returned >= withdrawn) return amount
  if (moved.every((one) => one['currency'] === currency)) return returned
  return nearestStripeAmount((amount * returned) / withdrawn, currency.toUpperCase())
}

const movementsOf = ({ balance_transactions: all }: Fields): Fields[] => (Array.isArray(all) ? all.map(fieldsOf) : [])

/** An inquiry (`warning_…`) is open until it is closed. It is then won, because no money moved. */
function statusOf(status: unknown): Dispute['status'] {
  if (status === 'won' || status === 'warning_closed' || status === 'prevented') return 'won'
  return status === 'lost' ? 'lost' : 'open'
}
