// All work of the crash matrix besides requests, each with its victims.
import type { Row } from './victim.ts'
import { unerased, unimported, unrestored, unswept } from './victims-of-data.ts'
import { undelivered, unforgotten } from './victims-of-events.ts'
import { unknownOutcome } from './victims-of-money.ts'
import { lostCharge, unerasedAtProvider, unimportedAccount } from './victims-of-stripe.ts'

const charge = (title: string, work: string, token: string, end: string): Row => ({
  title: `${title} (${token})`,
  work,
  make: (ground) => unknownOutcome(ground, token, 'charge', end),
})
const refund = (title: string, work: string, token: string, end: string): Row => ({
  title: `${title} (${token})`,
  work,
  make: (ground) => unknownOutcome(ground, token, 'refund', end),
})

export const ROWS: Row[] = [
  charge('settling a charge', 'settling', 'sim_charge_then_drop', 'succeeded'),
  charge('settling a charge', 'settling', 'sim_drop_no_charge', 'cancelled'),
  refund('settling a refund', 'settling', 'sim_refund_then_drop', 'succeeded'),
  refund('settling a refund', 'settling', 'sim_refund_drop', 'failed'),
  charge('reconciling a charge', 'reconcile', 'sim_charge_then_drop', 'succeeded'),
  refund('reconciling a refund', 'reconcile', 'sim_refund_then_drop', 'succeeded'),
  { title: 'finding a charge that a restored backup does not have', work: 'reconcile', make: lostCharge },
  { title: 'delivering an event', work: 'delivery', make: undelivered },
  { title: 'adding up counts', work: 'counts', make: (ground) => unswept(ground, 'counts') },
  { title: 'computing figures', work: 'figures', make: (ground) => unswept(ground, 'figures') },
  { title: 'deleting old attempts', work: 'retention', make: unforgotten },
  { title: 'importing a file', work: 'import', make: (ground) => unimported(ground, false) },
  { title: 'importing a feed', work: 'import', make: (ground) => unimported(ground, true) },
  { title: 'importing a Stripe account', work: 'stripe import', make: unimportedAccount },
  { title: 'erasing a person', work: 'erasure', make: unerased },
  { title: 'erasing a customer at Stripe', work: 'erasure at provider', make: unerasedAtProvider },
  { title: 'restoring a backup', work: 'restore', make: unrestored },
]
