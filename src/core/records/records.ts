// Every kind of record, in an order in which each comes after those it refers to: the order of an import's writes.
import { customerRecord } from './customer.ts'
import { experimentRecord } from './experiment.ts'
import { funnelRecord } from './funnel.ts'
import { merchantAccountRecord } from './merchant-account.ts'
import { paymentRecord } from './payment.ts'
import { productRecord } from './product.ts'
import { profileRecord } from './profile.ts'
import type { Kind } from './record.ts'
import { replyRecord } from './reply.ts'
import { sessionRecord } from './session.ts'
import { subscriptionRecord } from './subscription.ts'
import { transactionRecord } from './transaction.ts'

export const KINDS: readonly Kind[] = [
  funnelRecord,
  experimentRecord,
  productRecord,
  profileRecord,
  sessionRecord,
  replyRecord,
  subscriptionRecord,
  transactionRecord,
  merchantAccountRecord,
  customerRecord,
  paymentRecord,
]

/** The counters of all lists: each record with its counted fields. */
export const COUNTED = KINDS.flatMap(({ table, counts }) => (counts ? [{ table, counts }] : []))
