// Adds rows to the payment report: one for each movement of money whose outcome is known, in the order of their commits.
import type { Param, Query, Statement } from '../lib/db.ts'
import { makeUuid } from '../lib/ids.ts'
import { readInstant, TimeError } from '../lib/time.ts'
import { noDetails, type PaymentDetails } from '../providers/provider.ts'

/** What we know of the movement ourselves. */
export interface ReportRow {
  organization_id: string
  external_id: string
  order_id: string
  /** Major units with all decimals of the currency. */
  amount: string
  amount_usd: string | null
  currency_code: string
  status: 'succeeded' | 'failed' | 'refunded'
  psp_transaction_type: 'sale' | 'refund'
  psp: string
  psp_merchant_id: string | null
  region: string | null
  /** Null for refunds: a card that was paid back is no proof of a saved one. */
  payment_method_token: string | null
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
  'region',
  'payment_method_token',
] as const satisfies (keyof ReportRow)[]

const FLAGS = new Set(['is_vaulted', 'threeds_challenge_issued', 'pm_data_is_network_tokenized'])
const TOLD = (Object.keys(noDetails) as (keyof PaymentDetails)[]).filter((name) => name !== 'psp_transaction_type')

/**
 * Adds a row with what the provider told of it. Do it last in the transaction: the organization's clock stays locked to
 * the commit, so that a row is visible before the next one is stamped.
 */
export async function addReportRow(query: Query, row: ReportRow, details: PaymentDetails): Promise<void> {
  const own = OWN.map((name): Param => row[name])
  const told = TOLD.map((name): Param => fitting(name, details[name]))
  const added = await query(ADD, [makeUuid(), ...own, ...told])
  if (added.length !== 1) throw new Error(`Bug: the organization "${row.organization_id}" has no clock`)
}

const COLUMNS = [...OWN, ...TOLD]

const ADD: Statement = {
  name: 'add report row',
  text: `
    with clock as (
      update organization_clocks set last_trx_created_at = greatest(db_clock(), last_trx_created_at + interval '1 microsecond')
      where organization_id = $2 returning last_trx_created_at as stamp)
    insert into report_transactions (imported, trx_id, trx_created_at, updated_at, ${COLUMNS.join(', ')})
    select false, $1, clock.stamp, clock.stamp, ${COLUMNS.map((_, n) => `$${n + 2}`).join(', ')} from clock
    returning trx_id`,
}

/**
 * A provider's word in the form that its column takes. What does not fit is left out: money has moved, and settling must
 * not fail on a field of the report for ever.
 */
function fitting(name: keyof PaymentDetails, value: string | boolean | null): Param {
  if (FLAGS.has(name)) return value === true
  if (typeof value !== 'string' || value.includes('\0') || !value.isWellFormed()) return null
  if (name === 'psp_date') return instantOrNull(value)
  if (name === 'pm_data_first6') return /^[0-9]{6}$/.test(value) ? value : null
  if (name === 'pm_data_last4') return /^[0-9]{4}$/.test(value) ? value : null
  return value
}

function instantOrNull(text: string): string | null {
  try {
    return readInstant(text)
  } catch (error) {
    if (error instanceof TimeError) return null
    throw error
  }
}
