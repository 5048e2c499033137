// Adopts a lost charge at an operator's request, when no caller repeats its key: makes the order, and settles it by the provider.
import { Refusal } from '../../../lib/errors.ts'
import { makeUuid } from '../../../lib/ids.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import type { AccountName } from '../../providers/account.ts'
import { IS_LOST } from '../../providers/lost-movements.ts'
import type { BillingContext } from '../context.ts'
import { CHARGE } from '../kinds.ts'
import { checkStatus } from '../movement/check-status.ts'
import { leaseMs } from '../movement/lease.ts'

interface Lost extends AccountName {
  transactionId: string
}

/** The customer is found by the provider's customer, unless the operator names it. Throws a `Refusal`. */
export async function adoptLost(context: BillingContext, lost: Lost, named: string | undefined) {
  const { db, providers, providerTimeoutMs } = context
  const { organizationId, psp, merchantId, transactionId } = lost
  const provider = await providers.of(organizationId, psp, merchantId)
  if (!provider) throw new Refusal(`The merchant account ${psp} ${merchantId} is not connected.`)
  const order = await db.tx(async (query) => {
    const customer = await findCustomer(query, lost, named)
    const key = [organizationId, psp, merchantId, transactionId]
    const [made] = await query<{ order_id: string }>(MAKE, [
      ...key,
      makeUuid(),
      customer,
      leaseMs(providerTimeoutMs, 2) / 1000,
    ])
    if (!made) throw new Refusal(`The customer "${customer}" has another charge in progress: try again.`)
    await query(NOTE_ORDER, [...key, made.order_id])
    return (await CHARGE.rows.find(query, made.order_id))!
  })
  return checkStatus(context, CHARGE, order)
}

async function findCustomer(query: Query, lost: Lost, named: string | undefined): Promise<string> {
  const { organizationId, psp, merchantId, transactionId } = lost
  const [movement] = await query(FIND, [organizationId, psp, merchantId, transactionId])
  if (!movement) throw new Refusal(`There is no lost charge ${transactionId} of ${psp} ${merchantId}.`)
  const rows = await query(CUSTOMERS, [organizationId, named ?? null, movement.provider_customer ?? null])
  if (rows.length === 1) return rows[0]!.external_id!
  if (named !== undefined) throw new Refusal(`There is no customer with the external_id "${named}".`)
  throw new Refusal(
    `The customer of ${transactionId} is not known (${movement.provider_customer ?? 'the provider names none'} has ${rows.length === 0 ? 'no payment' : 'payments of several customers'} here): give its external_id.`,
  )
}

const FIND: Statement = {
  name: 'find lost charge',
  text: `select l.provider_customer from lost_movements l where l.organization_id = $1 and l.psp = $2
           and l.psp_merchant_id = $3 and l.transaction_id = $4 and l.type = 'charge' and ${IS_LOST} for update`,
}

// Two are enough to know that it is not one.
const CUSTOMERS: Statement = {
  name: 'find customer of lost charge',
  text: `
    select c.external_id from customers c where c.organization_id = $1 and case when $2::text is not null
      then c.external_id = $2 else c.external_id in (select r.external_id from report_transactions r
        where r.organization_id = $1 and r.psp_customer_id = $3) end limit 2`,
}

// The caller's key cannot be known from its hash, so the order has a key that no caller has sent; a claim finds it by the movement.
const MAKE: Statement = {
  name: 'make order of lost charge',
  text: `
    insert into orders as o (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code,
      psp, psp_merchant_id, region, payment_method_token, source_trx_id, provider_key, provider_handle, created_at, lease_until,
      next_look_at)
    select $1, $5, c.external_id, c.project_id, left('adopted ' || l.transaction_id, 128), l.amount, l.currency_code,
      l.psp, l.psp_merchant_id, m.region, '', $5, l.provider_key, l.transaction_id, t.now, t.now + make_interval(secs => $7),
      t.now + make_interval(secs => $7)
    from (select db_clock() as now) t, lost_movements l
    join customers c on c.organization_id = l.organization_id and c.external_id = $6
    left join merchant_accounts m on m.organization_id = l.organization_id and m.psp = l.psp
      and m.psp_merchant_id = l.psp_merchant_id
    where l.organization_id = $1 and l.psp = $2 and l.psp_merchant_id = $3 and l.transaction_id = $4 and l.type = 'charge'
    on conflict do nothing returning order_id`,
}

const NOTE_ORDER: Statement = {
  name: 'note order of lost charge',
  text: `update lost_movements set order_id = $5 where organization_id = $1 and psp = $2 and psp_merchant_id = $3
           and transaction_id = $4 and type = 'charge'`,
}
