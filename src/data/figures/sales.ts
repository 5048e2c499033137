// Figures of revenue: sales, refunds and chargebacks, by the day on which the money moved.
import { ACCOUNT, IS_TEST } from '../../core/records/payment-account.ts'
import { isRefund, moveOf } from '../../core/records/payment-move.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { dayOf, type Family, hourOf, minor, monthStart, orNone, reportedPrice, reportedRow, within } from './family.ts'
import { alone, LAST_TOUCH, productOf, VISITED, visitColumns, with_ } from './splits.ts'

/** SQL: whether the transaction is a payment for the subscription: more than 0, and not for its trial. */
export const pays = (transaction: string, subscription: string) =>
  `${transaction}.price > 0 and ${transaction}.id is distinct from ${subscription}.trial_transaction_id`

const EARLIER_OF_SUBSCRIPTION = `
  select from transactions o
  where o.project_id = t.project_id and o.subscription_id = t.subscription_id and o.price > 0
    and o.id is distinct from u.trial_transaction_id and (o.created_at, o.id) < (t.created_at, t.id)`

const PRICE = reportedPrice('t')
const AMOUNT = reportedRow('r', paidAt('r'))

/** SQL: whether the row of the report is a successful payment of the customer, whom another row may name. */
const isSaleOf = (row: string, customer: string) => `
  ${row}.organization_id = ${customer}.organization_id and ${row}.external_id = ${customer}.external_id
  and ${row}.psp_transaction_type = 'sale' and ${row}.status = 'succeeded'`

const pspOfPayment = (isAtTime: string) => `(
  select r.psp from customers c join report_transactions r on ${isSaleOf('r', 'c')}
  where c.project_id = t.project_id and c.profile_id = t.profile_id and r.currency_code = t.currency and ${isAtTime}
  order by r.trx_created_at limit 1)`

/**
 * SQL: the payment provider of the transaction `t`, whose subscription is `u`; null if it is not known. Without a subscription it is that of
 * the person's payment at the same time. A charge whose time is in the future by the provider's clock has a transaction at the time of its row.
 */
export const PROVIDER = `coalesce(u.payment_provider, ${pspOfPayment(`${paidAt('r')} = t.created_at`)},
  ${pspOfPayment('not r.imported and r.trx_created_at = t.created_at')})`

// Sales to people: the transactions of the data API.
const TRANSACTIONS = `
  select t.profile_id, null as organization_id, null as external_id, t.id as moved_id, t.created_at as touched_at,
    ${dayOf('t.created_at')} as day, ${hourOf('t.created_at')} as hour, t.sandbox or p.preview as test,
    ${orNone('t.funnel_id')} as funnel, ${orNone('u.product_id')} as product, ${orNone('p.country')} as country,
    ${orNone(PROVIDER)} as provider,
    case when t.subscription_id is null then 'one_off'
      when t.id = u.trial_transaction_id then 'trial'
      when exists (${EARLIER_OF_SUBSCRIPTION}) then 'renewal' else 'new' end as kind,
    '' as reason,
    t.currency, 1 as sales, t.price::numeric as gross, 0 as refunds, 0::numeric as refunded, 0 as chargebacks,
    0::numeric as charged_back,
    (t.price > 0 and not exists (
      select from transactions o where o.project_id = t.project_id and o.profile_id = t.profile_id and o.price > 0
        and o.created_at >= ${monthStart('t.created_at')} and (o.created_at, o.id) < (t.created_at, t.id)))::int as payers,
    coalesce(${PRICE}, 0)::numeric as gross_usd, 0::numeric as refunded_usd, 0::numeric as charged_back_usd,
    (${PRICE} is null)::int as without_usd
  from transactions t
  join profiles p on p.project_id = t.project_id and p.id = t.profile_id
  left join subscriptions u on u.project_id = t.project_id and u.id = t.subscription_id
  where t.project_id = $1 and ${within('t.created_at')}`

// A charge of Tundish itself settles together with the transaction of the customer's profile; while it is in progress
// the customer has no other, so that no other transaction of theirs lies in between. It has the time of the payment.
export const HAS_TRANSACTION = `
  select from orders o join transactions t on t.project_id = c.project_id and t.profile_id = c.profile_id
    and t.created_at >= least(o.created_at, ${paidAt('r')}) and t.created_at <= r.trx_created_at and t.currency = r.currency_code
  where o.organization_id = r.organization_id and o.order_id = r.order_id`

const EARLIER_OF_CUSTOMER = `
  select from report_transactions o
  where ${isSaleOf('o', 'r')}
    and ${paidAt('o')} >= ${monthStart(paidAt('r'))} and (${paidAt('o')}, o.trx_created_at) < (${paidAt('r')}, r.trx_created_at)`

// The reason of a refund or dispute. A refund that failed later is subtracted under the reason of the refund.
const REASON = `case move when 'sale' then '' when 'refund_failed' then coalesce((
    select left(o.psp_reason_code, 256) from report_transactions o
    where o.organization_id = r.organization_id and o.order_id = r.order_id and ${isRefund('o')}
      and o.psp_transaction_id = r.psp_transaction_id
    order by o.trx_created_at limit 1), '') else ${orNone('r.psp_reason_code')} end`

// What goes back belongs to the session and the product of the payment.
const SALE = `
  left join lateral (
    select ${paidAt('o')} as at, o.meta_subs_id from report_transactions o
    where o.organization_id = r.organization_id and o.order_id = r.order_id and o.psp_transaction_type = 'sale'
      and o.status = 'succeeded'
    order by ${paidAt('o')}, o.trx_created_at limit 1) sale on r.psp_transaction_type <> 'sale'`
