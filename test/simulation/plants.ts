// Bugs to plant, one at a time: each breaks a rule that the simulation must find broken.

export interface Plant {
  /** Under src/. */
  file: string
  code: string
  bug: string
}

export const plants: Record<string, Plant> = {
  'time-out-is-failure': {
    file: 'billing/unknown/look.ts',
    code: `else await kind.rows.handOver(db, row)\n  return row`,
    bug: `else await kind.rows.handOver(db, row)\n  return { ...row, status: 'failed' }`,
  },
  'cancelled-without-refusal': {
    file: 'billing/unknown/look.ts',
    code: `if (!isWaitedOut) return kind.refuse(context, provider, row, signal)`,
    bug: `if (!isWaitedOut) return { outcome: 'refused' }`,
  },
  'another-key-for-looks': {
    file: 'billing/charge/orders.ts',
    code: `return { key: provider_key, reference: order_id`,
    bug: `return { key: provider_key + order.looks, reference: order_id`,
  },
  'refund-by-old-sums': {
    file: 'billing/refund/claim.ts',
    code: `const order = await findRefundable(query, organizationId, request)`,
    bug: `const order = { ...(await findRefundable(query, organizationId, request)), amount_refunded: '0' }`,
  },
  'soft-refund-revokes': {
    file: 'billing/refund/settle.ts',
    code: `const hard = outcome.soft_refund === 't' ? 0n : minor(amount)`,
    bug: `const hard = minor(amount)`,
  },
  'lease-forgotten': {
    file: 'billing/charge/claim.ts',
    code: `now.at, now.at + make_interval(secs => a.lease_s), now.at + make_interval(secs => a.lease_s)`,
    bug: `now.at, now.at, now.at + make_interval(secs => a.lease_s * 0)`,
  },
  'report-by-the-clock-alone': {
    file: 'billing/effects/report-rows.ts',
    code: `greatest(db_clock(), last_trx_created_at + interval '1 microsecond')`,
    bug: `greatest(db_clock(), last_trx_created_at)`,
  },
  'answers-mixed-up': {
    file: 'lib/batching.ts',
    code: `resolve(results[n]!)`,
    bug: `resolve(results[0]!)`,
  },
}
