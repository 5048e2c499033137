// The gross revenue of the dashboard and that of the finance report, payment by payment, as SQL.
import { ACCOUNT, IS_TEST } from '../../core/records/payment-account.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { dayIn } from '../../core/tenants/reporting.ts'
import { HAS_TRANSACTION } from '../../data/figures/sales.ts'
import type { Statement } from '../../lib/pg/types.ts'
import { booked, WITH_CLOSED } from '../../payments/billing/finance/booked.ts'
import { FINANCE_CURRENCY, reportedValue } from '../../payments/billing/finance/currency.ts'
import { dayBegins, FINANCE_ZONE } from '../../payments/billing/finance/zone.ts'

/** SQL: the stored value of an amount in US dollars, or the amount itself if it is in US dollars or 0. */
const inDollars = (stored: string, amount: string, currency: string) =>
  `coalesce(${stored}, case when ${currency} = 'USD' or ${amount} = 0 then ${amount} end)`
const PRICE_USD = inDollars('t.price_usd', 't.price', 't.currency')
const AMOUNT_USD = inDollars('r.amount_usd', 'r.amount', 'r.currency_code')
const PAYMENT = { currency: 'r.currency_code', at: 'r.paid_at' }

/** Each difference, with what it means. They are named in this order. */
export const DIFFERENCES = {
  transaction_without_payment: 'Transactions of the data API for which there is no payment.',
  payment_without_transaction:
    'Payments of a customer with a profile for which there is no transaction: figures count the transactions of such customers.',
  other_amount: 'The transaction and the payment have different amounts.',
  other_month: 'The transaction and the payment are in different months: one was shortly before midnight.',
  test_payment: 'The payment is test money, and its transaction is not marked so.',
  test_transaction: 'The transaction is marked as test data or its profile as a preview, and the payment is real.',
  without_rate: 'Only one of the transaction and the payment has a value in US dollars or in the reporting currency.',
  other_rate: 'The transaction and the payment have different values in US dollars or in the reporting currency.',
  rounding: 'Figures round each payment to the decimals of its currency.',
  after_closing: 'The payment was added or changed after the month was closed: it is a correction of a later month.',
  not_computed: 'Figures that are computed within the next seconds.',
} as const
export type Difference = keyof typeof DIFFERENCES

// A payment and its transaction have nearly the same time.
const AROUND = `interval '3 days'`
const from = dayBegins('$2')
const to = dayBegins('$3')
const inMonth = (instant: string) => `(${instant} >= ${from} and ${instant} < ${to})`
const around = (instant: string) => `${instant} >= (${from}) - ${AROUND} and ${instant} < (${to}) + ${AROUND}`
const decimals = (currency: string) => `coalesce(($5::jsonb ->> ${currency})::int, 2)`
const PRICE = `(t.price / power(10::numeric, ${decimals('t.currency')}))`

const SIDES = `
  owned as (select id, reporting_currency from projects where organization_id = $1 and ($6::text is null or id = $6)),
  t as materialized (
    select t.project_id, t.profile_id, t.id, t.created_at as at, t.currency, ${PRICE} as amount, ${PRICE_USD} / 100.0 as usd,
      ${reportedValue({ amount: PRICE, currency: 't.currency', usd: `${PRICE_USD} / 100.0`, at: 't.created_at' })} as value,
      t.sandbox or p.preview as test
    from owned o
    join transactions t on t.project_id = o.id
    join profiles p on p.project_id = t.project_id and p.id = t.profile_id
    where ${around('t.created_at')} and t.price > 0),
  r as materialized (
    select c.project_id, c.profile_id, r.external_id, r.trx_id, r.psp_transaction_id, r.paid_at as at, r.currency_code as currency,
      r.amount, ${AMOUNT_USD} as usd, ${IS_TEST} as test, coalesce(p.preview, false) as preview,
      ${reportedValue({ ...PAYMENT, amount: 'r.amount', usd: AMOUNT_USD })} as value,
      ${reportedValue({ ...PAYMENT, amount: `round(r.amount, ${decimals('r.currency_code')})`, usd: `round(${AMOUNT_USD}, 2)` })} as rounded,
      not (c.profile_id is not null and (r.imported or exists (${HAS_TRANSACTION}))) as alone
    from (select r.*, ${paidAt('r')} as paid_at from report_transactions r where r.organization_id = $1) r
    join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id
    join owned o on o.id = c.project_id
    left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    ${ACCOUNT}
    where ${around('r.paid_at')} and r.psp_transaction_type = 'sale' and r.status = 'succeeded'),
  f as materialized (
    select trx_id, project_id, currency_code as currency, amount, amount_usd as usd, amount_reported as value, paid_at
    from (${booked()}) b where kind = 'sale' and not is_correction and project_id in (select id from owned))`

