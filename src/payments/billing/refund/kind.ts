// What refunds declare as a kind of movement.
import type { Kind } from '../movement/kind-of-movement.ts'
import { adoptRefundsOfCharge } from './adopt-of-charge.ts'
import { mountRefunds } from './api.ts'
import { REFUND } from './check.ts'
import { refundResponse } from './response.ts'
import { findSucceededSince, type Refund } from './row.ts'

export const refundKind: Kind<Refund> = {
  ...REFUND,
  noun: 'refund',
  mount: mountRefunds,
  idOf: ({ refund_id }) => refund_id,
  handleOf: ({ provider_transaction_id }) => provider_transaction_id,
  canBeCancelled: false,
  responseOf: (refund) => refundResponse(refund, false),
  findSucceededSince,
  keepsLost: false,
  ofCharge: { idOf: ({ charge_transaction_id }) => charge_transaction_id, adopt: adoptRefundsOfCharge },
}
