// Adds successful charges to the data API's transactions, when their customers are linked to profiles.
import type { Event } from '../../../core/events/outbox.ts'
import { makeRecordId } from '../../../lib/ids.ts'
import { JsonNumber } from '../../../lib/json/read.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { instantFromPg } from '../../../lib/time.ts'
import { instantOrNull } from './report-rows.ts'

export interface Payment {
  project_id: string
  profile_id: string
  /** Whether the merchant account moves play money only. */
  is_sandbox: boolean
  currency_code: string
  priceMinor: bigint
  usdMinor: bigint | null
  /** When the payment was made, according to the provider; null if that is not known. */
  psp_date: string | null
  /** Not before the time that `begin_write` returned. */
  stamp: string
}

/** The row of a transaction. */
export type Added = ReturnType<typeof transactionOf>

export function transactionOf({
  project_id,
  profile_id,
  is_sandbox,
  currency_code,
  priceMinor,
  usdMinor,
  psp_date,
  stamp,
}: Payment) {
  return {
    project_id,
    id: makeRecordId('trn'),
    created_at: timeOfPayment(psp_date, stamp),
    updated_at: stamp,
    profile_id,
    currency: currency_code,
    price: new JsonNumber(String(priceMinor)),
    price_usd: usdMinor === null ? null : new JsonNumber(String(usdMinor)),
    sandbox: is_sandbox,
  }
}

/** A charge may be settled long after it was paid. The provider's clock may be ahead of ours. */
function timeOfPayment(pspDate: string | null, stamp: string): string {
  const last = instantFromPg(stamp)
  const paid = pspDate === null ? null : instantOrNull(pspDate)
  return paid !== null && paid < last ? paid : last
}

/** Adds transactions, and counts those of each project. Call `begin_write` first. */
export async function addTransactions(query: Query, rows: Added[]): Promise<void> {
  await query(...ADD(rows.map(columnsOf)))
}

function columnsOf({ price, price_usd, sandbox, ...more }: Added) {
  return { ...more, price: price.text, price_usd: price_usd?.text ?? null, sandbox: String(sandbox) }
}

// The profile may have been merged into another since it was read.
const TARGET = `coalesce((
  select m.profile_id from profile_aliases m where m.project_id = a.project_id and m.alias = a.profile_id), a.profile_id)`

const ADD = onGivenRows(
  'add transactions of charges',
  {
    project_id: 'text',
    id: 'text',
    created_at: 'timestamptz',
    updated_at: 'timestamptz',
    profile_id: 'text',
    currency: 'text',
    price: 'bigint',
    price_usd: 'bigint',
    sandbox: 'boolean',
  },
  (rows) => `
    with added as (
      insert into transactions (project_id, id, created_at, updated_at, profile_id, currency, price, price_usd, sandbox)
      select project_id, id, created_at, updated_at, ${TARGET}, currency, price, price_usd, sandbox
      from ${rows} returning project_id)
    insert into counts (project_id, list, field, value, n)
    select project_id, 'transactions', '', '', count(*) from added group by project_id`,
)

/** The event of a new transaction; its data has the form of the data API. */
export function createdEvent({ id, created_at, profile_id, currency, price, price_usd, sandbox }: Added): Event {
  const data = {
    id,
    created_at,
    session_id: null,
    profile_id,
    funnel_id: null,
    funnel: null,
    funnel_version: null,
    currency,
    price,
    price_usd,
    sandbox,
    funnel_locale: null,
    experiment_id: null,
  }
  return { type: 'transaction.created', object_id: id, profile_id, data }
}
