// Payouts of merchant accounts and the entries of their balances, as providers report them.
import { formatMinor } from '../../lib/money.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import { type AccountName, accountKey } from './account.ts'

/** An entry in the balance of an account. Amounts are in minor units, negative when the account paid. */
export interface BalanceEntry {
  entryId: string
  type: string
  category: string | null
  amountMinor: bigint
  feeMinor: bigint
  netMinor: bigint
  currencyCode: string
  source: string | null
  description: string | null
  at: string
}

export interface Payout {
  payoutId: string
  amountMinor: bigint
  currencyCode: string
  status: string
  isAutomatic: boolean
  /** The day on which it arrives at the bank. */
  arrivesOn: string
  createdAt: string
  failureCode: string | null
}

/** Stores a payout as it is now, with the entries that it consists of. What an operator noted of it is kept. */
export async function storePayout(
  query: Query,
  account: AccountName,
  payout: Payout,
  entries: readonly BalanceEntry[],
): Promise<void> {
  const { payoutId, amountMinor, currencyCode, status, isAutomatic, arrivesOn, createdAt, failureCode } = payout
  await storeEntries(query, account, entries, payoutId)
  await query(KEEP_PAYOUT, [
    ...accountKey(account),
    ...[payoutId, formatMinor(amountMinor, currencyCode), currencyCode, status, isAutomatic, arrivesOn, createdAt],
    failureCode,
  ])
}

/** Stores entries. One that is stored already never changes, except that it is paid out. */
export async function storeEntries(
  query: Query,
  account: AccountName,
  entries: readonly BalanceEntry[],
  payoutId: string | null = null,
): Promise<void> {
  if (entries.length === 0) return
  const rows = entries.map(({ entryId, type, category, amountMinor, feeMinor, netMinor, currencyCode, ...more }) => ({
    ...{ entry_id: entryId, type, category, currency_code: currencyCode },
    ...{ source: more.source, description: more.description, entered_at: more.at },
    amount: formatMinor(amountMinor, currencyCode),
    fee: formatMinor(feeMinor, currencyCode),
    net: formatMinor(netMinor, currencyCode),
  }))
  await query(KEEP_ENTRIES, [...accountKey(account), JSON.stringify(rows), payoutId])
}

// In a fixed order, so that two transactions that store the same entries cannot deadlock.
const KEEP_ENTRIES: Statement = {
  name: 'keep balance entries',
  text: `
    with held as materialized (select hold_organization($1))
    insert into balance_entries (organization_id, psp, psp_merchant_id, entry_id, payout_id, type, category, amount, fee, net,
      currency_code, source, description, entered_at)
    select $1, $2, $3, e.entry_id, $5, e.type, e.category, e.amount, e.fee, e.net, e.currency_code, e.source, e.description,
      e.entered_at
    from json_to_recordset($4) e (entry_id text, type text, category text, amount numeric, fee numeric, net numeric,
      currency_code text, source text, description text, entered_at timestamptz), held
    order by e.entry_id
    on conflict (organization_id, psp, psp_merchant_id, entry_id) do update set payout_id = excluded.payout_id
      where excluded.payout_id is not null and balance_entries.payout_id is distinct from excluded.payout_id`,
}

// A payout that was paid may fail later, and never goes back: what was read before, and is stored later, is dropped.
const STATUSES = `array['pending', 'in_transit', 'paid', 'failed', 'canceled']`

const KEEP_PAYOUT: Statement = {
  name: 'keep a payout',
  text: `
    with held as materialized (select hold_organization($1))
    insert into provider_payouts (organization_id, psp, psp_merchant_id, payout_id, amount, currency_code, status, is_automatic,
      arrives_on, created_at, failure_code)
    select $1, $2, $3, $4, $5::numeric, $6, $7, $8::boolean, $9::date, $10::timestamptz, $11 from held
    on conflict (organization_id, psp, psp_merchant_id, payout_id) do update set status = excluded.status,
      arrives_on = excluded.arrives_on, failure_code = excluded.failure_code
      where (array_position(${STATUSES}, provider_payouts.status) > array_position(${STATUSES}, excluded.status)) is not true`,
}