/** Pairs those of one partition that are not paired yet, the first with the first. */
const pass = (n: number, partition: string, more = 'true') => `
  t${n} as materialized (select *, row_number() over (partition by ${partition} order by at, id) as n from (
    select *, ${dayIn('at', FINANCE_ZONE)} as day from t
    where not exists (select from paired${n - 1} p where p.project_id = t.project_id and p.id = t.id)) t),
  r${n} as materialized (select *, row_number() over (partition by ${partition} order by at, trx_id) as n from (
    select *, ${dayIn('at', FINANCE_ZONE)} as day, psp_transaction_id as id from r
    where not alone and not exists (select from paired${n - 1} p where p.trx_id = r.trx_id)) r),
  paired${n} as materialized (
    select * from paired${n - 1}
    union all
    select t.project_id, t.id, r.trx_id from t${n} t join r${n} r using (${partition}, n) where ${more})`

const OF_PERSON = 'project_id, profile_id, currency'
const PAIRS = `
  paired0 as materialized (select null::text as project_id, null::text as id, null::uuid as trx_id where false),
  ${[
    // An import from a provider names the transaction as the provider names the payment.
    pass(1, 'project_id, currency, id'),
    pass(2, `${OF_PERSON}, amount, day`),
    pass(3, `${OF_PERSON}, amount`, `abs(extract(epoch from t.at - r.at)) <= extract(epoch from ${AROUND})`),
    pass(4, `${OF_PERSON}, day`),
  ].join(',')}`

const COMPARED = `
  compared as (
    select t.project_id, t.profile_id, t.id as transaction_id, null::uuid as trx_id, null as external_id, t.at as transaction_at,
      null::timestamptz as paid_at, t.currency, t.amount as dashboard, 0::numeric as finance, t.usd as dashboard_usd,
      0::numeric as finance_usd, t.value as dashboard_value, 0::numeric as finance_value, 'transaction_without_payment' as name
    from t where ${inMonth('t.at')} and not t.test
      and not exists (select from paired4 p where p.project_id = t.project_id and p.id = t.id)
    union all
    select r.project_id, r.profile_id, null, r.trx_id, r.external_id, null, r.at, r.currency, 0, r.amount, 0, r.usd,
      0, r.value, 'payment_without_transaction'
    from r where ${inMonth('r.at')} and not r.test and not r.alone
      and not exists (select from paired4 p where p.trx_id = r.trx_id)
    union all
    select r.project_id, r.profile_id, null, r.trx_id, r.external_id, null, r.at, r.currency,
      case when r.preview then 0 else round(r.amount, ${decimals('r.currency')}) end, r.amount,
      case when r.preview then 0 else round(r.usd, 2) end, r.usd,
      case when r.preview then 0 else r.rounded end, r.value, case when r.preview then 'test_transaction' else 'rounding' end
    from r where ${inMonth('r.at')} and not r.test and r.alone
    union all
    select t.project_id, t.profile_id, t.id, r.trx_id, r.external_id, t.at, r.at, t.currency,
      case when shown then t.amount else 0 end, case when booked then r.amount else 0 end,
      case when shown then t.usd else 0 end, case when booked then r.usd else 0 end,
      case when shown then t.value else 0 end, case when booked then r.value else 0 end,
      case when shown and not booked then case when r.test then 'test_payment' else 'other_month' end
        when booked and not shown then case when t.test then 'test_transaction' else 'other_month' end
        when t.amount <> r.amount then 'other_amount'
        when (t.usd is null) <> (r.usd is null) or (t.value is null) <> (r.value is null) then 'without_rate' else 'other_rate' end
    from paired4 p
    join t on t.project_id = p.project_id and t.id = p.id
    join r on r.trx_id = p.trx_id
    cross join lateral (select ${inMonth('t.at')} and not t.test as shown, ${inMonth('r.at')} and not r.test as booked) side
    where shown or booked
    union all
    -- What the payments are now, and what the report has of them.
    select coalesce(r.project_id, f.project_id), r.profile_id, null, coalesce(r.trx_id, f.trx_id), r.external_id, null,
      coalesce(r.at, f.paid_at), coalesce(r.currency, f.currency), coalesce(r.amount, 0), coalesce(f.amount, 0),
      case when r.trx_id is null then 0 else r.usd end, case when f.trx_id is null then 0 else f.usd end,
      case when r.trx_id is null then 0 else r.value end, case when f.trx_id is null then 0 else f.value end, 'after_closing'
    from (select * from r where ${inMonth('r.at')} and not r.test) r
    full join f on f.trx_id = r.trx_id and f.currency = r.currency),
  stored as (
    select s.project_id, s.currency, sum(s.gross) / power(10::numeric, ${decimals('s.currency')}) as gross,
      -- Figures are in the currency of their project: in another one they have no value to compare.
      sum(s.gross_usd) filter (where o.reporting_currency = 'USD') / 100.0 as gross_usd,
      sum(s.gross_usd) filter (where o.reporting_currency = ${FINANCE_CURRENCY})
        / power(10::numeric, ${decimals(FINANCE_CURRENCY)}) as gross_value
    from owned o join figures_sales s on s.project_id = o.id
    where s.split = '' and s.key = '' and s.subkey = '' and not s.test and s.day >= $2::date and s.day < $3::date
    group by s.project_id, s.currency),
  facts as (
    select project_id, currency, sum(amount) as gross, sum(usd) as gross_usd, sum(value) as gross_value from (
      select project_id, currency, amount, usd, value from t where ${inMonth('t.at')} and not t.test
      union all
      select project_id, currency, round(amount, ${decimals('currency')}), round(usd, 2), rounded from r
      where ${inMonth('r.at')} and not r.test and not r.preview and r.alone) counted
    group by project_id, currency),
  items as materialized (
    select * from (
      select * from compared
      union all
      select coalesce(s.project_id, f.project_id), null, null, null, null, null, null, coalesce(s.currency, f.currency),
        coalesce(s.gross, 0), coalesce(f.gross, 0), coalesce(s.gross_usd, case when s.project_id is null or o.reporting_currency = 'USD' then 0 else f.gross_usd end, 0),
        coalesce(f.gross_usd, 0),
        coalesce(s.gross_value, case when s.project_id is null or o.reporting_currency = ${FINANCE_CURRENCY} then 0 else f.gross_value end, 0),
        coalesce(f.gross_value, 0), 'not_computed'
      from stored s full join facts f on f.project_id = s.project_id and f.currency = s.currency
      left join owned o on o.id = coalesce(s.project_id, f.project_id)) all_
    where dashboard <> finance or coalesce(dashboard_usd, 0) <> coalesce(finance_usd, 0)
      or coalesce(dashboard_value, 0) <> coalesce(finance_value, 0))`

