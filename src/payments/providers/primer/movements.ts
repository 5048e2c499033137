// Lists every charge made by Tundish, and its refunds, since an instant, oldest first.
import type { Movement } from '../provider.ts'
import type { Fields } from './api.ts'
import { charged } from './charges.ts'
import { ownIds, type Payment, readTime } from './objects.ts'
import { refundsIn } from './refunds.ts'

/** Reads the list of payments and single payments; each call has its own deadline. */
export interface Reading {
  page(params: Record<string, string | undefined>): Promise<{ items: Fields[]; next: string | undefined }>
  payment(id: string): Promise<Payment>
}

// A refund changes its payment, and Primer lists payments by their creation only. Card networks let a charge be paid back for about
// that long.
const LOOK_BACK_MS = 540 * 86_400_000
// A payment is created before its money moves, by up to the deadline of its processor.
const EARLIER_MS = 3_600_000

/**
 * Reads the summaries of all payments that may have changed, a hundred a call, and the payments that did change. Their order in the
 * list is not documented, so the movements are sorted here.
 */
export async function* movementsSince(since: string, reading: Reading): AsyncGenerator<Movement> {
  const sinceMs = Date.parse(since)
  const from_date = new Date(Math.max(0, sinceMs - LOOK_BACK_MS)).toISOString()
  const movements: Movement[] = []
  let cursor: string | undefined
  do {
    const { items, next } = await reading.page({ from_date, cursor })
    for (const summary of items) {
      if (ownIds(summary).key === null || !mayHaveMovedSince(summary, sinceMs)) continue
      const payment = await reading.payment(String(summary['id']))
      movements.push(...movementsOf(payment).filter(({ at }) => Date.parse(at) >= sinceMs))
    }
    cursor = next
  } while (cursor !== undefined)
  yield* movements.sort((one, other) => (one.at < other.at ? -1 : one.at > other.at ? 1 : 0))
}

function mayHaveMovedSince(summary: Fields, sinceMs: number): boolean {
  const updated = readTime(summary['dateUpdated']) ?? readTime(summary['date'])
  return updated === null || Date.parse(updated) >= sinceMs - EARLIER_MS
}

const MOVED = new Set(['SETTLED', 'PARTIALLY_SETTLED'])
const PENDING = new Set(['PENDING', 'AUTHORIZED', 'SETTLING'])

function movementsOf(payment: Payment): Movement[] {
  return [...chargesOf(payment), ...refundMovements(payment)]
}

/** A payment that two processors have charged is two movements under one key, which is reported as a duplicate. */
export function chargesOf(payment: Payment): Movement[] {
  const { id, key, reference, asked, customer, status, sales, date, updatedAt } = payment
  const hasMoved = MOVED.has(status)
  const isPending = PENDING.has(status)
  const movement: Movement = {
    type: 'charge',
    key,
    reference,
    ...asked,
    ...(hasMoved && { amountMinor: charged(payment) }),
    transactionId: id,
    at: date ?? updatedAt ?? new Date().toISOString(),
    ...(isPending && { isPending }),
    ...(!hasMoved && !isPending && { hasFailed: true }),
    ...(customer !== null && { providerCustomer: customer }),
  }
  const settled = sales.filter((sale) => MOVED.has(sale.status))
  const { hasFailed: _failed, isPending: _pending, ...again } = movement
  const copies = (hasMoved ? settled.slice(1) : settled).map(() => again)
  return [movement, ...copies]
}

function refundMovements(payment: Payment): Movement[] {
  return refundsIn(payment).flatMap(({ key, reference, transactionId, status, amountMinor, currencyCode, at }) =>
    status === 'failed'
      ? []
      : [
          {
            type: 'refund' as const,
            ...{ key, reference, amountMinor, currencyCode, transactionId, at },
            chargeTransactionId: payment.id,
            ...(status === 'pending' && { isPending: true }),
          },
        ],
  )
}
