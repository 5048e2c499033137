// Payouts of a Stripe account, each with the entries of the balance that it consists of. They are of the account, and make no lines.
import { ProviderError } from '../../../payments/providers/provider.ts'
import type { Fields } from '../../../payments/providers/stripe/api.ts'
import { idOf } from '../../../payments/providers/stripe/objects.ts'
import { readEntry, readPayout } from '../../../payments/providers/stripe/payouts.ts'
import type { Context } from './context.ts'
import { Inconvertible, type Line } from './convert.ts'
import { each } from './each.ts'

type Entry = Fields & { id: string }

export async function convertPayouts(context: Context, payouts: Entry[]): Promise<Line[]> {
  const { source, fees } = context
  await each(context, payouts, async (object) => {
    const payout = convertible(() => readPayout(object))
    const entries: Entry[] = []
    // Stripe tells it only of payouts by a schedule.
    if (payout.isAutomatic)
      for await (const page of source.pages<Entry>('/v1/balance_transactions', { payout: object.id }))
        entries.push(...page)
    await fees.payOut(
      payout,
      entries.map((entry) => convertible(() => readEntry(entry))),
    )
    // Those that the list above does not have.
    const ids = [object['failure_balance_transaction'], ...(payout.isAutomatic ? [] : [object['balance_transaction']])]
    const own = await Promise.all(
      ids.map(idOf).flatMap((id) => (id === null ? [] : [source.one<Entry>('balance_transactions', id)])),
    )
    await fees.enter(own.flatMap((entry) => (entry ? [convertible(() => readEntry(entry))] : [])))
  })
  return []
}

function convertible<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw error instanceof ProviderError ? new Inconvertible(error.message) : error
  }
}