/**
 * SQL, for `with`: `stored` is the revenue of the dashboard, `f` that of the finance report, `t` and `r` what they are of, and `items` what
 * makes the difference. $1 is the organization, $2 the first day, $3 the day after the last, $4 false, $5 the number of decimals of
 * each currency as JSON, $6 a project or null.
 */
export const WITH_ITEMS = `${WITH_CLOSED}, ${SIDES}, ${PAIRS}, ${COMPARED}`

/** Both sides and the differences of a month, with the parameters of `WITH_ITEMS`. */
export const TIE_OUT_SUMS: Statement = {
  name: 'tie out a month',
  text: `
  with ${WITH_ITEMS},
  shown as (
    select s.currency, sum(s.gross) as gross, sum(coalesce(s.gross_usd, f.gross_usd)) as usd,
      sum(coalesce(s.gross_value, f.gross_value)) as value
    from stored s left join facts f using (project_id, currency) group by s.currency),
  booked as (
    select currency, sum(amount) as gross, sum(usd) as usd, sum(value) as value,
      coalesce(sum(amount) filter (where usd is null), 0) as without_usd,
      coalesce(sum(amount) filter (where value is null), 0) as without_rate
    from f group by currency),
  valueless as (
    select currency, coalesce(sum(amount) filter (where usd is null), 0) as without_usd,
      coalesce(sum(amount) filter (where value is null), 0) as without_rate
    from (
      select currency, amount, usd, value from t where ${inMonth('at')} and not test
      union all
      select currency, amount, usd, value from r where ${inMonth('at')} and not test and not preview and alone) counted
    where usd is null or value is null group by currency)
  select 'currency' as what, null as name, currency, null::bigint as rows, coalesce(s.gross, 0) as dashboard,
    coalesce(b.gross, 0) as finance, coalesce(s.gross, 0) - coalesce(b.gross, 0) as difference,
    coalesce(v.without_usd, 0) as dashboard_without_usd, coalesce(b.without_usd, 0) as finance_without_usd,
    coalesce(v.without_rate, 0) as dashboard_without_rate, coalesce(b.without_rate, 0) as finance_without_rate
  from shown s full join booked b using (currency) full join valueless v using (currency)
  union all
  select what, null, null, null, shown, booked, shown - booked, 0, 0, 0, 0
  from (select coalesce(sum(usd), 0) as usd, coalesce(sum(value), 0) as value from shown) s,
    (select coalesce(sum(usd), 0) as usd, coalesce(sum(value), 0) as value from booked) b
  cross join lateral (values ('usd', s.usd, b.usd), ('reporting', s.value, b.value)) both_ (what, shown, booked)
  union all
  select 'difference', name, currency, count(*), sum(dashboard - finance),
    sum(coalesce(dashboard_usd, 0) - coalesce(finance_usd, 0)),
    sum(coalesce(dashboard_value, 0) - coalesce(finance_value, 0)), 0, 0, 0, 0
  from items group by name, currency
  order by what, currency, name`,
}
