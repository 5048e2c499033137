// What the finance report shows: totals by month, currency and merchant account, and the rows that add up to them.
import { paidAt } from '../../../core/records/payment-time.ts'
import { addDays } from '../../../lib/days.ts'
import type { Db } from '../../../lib/pg/db.ts'
import type { Row } from '../../../lib/pg/row-bytes.ts'
import type { Statement } from '../../../lib/pg/types.ts'
import type { Shape } from '../../../lib/shape/shape.ts'
import { instantFromPg } from '../../../lib/time.ts'
import { booked, ORDER, WITH_CLOSED } from './booked.ts'
import type { Period } from './period.ts'
import { financeRow, financeRowWithoutPeople, financeTotal } from './shapes.ts'
import { FINANCE_ZONE } from './zone.ts'

// An interval of more than a century is a mistake of its source, and may lead beyond all dates that PostgreSQL has.
const IS_LIKELY = `u.billing_interval_count <= case u.billing_interval
  when 'day' then 36525 when 'week' then 5218 when 'month' then 1200 else 100 end`

// A refund pays back what its order was for. A payment that does not name its subscription has the time of its transaction.
const DETAILS = `
  left join report_transactions r on r.organization_id = $1 and r.trx_id = m.trx_id
  left join customers c on c.organization_id = $1 and c.external_id = r.external_id
  left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
  left join lateral (
    select s.meta_subs_id, ${paidAt('s')} as paid_at, s.currency_code from report_transactions s
    where s.organization_id = $1 and s.order_id = m.order_id and s.psp_transaction_type = 'sale'
    order by s.trx_created_at limit 1) sale on true
  left join lateral (
    select t.subscription_id from transactions t
    where t.project_id = c.project_id and t.profile_id = c.profile_id and t.subscription_id is not null
      and t.created_at = coalesce(sale.paid_at, m.paid_at) limit 1) t on true
  left join lateral (
    select u.* from subscriptions u
    where u.project_id = c.project_id and u.id in (r.meta_subs_id, sale.meta_subs_id, t.subscription_id)
    order by u.id = t.subscription_id limit 1) u on true
  left join products d on d.project_id = u.project_id and d.id = u.product_id
  left join lateral (
    select case when is_now then u.period_starts_at else sale.paid_at end as from_at,
      case when is_now then u.period_ends_at
        when ${IS_LIKELY} then sale.paid_at + u.billing_interval_count * ('1 ' || u.billing_interval)::interval end as to_at
    from (select coalesce(sale.paid_at >= u.period_starts_at and sale.paid_at < u.period_ends_at, false) as is_now) now
    where u.id is not null and sale.paid_at is not null) service on true`

/** Real money, or that of sandbox accounts; they are never added. */
type Which = Period & { test: boolean }

const paramsOf = (organizationId: string, { from, to, test }: Which) => [organizationId, from, addDays(to, 1), test]

/** Rows of `financeTotal` by month, currency and merchant account, in this order. */
export const financeTotals = (db: Db, organizationId: string, which: Which): Promise<Row[]> =>
  db.read(TOTALS, paramsOf(organizationId, which))

const GROUP = 'month, currency_code, psp, psp_merchant_id'
const TOTALS: Statement = {
  name: 'sum report rows',
  text: `
  with ${WITH_CLOSED},
  rows as materialized (select b.*, to_char(booked_at at time zone ${FINANCE_ZONE}, 'YYYY-MM') as month from (${booked()}) b),
  summed as (
    select ${GROUP}, fee_currency, sum(fee) as fee from rows where fee is not null and kind is not null
    group by ${GROUP}, fee_currency),
  fees as (
    select ${GROUP}, json_agg(json_build_object('fee', fee, 'fee_currency', fee_currency) order by fee_currency)::text as fees
    from summed group by ${GROUP})
  select ${financeTotal.columns} from rows m
  left join fees f on f.month = m.month and f.currency_code = m.currency_code and f.psp = m.psp
    and f.psp_merchant_id is not distinct from m.psp_merchant_id
  left join merchant_accounts a on a.organization_id = $1 and a.psp = m.psp collate "C" and a.psp_merchant_id = m.psp_merchant_id
  group by m.month, m.currency_code, m.psp, m.psp_merchant_id, a.provider_account, f.fees
  order by m.month, m.currency_code, m.psp, m.psp_merchant_id`,
}

/** The place of a row in the list. */
export interface Place {
  booked_at: string
  trx_created_at: string
  part: string
}

interface Page {
  after: Place | undefined
  limit: number
  /** Only the rows of this merchant account; without an id, of those that name none. */
  account?: { psp: string; merchantId: string | null } | undefined
}

/** Rows of `row`, the oldest first, after the place of the last row of the page before; and each one's place. */
export async function financeRows(
  db: Db,
  organizationId: string,
  which: Which,
  { after, limit, account }: Page,
  row = financeRow,
): Promise<{ rows: Row[]; places: Place[] }> {
  const place = [after?.booked_at ?? '-infinity', after?.trx_created_at ?? '-infinity', after?.part ?? '0']
  const rows = await db.read(ROWS.get(row)!, [
    ...[...paramsOf(organizationId, which), ...place, limit],
    ...[account?.psp ?? null, account?.merchantId ?? null],
  ])
  const first = columnsOf(row)
  const places = rows.map((one) => {
    const [booked_at, trx_created_at, part] = one.texts().slice(first) as [string, string, string]
    return { booked_at: instantFromPg(booked_at), trx_created_at: instantFromPg(trx_created_at), part }
  })
  return { rows, places }
}

const columnsOf = ({ schema }: Shape) => Object.keys(schema.properties as object).length

const rowsAs = (row: Shape): Statement => ({
  name: row === financeRow ? 'list moved money' : 'list moved money without people',
  text: `
  with ${WITH_CLOSED}
  select ${row.columns}, m.booked_at, m.trx_created_at, m.part from (
    select * from (${booked({
      after: '(booked_at, trx_created_at, part) > ($5::timestamptz, $6::timestamptz, $7::int)',
      limit: '$8::int',
      of: (table) =>
        `($9::text is null or ${table}.psp = $9 and ${table}.psp_merchant_id is not distinct from $10::text)`,
    })}) b where kind is not null order by ${ORDER} limit $8::int) m ${DETAILS}
  order by m.booked_at, m.trx_created_at, m.part`,
})
const ROWS = new Map([financeRow, financeRowWithoutPeople].map((row) => [row, rowsAs(row)]))

/** The months of the period that are closed, each with the time. */
export async function closedMonths({ query }: Pick<Db, 'query'>, organizationId: string, { from, to }: Period) {
  const rows = await query(
    `select to_char(month, 'YYYY-MM') as month, closed_at from finance_months
     where organization_id = $1 and month >= date_trunc('month', $2::date::timestamp) and month <= $3::date order by month`,
    [organizationId, from, to],
  )
  return rows.map(({ month, closed_at }) => ({ month: month!, closed_at: instantFromPg(closed_at!) }))
}
