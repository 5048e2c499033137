// The events of credits, in the order of each account.
import { type OfProject, writeAll } from '../../../core/events/outbox.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { jsonCredits } from './amount.ts'
import { isSwitchedOff, REVOKED } from './due-top-ups.ts'
import type { Entry } from './parts.ts'
import type { Held } from './store.ts'

const customer = {
  external_id: Type.String({ description: 'Identifier of the user.' }),
  unit: Type.String({ description: 'Unit of the credits.', examples: ['tokens'] }),
}

const amount = (description: string) => Type.Number({ description, examples: [100] })
const id = (description: string) => ({ type: ['string', 'null'], format: 'uuid', description })

/** The `data` of the events of an entry. */
export const creditsEventData = Type.Named('CreditsEventData', {
  entry_id: Type.String({ format: 'uuid', description: 'The entry of the ledger.' }),
  ...customer,
  amount: amount('Change of the balance; negative for what was taken.'),
  balance: amount('Balance after it.'),
  cause: Type.String({
    description:
      '`charge`, `grant`, `spend`, `capture`, `adjustment`, `expiry`, `refund`, `refund_failed`, `dispute` or `dispute_won`.',
    examples: ['spend'],
  }),
  grant_id: id('The grant; null if it is not about a single one.'),
  hold_id: id('The hold that was captured.'),
  order_id: id('Order of the charge that granted it.'),
})

/** The `data` of `credits.low`. */
export const creditsLowData = Type.Named('CreditsLowData', {
  ...customer,
  available: amount('What can be spent.'),
  low_below: amount('The limit of the unit, which it fell below.'),
})

/** The `data` of `top_up.switched_off`. */
export const topUpEventData = Type.Named('TopUpEventData', {
  ...customer,
  reason: Type.String({
    description:
      'The code of the decline or of the refusal, such as `insufficient_funds` or `no_saved_card`; `revoked` after a refund or dispute.',
    examples: ['insufficient_funds'],
  }),
  order_id: id('Order of the charge that was declined; null if there is none.'),
})

/** The event of an automatic top-up that was switched off. Its row is locked. */
export const topUpSwitchedOff = ({
  topUpId,
  projectId,
  profileId,
  externalId,
  unit,
  reason,
  orderId,
}: Pick<Held, 'projectId' | 'profileId' | 'externalId' | 'unit'> & {
  topUpId: string
  reason: string
  orderId: string | null
}): OfProject => ({
  project_id: projectId,
  profile_id: profileId,
  object_id: topUpId,
  type: 'top_up.switched_off',
  data: { external_id: externalId, unit, reason, order_id: orderId },
})

const TYPES = { spent: 'credits.spent', expired: 'credits.expired' } as const

function typeOf({ account, amount }: Entry) {
  if (account === 'spent' || account === 'expired') return TYPES[account]
  return amount > 0n ? 'credits.granted' : 'credits.revoked'
}

/** Writes the events of what was done to these accounts, which are locked. */
export async function writeEvents(query: Query, changed: readonly Held[]): Promise<void> {
  const events = changed.flatMap((held) => [
    ...held.account.entries.map((entry) => eventOf(held, entry)),
    ...low(held),
    ...(isSwitchedOff(held)
      ? [topUpSwitchedOff({ ...held, topUpId: held.topUp!.topUpId, reason: REVOKED, orderId: null })]
      : []),
  ])
  if (events.length > 0) await writeAll(query, events)
}

function eventOf(held: Held, entry: Entry): OfProject {
  const data = {
    entry_id: entry.entryId,
    external_id: held.externalId,
    unit: held.unit,
    amount: jsonCredits(entry.amount),
    balance: jsonCredits(entry.balance),
    cause: entry.cause,
    grant_id: entry.grantId,
    hold_id: entry.holdId,
    order_id: entry.orderId,
  }
  return { ...about(held), type: typeOf(entry), data }
}

function low(held: Held): OfProject[] {
  const { lowBelow, availableBefore, account, externalId, unit } = held
  if (lowBelow === null || availableBefore < lowBelow || account.available >= lowBelow) return []
  const data = {
    external_id: externalId,
    unit,
    available: jsonCredits(account.available),
    low_below: jsonCredits(lowBelow),
  }
  return [{ ...about(held), type: 'credits.low', data }]
}

const about = ({ projectId, profileId, accountId }: Held) => ({
  project_id: projectId,
  profile_id: profileId,
  object_id: accountId,
})
