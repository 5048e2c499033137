// The rows of the finance report as SQL: payments of open months, the kept rows of closed ones, and corrections of those.
import { ACCOUNT, IS_TEST } from '../../../core/records/payment-account.ts'
import { INCOMING, moveOf } from '../../../core/records/payment-move.ts'
import { paidAt } from '../../../core/records/payment-time.ts'
import { FINANCE_CURRENCY, reportedValue } from './currency.ts'
import { dayBegins, FINANCE_ZONE } from './zone.ts'

/** The columns of `finance_rows` except the organization, the month and the part. */
export const KEPT_COLUMNS = `trx_id, order_id, project_id, is_correction, is_test, kind, amount, amount_usd, amount_reported, currency_code,
  fee, fee_currency, psp, psp_merchant_id, psp_transaction_id, paid_at, trx_created_at, booked_at`

// Months that were closed in US dollars have no other value.
const KEPT_VALUE = `case when ${FINANCE_CURRENCY} = 'USD' then amount_usd else amount_reported end`
const KEPT = KEPT_COLUMNS.replace('amount_reported', `${KEPT_VALUE} as amount_reported`)

const incoming = INCOMING.map((name) => `'${name}'`).join(', ')
const signed = (amount: string) =>
  `case when move in (${incoming}) then ${amount} when move is not null then -${amount} end`

// Several entries of a movement have one currency; if ever they have not, their sum is not known.
const FEE = `
  left join lateral (
    select case when min(p.currency_code) = max(p.currency_code) then -sum(p.fee) end as fee,
      case when min(p.currency_code) = max(p.currency_code) then min(p.currency_code) end as fee_currency
    from provider_fees p
    where p.organization_id = r.organization_id and p.psp = r.psp collate "C" and p.psp_merchant_id = r.psp_merchant_id
      and p.transaction_id = r.psp_transaction_id collate "C" and p.move = r.move) f on true`

const USD = `coalesce(r.amount_usd, case when r.currency_code = 'USD' or r.amount = 0 then r.amount end)`

/** SQL: rows of the payment report as rows of finance; the conditions are about the row `r`, its payment `r.paid_at` and its customer `c`. */
const payments = (condition: string, limit?: string) => `
  select r.trx_id, r.order_id, r.project_id, false as is_correction, r.is_test, r.move as kind,
    coalesce(${signed('r.amount')}, 0) as amount,
    ${signed(USD)} as amount_usd,
    ${signed(reportedValue({ amount: 'r.amount', currency: 'r.currency_code', usd: USD, at: 'r.paid_at' }))} as amount_reported,
    r.currency_code, f.fee, f.fee_currency, r.psp, r.psp_merchant_id, r.psp_transaction_id, r.paid_at, r.trx_created_at,
    r.paid_at as booked_at
  from (
    select r.*, c.project_id, ${IS_TEST} as is_test, ${moveOf('r')} as move
    from (select r.*, ${paidAt('r')} as paid_at from report_transactions r where r.organization_id = $1) r
    join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id
    ${ACCOUNT}
    where ${condition} ${limit ?? ''}) r ${FEE}`

const PERIOD = (instant: string) => `${instant} >= ${dayBegins('$2')} and ${instant} < ${dayBegins('$3')}`
const TEST = (column: string) => `($4::boolean is null or ${column} = $4)`

// Where nothing is closed, no instant is within these bounds. Nothing has to be corrected except in the first open month.
const CLOSED = `
  select first_at, open_at, case when ${PERIOD('open_at')} then since end as since from (
    select coalesce(day_begins(min(month), ${FINANCE_ZONE}), 'infinity') as first_at,
      coalesce(day_begins((max(month) + interval '1 month')::date, ${FINANCE_ZONE}), '-infinity') as open_at,
      -- A fee may have been stored by a transaction that was still open when the month was closed.
      max(closed_at) - interval '1 day' as since
    from finance_months where organization_id = $1) m`

