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
    fundsWithdrawn: entriesOf(body).some(({ amount }) => Number(amount) < 0),
    reinstatedMinor: readSum({ ...body, amount: returnedAmount(body) }, 'amount').amountMinor,
    ...readSum(body, 'amount'),
    reason: textOf(body['reason']),
    at: readTime(body['created']),
  }
}

/**
 * What Stripe returned of a dispute's amount and did not take again, in Stripe's units of its currency. Of a lost dispute it
 * returns what had been refunded before.
 */
function returnedAmount(dispute: Fields): number {
  const moved = entriesOf(dispute)
  const sum = moved.reduce((all, { amount }) => all + Number(amount), 0)
  const returned = withdrawnOf(moved) + sum
  if (returned <= 0) return 0
  return dispute['status'] === 'won' ? Number(dispute['amount']) : partOf(dispute, returned)
}

/** One movement of a dispute's money, in Stripe's units of the dispute's currency; `number` counts those of its direction. */
export interface DisputeMovement {
  took: boolean
  number: number
  amount: number
  created: number
}

/** All of them, oldest first. A bank may take the money again after it was returned. */
export function disputeMovements(dispute: Fields): DisputeMovement[] {
  const moved = entriesOf(dispute)
  const returns = moved.filter(({ amount }) => Number(amount) > 0).length
  const counts = { taken: 0, returned: 0 }
  return moved.map((entry) => {
    const took = Number(entry['amount']) < 0
    const number = took ? ++counts.taken : ++counts.returned
    const isWhole = took ? number === 1 : dispute['status'] === 'won' && returns === 1
    const amount = isWhole ? Number(dispute['amount']) : partOf(dispute, Math.abs(Number(entry['amount'])))
    return { took, number, amount, created: Number(entry['created']) }
  })
}

/**
 * The part of the dispute's amount that an amount of the balance is, which may be in another currency, that of the account: then the
 * same part as of what was withdrawn at first.
 */
function partOf(dispute: Fields, moved: number): number {
  const entries = entriesOf(dispute)
  const [amount, currency, withdrawn] = [Number(dispute['amount']), String(dispute['currency']), withdrawnOf(entries)]
  if (moved >= withdrawn) return amount
  if (entries.every((one) => one['currency'] === currency)) return moved
  return nearestStripeAmount((amount * moved) / withdrawn, currency.toUpperCase())
}

const withdrawnOf = (entries: Fields[]) => -Number(entries.find(({ amount }) => Number(amount) < 0)?.['amount'] ?? 0)

/** The balance transactions that moved money, oldest first. */
function entriesOf({ balance_transactions: all }: Fields): Fields[] {
  const entries = Array.isArray(all) ? all.map(fieldsOf) : []
  return entries
    .filter(({ amount }) => Boolean(Number(amount)))
    .sort((a, b) => Number(a['created']) - Number(b['created']))
}

/** An inquiry (`warning_…`) is open until it is closed. It is then won, because no money moved. */
function statusOf(status: unknown): Dispute['status'] {
  if (status === 'won' || status === 'warning_closed' || status === 'prevented') return 'won'
  return status === 'lost' ? 'lost' : 'open'
}
