// Adds a successful charge to the data API's transactions, when its customer is linked to a profile.
import type { Event } from '../events/outbox.ts'
import type { Query, Statement } from '../lib/db.ts'
import { makeRecordId } from '../lib/ids.ts'
import { JsonNumber } from '../lib/json.ts'
import { instantFromPg } from '../lib/time.ts'

export interface Payment {
  project_id: string
  profile_id: string
  psp: string
  currency_code: string
  /** Not before what `begin_write` answered. */
  stamp: string
}

// The provider of play money.
const SANDBOX = 'simulator'

/** Adds the transaction and counts it; answers the event that tells of it. Call `begin_write` first. */
export async function addTransaction(
  query: Query,
  payment: Payment,
  priceMinor: bigint,
  usdMinor: bigint | null,
): Promise<Event> {
  const { project_id, profile_id, psp, currency_code, stamp } = payment
  const id = makeRecordId('trn')
  const sandbox = psp === SANDBOX
  await query(ADD, [project_id, id, stamp, profile_id, currency_code, priceMinor, usdMinor, sandbox])
  const data = {
    id,
    created_at: instantFromPg(stamp),
    session_id: null,
    profile_id,
    funnel_id: null,
    funnel: null,
    funnel_version: null,
    currency: currency_code,
    price: new JsonNumber(String(priceMinor)),
    price_usd: usdMinor === null ? null : new JsonNumber(String(usdMinor)),
    sandbox,
    funnel_locale: null,
    experiment_id: null,
  }
  return { type: 'transaction.created', object_id: id, profile_id, data }
}

const ADD: Statement = {
  name: 'add transaction of charge',
  text: `
    with added as (
      insert into transactions (project_id, id, created_at, updated_at, profile_id, currency, price, price_usd, sandbox)
      values ($1, $2, $3, $3, $4, $5, $6, $7, $8))
    insert into counts (project_id, list, field, value, n) values ($1, 'transactions', '', '', 1)`,
}
