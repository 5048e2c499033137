// Keeps stored payments with their customer when that customer is deleted or merged at Stripe.
import type { App } from '../../../app.ts'
import { type Line, recordId, type Target } from './convert.ts'

/**
 * Gives payments the `external_id` that their order has already, because a deleted customer no longer has metadata, and a merged one
 * that of another customer. Only Stripe's own id may still be replaced by the client's. New payments of a deleted customer belong to
 * the customer here that is linked to it.
 */
export async function keepExternalIds(db: App['db'], target: Target, lines: Line[]): Promise<void> {
  const payments = lines.filter(({ record }) => record === 'payment').map(({ data }) => data)
  if (payments.length === 0) return
  const stored = await storedIds(db, target, payments)
  const linked = await linkedIds(db, target, payments.filter(hasOwnId))
  for (const data of payments) {
    const before = stored.get(String(data.order_id))
    const isOwn = before === undefined || before === data.psp_customer_id
    if (!isOwn) data.external_id = before
    else if (hasOwnId(data)) data.external_id = linked.get(String(data.psp_customer_id)) ?? data.external_id
  }
}

/** Whether only Stripe's id of the customer is known. */
const hasOwnId = ({ external_id, psp_customer_id }: Line['data']) => external_id === psp_customer_id

/** The stored `external_id` by order: all rows of a charge have one. */
async function storedIds(db: App['db'], { organizationId }: Target, payments: Line['data'][]) {
  const rows = await db.query(
    `select distinct order_id, external_id from report_transactions
     where organization_id = $1 and order_id = any($2::uuid[])`,
    [organizationId, payments.map(({ order_id }) => String(order_id))],
  )
  return new Map(rows.map(({ order_id, external_id }) => [order_id!, external_id!]))
}

/** The only other customer that is linked to the profile of each customer at Stripe, by Stripe's id. */
async function linkedIds(db: App['db'], { projectId }: Target, payments: Line['data'][]) {
  const customers = [...new Set(payments.map(({ psp_customer_id }) => String(psp_customer_id)))]
  if (customers.length === 0) return new Map<string, string>()
  const rows = await db.query(
    `select a.id, min(c.external_id) as external_id
     from unnest($2::text[], $3::text[]) as a (id, profile_id)
     join customers c on c.project_id = $1 and c.profile_id = a.profile_id collate "C" and c.external_id <> a.id collate "C"
     group by a.id having count(*) = 1`,
    [projectId, customers, customers.map(recordId)],
  )
  return new Map(rows.map(({ id, external_id }) => [id!, external_id!]))
}
