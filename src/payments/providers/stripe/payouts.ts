// Stripe's payouts and balance transactions. An unexpected form throws a `ProviderError`.

import type { BalanceEntry, Payout } from '../payouts.ts'
import { ProviderError } from '../provider.ts'
import { textOf } from '../transport.ts'
import type { Fields } from './api.ts'
import { idOf, readSum, readTime } from './objects.ts'

// A payment's entry may have a description by the shop, which may name people.
const OF_PAYMENTS = new Set([
  'charge',
  'payment',
  'refund',
  'payment_refund',
  'refund_failure',
  'payment_failure_refund',
])
const MAX_DESCRIPTION = 200
const STATUSES = new Set(['pending', 'in_transit', 'paid', 'failed', 'canceled'])

export function readEntry(entry: Fields): BalanceEntry {
  const { amountMinor, currencyCode } = readSum(entry, 'amount')
  const type = textOf(entry['type']) ?? 'unknown'
  const source = idOf(entry['source'])
  return {
    entryId: String(entry['id']),
    type,
    category: textOf(entry['reporting_category']),
    amountMinor,
    feeMinor: readSum(entry, 'fee').amountMinor,
    netMinor: readSum(entry, 'net').amountMinor,
    currencyCode,
    source,
    description: OF_PAYMENTS.has(type) ? null : (textOf(entry['description'])?.slice(0, MAX_DESCRIPTION) ?? null),
    at: readTime(entry['created']),
  }
}

export function readPayout(payout: Fields): Payout {
  const status = textOf(payout['status'])
  if (status === null || !STATUSES.has(status)) throw new ProviderError(`returned a payout with the status ${status}`)
  return {
    payoutId: String(payout['id']),
    ...readSum(payout, 'amount'),
    status,
    isAutomatic: payout['automatic'] === true,
    arrivesOn: readTime(payout['arrival_date']).slice(0, 10),
    createdAt: readTime(payout['created']),
    failureCode: textOf(payout['failure_code']),
  }
}