// A refund that fails later depends on an earlier row of its order, so all rows of an order are compared.
const CHANGED = `
  select array(
    select r.order_id from report_transactions r, closed
    where r.organization_id = $1 and r.imported and r.updated_at >= closed.since
    union
    select r.order_id from report_transactions r, closed
    where r.organization_id = $1 and not r.imported and r.trx_created_at >= closed.since
    union
    select b.order_id from closed join provider_fees f on f.organization_id = $1 and f.stored_at >= closed.since
    join finance_rows b on b.organization_id = $1 and b.psp_transaction_id = f.transaction_id
    union
    -- The time at which a rate became known is not stored.
    select b.order_id from closed join finance_rows b on b.organization_id = $1 and b.amount_reported is null and b.amount <> 0
    where closed.since is not null and ${FINANCE_CURRENCY} <> 'USD') as orders`
const IS_CHANGED = `order_id = any((select orders from changed)::uuid[])`
const IS_CLOSED = `r.paid_at >= (select first_at from closed) and r.paid_at < (select open_at from closed)`

// What a payment of a closed month is now, less what closed months have of it. Its parts differ in one of these columns.
const KEY = 'trx_id, order_id, project_id, is_test, kind, currency_code, psp, psp_merchant_id, psp_transaction_id'
// By rates that replaced others, what a closed month has is not worth more or less.
const LATER_VALUE = `case when ${FINANCE_CURRENCY} = 'USD' or sum(amount) <> 0 or count(amount_reported) filter (where was_kept) = 0
  then sum(amount_reported) else 0 end`
const CORRECTIONS = `
  select trx_id, order_id, project_id, true as is_correction, is_test, kind, sum(amount) as amount,
    sum(amount_usd) as amount_usd, ${LATER_VALUE} as amount_reported, currency_code, sum(fee) as fee, max(fee_currency) as fee_currency, psp, psp_merchant_id,
    psp_transaction_id, min(paid_at) as paid_at, min(trx_created_at) as trx_created_at,
    (select open_at from closed) as booked_at, row_number() over (partition by trx_id order by sum(amount), kind)::int as part
  from (
    select ${KEPT_COLUMNS}, false as was_kept from (${payments(`r.${IS_CHANGED} and ${IS_CLOSED}`)}) present
    union all
    select trx_id, order_id, project_id, is_correction, is_test, kind, -amount, -amount_usd, -(${KEPT_VALUE}), currency_code, -fee, fee_currency,
      psp, psp_merchant_id, psp_transaction_id, paid_at, trx_created_at, booked_at, true
    from finance_rows where organization_id = $1 and ${IS_CHANGED}) compared
  group by ${KEY} having sum(amount) <> 0 or sum(amount_usd) <> 0 or ${LATER_VALUE} <> 0 or sum(fee) <> 0`

/** SQL, for \`with\`: what \`BOOKED\` refers to. $1 is the organization, $2 the first day, $3 the day after the last. */
export const WITH_CLOSED = `closed as materialized (${CLOSED}), changed as materialized (${CHANGED})`

/**
 * SQL: the rows that are booked on these days, with all columns of \`finance_rows\` except the organization and the month. $4 chooses real
 * money or test money; null is both. With \`page\`, at most as many of each source, in the order of \`ORDER\`; \`after\` is a condition, and
 * \`of\` one about a table with the merchant account.
 */
export const booked = (page?: { after: string; limit: string; of(table: string): string }) => {
  const place = page ? `and ${page.after}` : ''
  const account = (table: string) => (page ? `and ${page.of(table)}` : '')
  const end = page ? `order by ${ORDER} limit ${page.limit}` : ''
  const ofPayment = place
    .replace('booked_at', 'r.paid_at')
    .replace('trx_created_at', 'r.trx_created_at')
    .replace('part', '0')
  return `
  (select ${KEPT_COLUMNS}, 0 as part from (${payments(
    `${PERIOD('r.paid_at')} and not (${IS_CLOSED}) and ${TEST(IS_TEST)} ${page ? `and ${moveOf('r')} is not null` : ''} ${account('r')} ${ofPayment}`,
    page && `order by r.paid_at, r.trx_created_at limit ${page.limit}`,
  )}) open_months)
  union all
  (select ${KEPT_COLUMNS}, part from (${CORRECTIONS}) corrections
   where (select since from closed) is not null and ${TEST('is_test')} ${account('corrections')} ${place} ${end})
  union all
  (select ${KEPT}, part from finance_rows
   where organization_id = $1 and ${PERIOD('booked_at')} and ${TEST('is_test')} ${page ? 'and kind is not null' : ''} ${account('finance_rows')} ${place} ${end})`
}
export const ORDER = 'booked_at, trx_created_at, part'
