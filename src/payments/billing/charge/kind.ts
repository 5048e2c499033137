// What charges declare as a kind of movement.
import type { Kind } from '../movement/kind-of-movement.ts'
import type { TakeOver } from './adopt.ts'
import { mountCharges } from './api.ts'
import { chargeChecks } from './check.ts'
import { chargeResponse } from './response.ts'
import { findSucceededSince, type Order, rememberHandle } from './row.ts'

/** @param takeOver takes over the refunds and disputes of a charge that is adopted */
export function chargeKind(takeOver: TakeOver): Kind<Order> {
  const checks = chargeChecks(takeOver)
  return {
    ...checks,
    noun: 'order',
    mount: (app, context) => mountCharges(app, context, checks),
    idOf: ({ order_id }) => order_id,
    handleOf: ({ provider_handle }) => provider_handle,
    canBeCancelled: true,
    responseOf: (order) => chargeResponse(order, false),
    findSucceededSince,
    keepsLost: true,
    async rememberHandle(query, order, handle) {
      if (order.provider_handle === null) await rememberHandle(query, order, handle)
    },
    refuseLate: (context, provider, order, handle) =>
      checks.refuse(context, provider, { ...order, provider_handle: handle }),
  }
}
