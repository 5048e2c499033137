// Adds rows to the transaction report: one for each movement of money whose outcome is known, in the order of commits.

import { fitted } from '../../../core/records/import/fields.ts'
import { detailFlags, paymentRecord } from '../../../core/records/payment.ts'
import { makeUuid } from '../../../lib/ids.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { readInstant, TimeError } from '../../../lib/time.ts'
import { noDetails, type PaymentDetails } from '../../providers/provider.ts'

/** The fields of a row that Tundish knows, and those of the provider in `details`. */
export interface ReportRow {
  organization_id: string
  external_id: string
  order_id: string
  /** Major units with all decimals of the currency. */
  amount: string
  amount_usd: string | null
  currency_code: string
  status: 'succeeded' | 'failed' | 'refunded'
  /** `soft_refund`: no money moved. `chargeback`, `chargeback_reversal`: of a dispute. */
  psp_transaction_type: 'sale' | 'refund' | 'soft_refund' | 'chargeback' | 'chargeback_reversal'
  psp: string
  psp_merchant_id: string | null
  /** The provider's customer that the card is attached to. */
  psp_customer_id: string | null
  region: string | null
  /** Null for refunds and disputes: they are no proof of a saved card. */
  payment_method_token: string | null
  /** Whether the customer was present; no, if it is omitted. */
  is_cit?: boolean
  /** Whether it is a further attempt at another processor; no, if it is omitted. */
  is_fallback?: boolean
  /** The fields that the provider returned. */
  details: PaymentDetails
}

const OWN = [
  'organization_id',
  'external_id',
  'order_id',
  'amount',
  'amount_usd',
  'currency_code',
  'status',
  'psp_transaction_type',
  'psp',
  'psp_merchant_id',
  'psp_customer_id',
  'region',
  'payment_method_token',
] as const satisfies (keyof ReportRow)[]

const PROVIDERS = (Object.keys(noDetails) as (keyof PaymentDetails)[]).filter((name) => name !== 'psp_transaction_type')

/**
 * Adds rows in their order, none stamped before the latest of `notBefore`: a charge's row must not be stamped before its
 * transaction, or figures would count both. Do it last in the transaction: the clocks of the organizations stay locked to
 * the commit, so that rows are visible before the next one of their organization is stamped.
 */
export async function addReportRows(query: Query, rows: ReportRow[], notBefore: string[] = []): Promise<void> {
  const counts = new Map<string, number>()
  const places = rows.map(({ organization_id }) => {
    const place = (counts.get(organization_id) ?? 0) + 1
    counts.set(organization_id, place)
    return String(place)
  })
  const written = JSON.stringify(rows.map(columnsOf))
  await query(ADD, [[...counts.keys()], Array.from(counts.values(), String), written, places, notBefore])
}

function columnsOf(row: ReportRow): object {
  const own = OWN.map((name) => [name, row[name]])
  const { is_cit = false, is_fallback = false } = row
  const providers = PROVIDERS.map((name) => [name, fitting(name, row.details[name])])
  return { trx_id: makeUuid(), is_cit, is_fallback, ...Object.fromEntries(own), ...Object.fromEntries(providers) }
}

const COLUMNS = ['trx_id', 'is_cit', 'is_fallback', ...OWN, ...PROVIDERS].join(', ')

// Clocks are locked in sorted order, so that two processes wait for each other without a deadlock. Each is set to the stamp of
// its last row; the rows are a microsecond apart. An organization without a clock makes the stamps null, which the
// table refuses.
const ADD: Statement = {
  name: 'add report rows',
  text: `
    with locked as materialized (
      select c.organization_id, a.rows from unnest($1::text[], $2::int[]) as a (organization_id, rows)
      join organization_clocks c on c.organization_id = a.organization_id
      order by c.organization_id for no key update of c),
    ticked as (
      update organization_clocks c set last_trx_created_at =
        greatest(db_clock(), c.last_trx_created_at + interval '1 microsecond',
          (select max(stamp) from unnest($5::timestamptz[]) stamp)) + (l.rows - 1) * interval '1 microsecond'
      from locked l where c.organization_id = l.organization_id
      returning c.organization_id, c.last_trx_created_at - l.rows * interval '1 microsecond' as before),
    stamped as (
      select a.*, ticked.before + ($4::int[])[a.ordinality] * interval '1 microsecond' as stamp
      from rows from (json_populate_recordset(null::report_transactions, $3)) with ordinality as a
      left join ticked on ticked.organization_id = a.organization_id)
    insert into report_transactions (imported, trx_created_at, updated_at, ${COLUMNS})
    select false, stamp, stamp, ${COLUMNS} from stamped`,
}

/**
 * A provider's value in the form that its column takes. A value that does not fit is left out: money has moved, and settling
 * must not fail again and again because of a field of the report.
 */
function fitting(name: keyof PaymentDetails, value: string | boolean | null): string | boolean | null {
  if (detailFlags.has(name)) return value === true
  if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed()) return null
  if (name === 'psp_date') return instantOrNull(value)
  if (name === 'pm_data_first6') return /^[0-9]{6}$/.test(value) ? value : null
  if (name === 'pm_data_last4') return /^[0-9]{4}$/.test(value) ? value : null
  return fitted(value, TYPES.get(name)!)
}

const TYPES = new Map(paymentRecord.fields.map(({ name, type }) => [name, type]))

/** The instant that a provider sent; null if it is none. */
export function instantOrNull(text: string): string | null {
  try {
    return readInstant(text)
  } catch (error) {
    if (error instanceof TimeError) return null
    throw error
  }
}
