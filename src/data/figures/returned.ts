// Figures of refunds and disputes over the payments that they belong to, by the day of the payment.
import { ACCOUNT, IS_TEST } from '../../core/records/payment-account.ts'
import { moveOf } from '../../core/records/payment-move.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { dayOf, type Family, minor, monthOf, orNone, reportedRow, within } from './family.ts'
import { alone, byPerson, productOf, with_ } from './splits.ts'

const SALE_OF_ORDER = (row: string) => `
  select from report_transactions ${row} where ${row}.organization_id = r.organization_id and ${row}.order_id = r.order_id
    and ${row}.psp_transaction_type = 'sale' and ${row}.status = 'succeeded'`

// What goes back belongs to the first payment of its order. Without one, it is on its day, and belongs to none.
const PAYMENTS = `
  select r.organization_id, r.order_id, r.trx_id, r.external_id, r.psp, r.meta_subs_id, c.project_id, c.profile_id,
    ${paidAt('r')} as at, ${IS_TEST} as test,
    r.psp_transaction_type = 'sale' and not exists (${SALE_OF_ORDER('e')} and e.trx_created_at < r.trx_created_at) as has_returns
  from projects j
  join report_transactions r on r.organization_id = j.organization_id and ${within(paidAt('r'))}
  join lateral (
    -- With a limit the customer is always looked up by key: PostgreSQL expects a few payments, and would read all customers for each.
    select * from customers k where k.organization_id = r.organization_id and k.external_id = r.external_id limit 1
  ) c on c.project_id = j.id
  ${ACCOUNT}
  where j.id = $1 and (r.psp_transaction_type = 'sale' and r.status = 'succeeded'
    or r.psp_transaction_type <> 'sale' and not exists (${SALE_OF_ORDER('o')}))`

const MOVES = `
  select b.currency_code as currency, ${minor('b.amount', 'b.currency_code')} as amount,
    ${reportedRow('b', paidAt('b'))} as value, ${moveOf('b')} as move
  from report_transactions b
  where b.organization_id = p.organization_id and b.order_id = p.order_id
    and (b.trx_id = p.trx_id or p.has_returns and b.psp_transaction_type <> 'sale')`

const PRODUCT = productOf(['p.meta_subs_id'], 'p.profile_id', 'p.at')

const FIRST = `
  left join lateral (
    select min(${paidAt('f')}) as at from report_transactions f
    where f.organization_id = p.organization_id and f.external_id = p.external_id
      and f.psp_transaction_type = 'sale' and f.status = 'succeeded') first on true`

const signed = (amount: string, added: string, taken: string) =>
  `case moved.move when '${added}' then ${amount} when '${taken}' then -${amount} else 0 end`

const back = (amount: string) => ({
  refunded: signed(amount, 'refund', 'refund_failed'),
  charged_back: signed(amount, 'chargeback', 'chargeback_reversal'),
})
const OWN = back('moved.amount')
const REPORTED = back('coalesce(moved.value, 0)')
const isSale = `moved.move = 'sale'`

const FACTS = `
    select ${dayOf('p.at')} as day, p.test, moved.currency, ${orNone('who.funnel_id')} as funnel,
      ${orNone('bought.product_id')} as product, ${orNone('who.country')} as country, ${orNone('p.psp')} as provider,
      ${orNone(monthOf('first.at'))} as cohort, (${isSale})::int as payments,
      case when ${isSale} then moved.amount else 0 end as amount,
      case when ${isSale} then coalesce(moved.value, 0) else 0 end as amount_usd,
      (${isSale} and sum(${signed('1', 'refund', 'refund_failed')}) over payment > 0)::int as refunded_payments,
      (${isSale} and count(*) filter (where moved.move = 'chargeback') over payment > 0)::int as disputed_payments,
      ${OWN.refunded} as refunded, ${REPORTED.refunded} as refunded_usd, ${OWN.charged_back} as charged_back,
      ${REPORTED.charged_back} as charged_back_usd, (moved.value is null)::int as without_usd, p.profile_id
    from (${PAYMENTS}) p
    cross join lateral (${MOVES}) moved
    left join profiles who on who.project_id = p.project_id and who.id = p.profile_id
    ${PRODUCT} ${FIRST}
    where moved.move is not null
    window payment as (partition by p.organization_id, p.trx_id)`

export const returned: Family = {
  name: 'sales',
  table: 'figures_returned',
  dimensions: ['funnel', 'product', 'country', 'provider', 'cohort'],
  splits: [
    ...alone(['funnel', 'product', 'country', 'provider', 'cohort']),
    ...with_('funnel', ['product', 'country', 'provider', 'cohort']),
    ...with_('product', ['country', 'provider', 'cohort']),
    ...with_('country', ['provider', 'cohort']),
  ],
  money: true,
  measures: [
    'payments',
    'amount',
    'amount_usd',
    'refunded_payments',
    'refunded',
    'refunded_usd',
    'disputed_payments',
    'charged_back',
    'charged_back_usd',
    'without_usd',
  ],
  facts: FACTS,
  more: byPerson(FACTS),
}