const TOUCHED_AT = `coalesce(sale.at, ${paidAt('r')})`

// Rows of the payment report, in which all amounts are positive. A refund that failed after it had succeeded has a second row with
// the same transaction id of the provider, which cancels the first.
const REPORT = `
  select c.profile_id, r.organization_id, r.external_id, r.trx_id::text as moved_id, ${TOUCHED_AT} as touched_at,
    ${dayOf(paidAt('r'))} as day, ${hourOf(paidAt('r'))} as hour, ${IS_TEST} or coalesce(p.preview, false) as test,
    ${orNone('p.funnel_id')} as funnel, ${orNone('bought.product_id')} as product, ${orNone('p.country')} as country,
    ${orNone('r.psp')} as provider,
    case move when 'sale' then 'one_off' else move end as kind, ${REASON} as reason, r.currency_code as currency,
    (move = 'sale')::int as sales, case when move = 'sale' then moved.amount else 0 end as gross,
    (move = 'refund')::int as refunds,
    case move when 'refund' then moved.amount when 'refund_failed' then -moved.amount else 0 end as refunded,
    (move = 'chargeback')::int as chargebacks,
    case move when 'chargeback' then moved.amount when 'chargeback_reversal' then -moved.amount else 0 end as charged_back,
    (move = 'sale' and not exists (${EARLIER_OF_CUSTOMER}))::int as payers,
    case when move = 'sale' then usd else 0 end as gross_usd,
    case move when 'refund' then usd when 'refund_failed' then -usd else 0 end as refunded_usd,
    case move when 'chargeback' then usd when 'chargeback_reversal' then -usd else 0 end as charged_back_usd,
    (${AMOUNT} is null)::int as without_usd
  from projects j
  join report_transactions r on r.organization_id = j.organization_id and ${within(paidAt('r'))}
  join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id and c.project_id = j.id
  left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
  ${SALE}
  ${productOf(['r.meta_subs_id', 'sale.meta_subs_id'], 'c.profile_id', TOUCHED_AT)}
  ${ACCOUNT}
  cross join lateral (select ${minor('r.amount', 'r.currency_code')} as amount,
    coalesce(${AMOUNT}, 0) as usd,
    case when r.psp_transaction_type = 'sale' and c.profile_id is not null
      and (r.imported or exists (${HAS_TRANSACTION})) then null else ${moveOf('r')} end as move) moved
  where j.id = $1 and move is not null`

/** SQL: the person's first session, whose dimensions all later money has. */
const FIRST_SESSION = `
  left join lateral (
    select s.* from sessions s where s.project_id = $1 and s.profile_id = moved.profile_id
    order by s.created_at, s.id limit 1) first on true`

const LAST_SESSION = `
  left join lateral (
    select s.* from sessions s
    where s.project_id = $1 and s.profile_id = moved.profile_id and s.created_at <= moved.touched_at
    order by s.created_at desc, s.id desc limit 1) last on true`

/**
 * SQL: the first payment of the person, with its product: the first transaction of more than 0 or, of a customer without any, the first
 * sale of the payment report.
 */
const FIRST_PAYMENT = `
  left join lateral (
    select t.created_at as at, t.id, u.product_id as product
    from transactions t left join subscriptions u on u.project_id = $1 and u.id = t.subscription_id
    where t.project_id = $1 and t.profile_id = moved.profile_id and t.price > 0
    order by t.created_at, t.id limit 1) bought on true
  left join lateral (
    select ${paidAt('o')} as at, o.trx_id::text as id from report_transactions o
    where bought.id is null and ${isSaleOf('o', 'moved')}
    order by ${paidAt('o')}, o.trx_created_at, o.trx_id limit 1) charged on true
  cross join lateral (
    select coalesce(bought.at, charged.at) as at, coalesce(bought.id, charged.id) as id, bought.product as product) paid`

/** SQL: every movement of money of these days, with the person's first session, last session before it, and first payment. */
export const MOVED = `(${TRANSACTIONS} union all ${REPORT}) moved ${FIRST_SESSION} ${FIRST_PAYMENT}`

const BEFORE = LAST_TOUCH.map((name) => `coalesce(last.visit_${name.slice('last_'.length)}, '') as ${name}`).join(', ')

export const sales: Family = {
  name: 'sales',
  table: 'figures_sales',
  dimensions: ['hour', 'funnel', 'product', 'country', 'provider', 'kind', 'reason', ...VISITED, ...LAST_TOUCH],
  splits: [
    ...alone(['hour', 'funnel', 'product', 'country', 'provider', 'kind', 'reason', ...VISITED, ...LAST_TOUCH]),
    ...with_('funnel', ['product', 'country', ...VISITED]),
    ...with_('source', ['medium', 'campaign', 'country', 'product']),
    ...with_('campaign', ['content', 'term', 'country', 'product']),
    ...with_('variant', ['source', 'campaign', 'country', 'product']),
    ['product', 'country'],
  ],
  limited: [...VISITED, ...LAST_TOUCH],
  money: true,
  measures: [
    'sales',
    'gross',
    'refunds',
    'refunded',
    'chargebacks',
    'charged_back',
    'payers',
    'customers',
    'gross_usd',
    'refunded_usd',
    'charged_back_usd',
    'without_usd',
    'gross_unvalued',
    'refunded_unvalued',
    'charged_back_unvalued',
  ],
  facts: `
    select moved.*, gross * without_usd as gross_unvalued, refunded * without_usd as refunded_unvalued,
      charged_back * without_usd as charged_back_unvalued, ${visitColumns('first')}, ${BEFORE}, (paid.id is not distinct from moved.moved_id)::int as customers
    from ${MOVED} ${LAST_SESSION}`,
}
