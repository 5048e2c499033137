// The balances of a customer: what has expired is taken off at once, whether the clockwork has booked it or not.
import type { Query } from '../../../lib/pg/types.ts'
import { Type } from '../../../lib/shape/schema.ts'
import { externalId } from '../body.ts'
import { type Credits, jsonCredits } from './amount.ts'
import { readAccounts } from './store.ts'

export const balanceIn = Type.Named('CreditsBalanceIn', { external_id: externalId })

export const amount = (description: string, example: number) => Type.Number({ description, examples: [example] })

export const balanceOut = Type.Object(
  {
    unit: Type.String({ description: 'The unit.', examples: ['tokens'] }),
    balance: amount('All that the customer has. Negative: a debt, which the next grant pays first.', 100),
    held: amount('What is reserved by open holds.', 10),
    available: amount('What can be spent or held.', 90),
    expires: Type.Array(
      Type.Object(
        {
          at: Type.String({ format: 'date-time', description: 'When it expires.' }),
          amount: amount('How much expires then, unless it is used before.', 50),
        },
        { title: 'CreditsExpiry' },
      ),
      { description: 'What expires, earliest first. Holds keep from expiring what they reserve.' },
    ),
  },
  { title: 'CreditsBalance' },
)

export const balancesOut = Type.Object(
  { balances: Type.Array(balanceOut, { description: 'One for each unit that the customer has had, by name.' }) },
  { title: 'CreditsBalances' },
)

/** The balances of a customer; none for one who is not known. */
export async function balancesOf(query: Query, organizationId: string, customer: string) {
  const accounts = await readAccounts(query, organizationId, customer)
  return accounts.map(({ unit, account }) => ({
    unit,
    balance: jsonCredits(account.balance),
    held: jsonCredits(account.held),
    available: jsonCredits(account.available),
    expires: expiriesOf(account.lots),
  }))
}

function expiriesOf(lots: readonly { expiresAt: string | null; remaining: Credits }[]) {
  const sums = new Map<string, Credits>()
  for (const { expiresAt, remaining } of lots) {
    if (expiresAt !== null && remaining > 0n) sums.set(expiresAt, (sums.get(expiresAt) ?? 0n) + remaining)
  }
  return Array.from(sums, ([at, sum]) => ({ at, amount: jsonCredits(sum) }))
}
