// The timeline of an order: its claim, provider calls, payments, refunds, events and deliveries, sorted by time.
import type { Db } from '../../lib/pg/db.ts'
import { type Schema, Type } from '../../lib/shape/schema.ts'
import { instantFromPg } from '../../lib/time.ts'

export const timelineEntry = Type.Named('TimelineEntry', {
  at: Type.String({ format: 'date-time', description: 'When it happened.' }),
  what: Type.String({
    description:
      '`claimed`, `provider_called`, `settled`, `payment`, `refund_begun`, `refund_settled`, `event`, `delivery`.',
  }),
  detail: Type.Record(Type.Unknown(), {
    description: 'Fields of the entry, depending on `what`.',
  }) as Schema as Schema<TimelineDetail>,
})

interface TimelineEntry {
  at: string
  what: string
  detail: TimelineDetail
}

/** The fields of all kinds of entries. */
interface TimelineDetail {
  amount?: string
  currency_code?: string
  idempotency_key?: string
  psp?: string
  psp_transaction_id?: string | null
  call?: string
  outcome?: string | null
  duration_ms?: number
  type?: string
  status?: string
  status_checks?: number
  reason?: string | null
  because?: string | null
  refund_id?: string | null
  soft_refund?: boolean
  event_id?: string
  endpoint_id?: string
  sequence?: number
  attempts?: number
}

const MAX_ENTRIES = 1000

/** The timeline, oldest first. */
export async function readTimeline(db: Db, organizationId: string, orderId: string): Promise<TimelineEntry[]> {
  const rows = await db.query(TIMELINE, [organizationId, orderId, MAX_ENTRIES])
  return rows.map(({ at, what, detail }) => ({ at: instantFromPg(at!), what: what!, detail: JSON.parse(detail!) }))
}

// Entries of the same instant are in the order of `place`. The stamp of a call is late by the time in which its note reached
// PostgreSQL; no call is made after what it is about is settled.
const TIMELINE = `
  with one as (select * from orders where organization_id = $1 and order_id = $2),
  written as (
    select v.* from one join events v on v.project_id = one.project_id and v.object_id in (
      select one.order_id::text
      union all select refund_id::text from refunds r where r.organization_id = $1 and r.order_id = $2
      union all select consumable_id::text from consumables c where c.organization_id = $1 and c.order_id = $2)
  )
  select at, what, detail::text from (
    select created_at as at, 1 as place, 'claimed' as what, json_build_object(
      'amount', amount::text, 'currency_code', currency_code, 'idempotency_key', idempotency_key, 'psp', psp) as detail
    from one
    union all
    select least(l.at, case when l.refund_id is null then one.settled_at else r.settled_at end), 2, 'provider_called',
      json_build_object('call', call, 'outcome', outcome, 'duration_ms', duration_ms, 'refund_id', l.refund_id)
    from order_log l cross join one left join refunds r on r.organization_id = $1 and r.refund_id = l.refund_id
    where l.organization_id = $1 and l.order_id = $2
    union all
    select trx_created_at, 3, 'payment', json_build_object('type', psp_transaction_type, 'status', status,
      'amount', amount::text, 'currency_code', currency_code, 'psp_transaction_id', psp_transaction_id,
      'reason', psp_reason_message)
    from report_transactions where organization_id = $1 and order_id = $2
    union all
    select settled_at, 4, 'settled', json_build_object('status', status, 'status_checks', looks, 'because', resolved_because)
    from one where settled_at is not null
    union all
    select created_at, 1, 'refund_begun', json_build_object('refund_id', refund_id, 'amount', amount::text,
      'soft_refund', soft_refund, 'reason', reason)
    from refunds where organization_id = $1 and order_id = $2
    union all
    select settled_at, 4, 'refund_settled', json_build_object('refund_id', refund_id, 'status', status, 'status_checks', looks,
      'because', resolved_because)
    from refunds where organization_id = $1 and order_id = $2 and settled_at is not null
    union all
    select created_at, 5, 'event', json_build_object('event_id', id, 'type', type, 'sequence', sequence) from written
    union all
    select coalesce(d.finished_at, d.next_attempt_at, d.created_at), 6, 'delivery', json_build_object(
      'event_id', d.event_id, 'endpoint_id', d.endpoint_id, 'status', d.status, 'attempts', d.attempts)
    from written join webhook_deliveries d on d.project_id = written.project_id and d.event_id = written.id
    join webhook_endpoints e on e.project_id = d.project_id and e.id = d.endpoint_id and e.removed_at is null
  ) entries order by at, place limit $3`
