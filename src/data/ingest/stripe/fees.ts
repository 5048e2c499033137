// Stripe's fees: entries of the account's balance, stored with the payments and compared with Stripe's sums.
import type { App } from '../../../app.ts'
import { readDecimal, toMinor } from '../../../lib/money.ts'
import { storeFees, unknownEntries } from '../../../payments/providers/fees.ts'
import { storeEntries, storePayout } from '../../../payments/providers/payouts.ts'
import { ProviderError } from '../../../payments/providers/provider.ts'
import type { Fields } from '../../../payments/providers/stripe/api.ts'
import { readFee } from '../../../payments/providers/stripe/fees.ts'
import { readEntry } from '../../../payments/providers/stripe/payouts.ts'
import { gatherStatistics } from '../statistics.ts'
import type { Context, Fees } from './context.ts'
import { Inconvertible, type Line, type Target } from './convert.ts'
import { each } from './each.ts'
import { add } from './tally.ts'

const KIND = 'fees'

/** Fees are no records of a project: they are stored for the merchant account, and make no lines. */
export async function convertFees(context: Context, entries: (Fields & { id: string })[]): Promise<Line[]> {
  const { tally, fees } = context
  const read = await each(context, entries, (entry) => {
    try {
      return { fee: readFee(entry), entry: readEntry(entry) }
    } catch (error) {
      throw error instanceof ProviderError ? new Inconvertible(error.message) : error
    }
  })
  await fees.enter(read.map(({ entry }) => entry))
  const found = read.flatMap(({ fee }) => fee ?? [])
  for (const { at, currencyCode, amountMinor } of found)
    add(tally, 'stripe', { kind: KIND, month: at.slice(0, 7), currency: currencyCode }, 1, amountMinor)
  for (const { month, currency, count, minor } of await fees.add(found))
    add(tally, 'here', { kind: KIND, month, currency }, count, minor)
  return []
}

export function storedFees(
  { db: { query }, log }: Pick<App, 'db' | 'log'>,
  { organizationId, merchantId }: Target,
): Fees {
  const account = { organizationId, psp: 'stripe', merchantId }
  return {
    async add(fees) {
      await storeFees(query, account, fees)
      await gatherStatistics(query, log, 'provider_fees', fees.length)
      const rows = await query(SUM, [organizationId, account.psp, merchantId, fees.map(({ entryId }) => entryId)])
      return rows.map(({ month, currency_code: currency, n, sum }) => ({
        ...{ month: month!, currency: currency!, count: Number(n) },
        minor: toMinor(readDecimal(sum!)!, currency!)!,
      }))
    },
    enter: (entries) => storeEntries(query, account, entries),
    payOut: (payout, entries) => storePayout(query, account, payout, entries),
    unknown: (entryIds) => unknownEntries(query, 'balance_entries', account, entryIds),
  }
}

// An entry of a charge has a row for each name of the charge.
const SUM = `
  select to_char(entered_at at time zone 'UTC', 'YYYY-MM') as month, currency_code, count(*) as n, sum(fee) as sum
  from (
    select distinct entry_id, fee, currency_code, entered_at from provider_fees
    where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and entry_id = any($4)) f
  group by 1, 2`

/** For a dry run. */
export const feesNowhere: Fees = {
  add: async () => [],
  enter: async () => {},
  payOut: async () => {},
  unknown: async (entryIds) => entryIds,
}
