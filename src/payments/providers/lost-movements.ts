// Movements that Tundish made at a provider and that have no order here: after a restored backup, or after a failover that lost
// commits. A claim finds its key in them, so that nothing is charged twice.
import { formatMinor } from '../../lib/money.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import { type AccountName, accountKey } from './account.ts'
import type { Movement } from './movements.ts'

/** Stores movements of one account, or updates the state of those that are stored. An operator's decision about one is kept. */
export async function storeLost(query: Query, account: AccountName, movements: readonly Movement[]): Promise<void> {
  if (movements.length === 0) return
  const rows = movements.map(
    ({ type, key, reference, transactionId, chargeTransactionId, providerCustomer, ...one }) => ({
      ...{ transaction_id: transactionId, type, state: stateOf(one), provider_key: key, reference },
      ...{ charge_transaction_id: chargeTransactionId, provider_customer: providerCustomer, moved_at: one.at },
      ...{ amount: formatMinor(one.amountMinor, one.currencyCode), currency_code: one.currencyCode },
    }),
  )
  await query(STORE, [...accountKey(account), JSON.stringify(rows)])
}

const stateOf = ({ isPending, hasFailed }: Pick<Movement, 'isPending' | 'hasFailed'>) =>
  isPending ? 'pending' : hasFailed ? 'failed' : 'moved'

// In a fixed order, so that two transactions that store the same movements cannot deadlock.
const STORE: Statement = {
  name: 'store lost movements',
  text: `
    insert into lost_movements (organization_id, psp, psp_merchant_id, transaction_id, type, state, provider_key, reference,
      charge_transaction_id, provider_customer, amount, currency_code, moved_at, found_at)
    select distinct on (m.type, m.transaction_id) $1, $2, $3, m.transaction_id, m.type, m.state, m.provider_key, m.reference,
      m.charge_transaction_id, m.provider_customer, m.amount, m.currency_code, m.moved_at, db_clock()
    from json_to_recordset($4) m (transaction_id text, type text, state text, provider_key text, reference text,
      charge_transaction_id text, provider_customer text, amount numeric, currency_code text, moved_at timestamptz)
    order by m.type, m.transaction_id
    on conflict (organization_id, psp, psp_merchant_id, type, transaction_id) do update set state = excluded.state`,
}

/** Whether an operator has accepted that another installation made the movement, or the charge that it pays back. */
export async function isAccepted(
  query: Query,
  account: AccountName,
  { type, transactionId, chargeTransactionId }: Movement,
): Promise<boolean> {
  const found = await query(IS_ACCEPTED, [...accountKey(account), type, transactionId, chargeTransactionId ?? null])
  return found.length > 0
}

const IS_ACCEPTED: Statement = {
  name: 'is lost movement accepted',
  text: `select 1 from lost_movements where organization_id = $1 and psp = $2 and psp_merchant_id = $3
           and (type = $4 and transaction_id = $5 or type = 'charge' and transaction_id = $6) and accepted_at is not null`,
}

/**
 * SQL: whether a stored movement `l` has no order or refund here. Once it was adopted, it has. Of another organization, too: several may
 * use one account of a provider, and their keys differ.
 */
export const IS_LOST = `case l.type
  when 'charge' then not exists (select from orders o where o.provider_key = l.provider_key)
  else not exists (select from refunds r join orders o using (organization_id, order_id)
    where o.charge_transaction_id = l.charge_transaction_id collate "default"
      and (r.provider_transaction_id = l.transaction_id or r.provider_key = l.provider_key)) end`

/** SQL: whether an operator has not decided about a stored movement `l` that is lost. A refund goes by its charge, too. */
export const IS_OPEN = `l.accepted_at is null and ${IS_LOST} and not exists (
  select from lost_movements c where c.organization_id = l.organization_id and c.psp = l.psp
    and c.psp_merchant_id = l.psp_merchant_id and c.type = 'charge' and c.transaction_id = l.charge_transaction_id
    and c.accepted_at is not null)`

/** How many of these charges have no order here, and were not accepted. */
export async function countLost(query: Query, account: AccountName, charges: readonly Movement[]): Promise<number> {
  if (charges.length === 0) return 0
  const ids = charges.map(({ transactionId }) => transactionId)
  const [row] = await query(COUNT_LOST, [...accountKey(account), ids])
  return Number(row!.n)
}

const COUNT_LOST: Statement = {
  name: 'count lost charges',
  text: `select count(*) as n from lost_movements l where l.organization_id = $1 and l.psp = $2 and l.psp_merchant_id = $3
           and l.type = 'charge' and l.transaction_id = any($4) and ${IS_OPEN}`,
}
