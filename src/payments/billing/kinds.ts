// The kinds of movements of money: the only file that knows both charges and refunds. A further kind is a folder, and an entry here.
import { oneOffCharge as charge } from './charge/charge.ts'
import { chargeKind } from './charge/kind.ts'
import type { ChargeRequest } from './charge/request.ts'
import type { BillingContext } from './context.ts'
import { adoptDispute } from './ledger/dispute.ts'
import type { InProgress } from './movement/in-progress.ts'
import type { Kind } from './movement/kind-of-movement.ts'
import { adoptRefunds } from './refund/adopt.ts'
import { refundKind } from './refund/kind.ts'

export { readChargeRequest } from './charge/request.ts'

export const CHARGE = chargeKind(async (query, order, refunds, disputes) => {
  await adoptRefunds(query, order, refunds)
  for (const dispute of disputes) await adoptDispute(query, order, dispute)
})

export const KINDS: readonly Kind<InProgress>[] = [CHARGE, refundKind]

/** Charges a customer's saved card; see `charge/charge.ts`. */
export const oneOffCharge = (context: BillingContext, organizationId: string, request: ChargeRequest) =>
  charge(context, CHARGE, organizationId, request)
