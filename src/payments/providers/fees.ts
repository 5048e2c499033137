// Fees that payment providers deduct for payments, refunds and disputes, stored under the provider's ids for the finance report.

import type { Move } from '../../core/records/payment-move.ts'
import { formatMinor } from '../../lib/money.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import { type AccountName, accountKey } from './account.ts'

export interface Fee {
  /** The id of the entry in the account's balance at the provider. An entry never changes, so reading it again is harmless. */
  entryId: string
  /** The provider's ids of the charge, refund or dispute. A stored payment refers to a charge by one of them. */
  transactionIds: string[]
  move: Move
  /** The deducted amount in minor units of ISO 4217; negative for a returned fee. */
  amountMinor: bigint
  /** The currency of the balance, which may differ from the currency of the payment. */
  currencyCode: string
  at: string
}

/** Entries in the balance at a provider that a notification names, and the payment that they belong to. */
export interface BalanceEntries {
  entryIds: string[]
  /** The order that the entries belong to; null if the notification does not contain it. */
  orderId: string | null
  chargeTransactionId: string | null
}

/** Stores fees. A fee that is stored already is left alone, because an entry in a balance never changes. */
export async function storeFees(query: Query, account: AccountName, fees: Fee[]): Promise<void> {
  if (fees.length === 0) return
  const rows = fees.flatMap(({ entryId, transactionIds, move, amountMinor, currencyCode, at }) =>
    transactionIds.map((transaction_id) => ({
      ...{ transaction_id, move, entry_id: entryId, entered_at: at },
      ...{ fee: formatMinor(amountMinor, currencyCode), currency_code: currencyCode },
    })),
  )
  await query(KEEP, [...accountKey(account), JSON.stringify(rows)])
}

// Inserted in a fixed order, so that two transactions that store the same fees cannot deadlock.
const KEEP: Statement = {
  name: 'keep provider fees',
  text: `
    with held as materialized (select hold_organization($1))
    insert into provider_fees (organization_id, psp, psp_merchant_id, transaction_id, move, entry_id, fee, currency_code,
      entered_at)
    select $1, $2, $3, f.transaction_id, f.move, f.entry_id, f.fee, f.currency_code, f.entered_at
    from json_to_recordset($4) f (transaction_id text, move text, entry_id text, fee numeric, currency_code text,
      entered_at timestamptz), held
    order by f.transaction_id, f.move, f.entry_id
    on conflict do nothing`,
}

/** Returns the entries of a balance that are not stored yet: their fees, or the entries themselves. */
export async function unknownEntries(
  query: Query,
  table: 'provider_fees' | 'balance_entries',
  account: AccountName,
  entryIds: string[],
): Promise<string[]> {
  if (entryIds.length === 0) return []
  const rows = await query<{ entry_id: string }>(find(table), [...accountKey(account), entryIds])
  const known = new Set(rows.map(({ entry_id }) => entry_id))
  return entryIds.filter((id) => !known.has(id))
}

const find = (table: string): Statement => ({
  name: `find ${table}`,
  text: `select distinct entry_id from ${table}
         where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and entry_id = any($4)`,
})
