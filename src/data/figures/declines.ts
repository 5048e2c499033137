// Figures of first declines: payments whose first attempt was declined, by its day, and those that were paid later.
import { ACCOUNT, IS_TEST } from '../../core/records/payment-account.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { dayOf, type Family, minor, orNone, reportedRow, within } from './family.ts'
import { alone, byPerson, OF_PERSON, PERSON } from './splits.ts'

/** A payment that is made later than this is another one. */
const RECOVERY_DAYS = 30

const IN_TIME = `interval '${RECOVERY_DAYS} days'`
const at = (row: string) => `(${paidAt(row)}, ${row}.trx_created_at)`

/** SQL: a sale with this status that is another attempt at the payment `r`. */
const attempts = (row: string, status: string) => `
  ${row}.organization_id = r.organization_id and ${row}.external_id = r.external_id and ${row}.psp_transaction_type = 'sale'
  and ${row}.status = '${status}' and ${row}.currency_code = r.currency_code and ${row}.amount = r.amount
  and row(${row}.meta_subs_id, ${row}.meta_subs_iteration) is not distinct from row(r.meta_subs_id, r.meta_subs_iteration)`

const before = (row: string, later: string) =>
  `${at(row)} < ${at(later)} and ${paidAt(row)} >= ${paidAt(later)} - ${IN_TIME}`

/** SQL: whether the declined payment `r` of the report is the first attempt. */
export const isFirstDecline = `not exists (
  select from report_transactions e where ${attempts('e', 'failed')} and ${before('e', 'r')} and not exists (
    select from report_transactions s where ${attempts('s', 'succeeded')} and ${at('s')} > ${at('e')} and ${at('s')} < ${at('r')}))`

const PAID = `left join lateral (
    select s.* from report_transactions s
    where ${attempts('s', 'succeeded')} and ${at('s')} > ${at('r')} and ${paidAt('s')} <= ${paidAt('r')} + ${IN_TIME}
    order by ${paidAt('s')}, s.trx_created_at limit 1) paid on true`

const TRIES = `(select count(*) + 2 from report_transactions e
  where ${attempts('e', 'failed')} and ${at('e')} > ${at('r')} and ${at('e')} < ${at('paid')})`

/** SQL: which attempt paid for the declined payment `r` of the report: `none`, `2` and so on. */
export const paidAttempt = `coalesce((select ${TRIES}::text from (select) one ${PAID} where paid.trx_id is not null), 'none')`

const DECLINED_VALUE = reportedRow('r', paidAt('r'))
const PAID_VALUE = reportedRow('paid', paidAt('paid'))
// The same amount: where one of them has no value, it has that of the other.
const VALUE = `coalesce(${DECLINED_VALUE}, ${PAID_VALUE})`
const RECOVERED_VALUE = `coalesce(${PAID_VALUE}, ${DECLINED_VALUE})`

const facts = (columns: string, joins: string) => `
    select ${dayOf(paidAt('r'))} as day, ${IS_TEST} as test, r.currency_code as currency,
      ${orNone('coalesce(r.psp_reason_code, r.psp_reason_type)')} as reason, ${orNone('r.psp_reason_decline_type')} as decline,
      ${orNone('r.psp')} as provider, case when paid.trx_id is null then '' else ${TRIES}::text end as attempt,
      1 as declines, (paid.trx_id is not null)::int as recovered,
      ${minor('r.amount', 'r.currency_code')} as amount, coalesce(${VALUE}, 0) as amount_usd,
      case when paid.trx_id is null then 0 else ${minor('paid.amount', 'paid.currency_code')} end as recovered_amount,
      case when paid.trx_id is null then 0 else coalesce(${RECOVERED_VALUE}, 0) end as recovered_amount_usd,
      (${VALUE} is null)::int as without_usd,
      case when ${VALUE} is null then ${minor('r.amount', 'r.currency_code')} else 0 end as amount_unvalued,
      case when paid.trx_id is null or ${RECOVERED_VALUE} is not null then 0
        else ${minor('paid.amount', 'paid.currency_code')} end as recovered_amount_unvalued ${columns}
    from projects j
    join report_transactions r on r.organization_id = j.organization_id and ${within(paidAt('r'))}
      and r.psp_transaction_type = 'sale' and r.status = 'failed'
    join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id and c.project_id = j.id
    ${ACCOUNT}
    ${PAID} ${joins}
    where j.id = $1 and ${isFirstDecline}`

export const declines: Family = {
  name: 'declines',
  table: 'figures_declines',
  dimensions: ['reason', 'attempt', 'decline', 'provider'],
  splits: [...alone(['reason', 'attempt', 'decline', 'provider']), ['reason', 'attempt']],
  money: true,
  measures: [
    'declines',
    'recovered',
    'amount',
    'amount_usd',
    'recovered_amount',
    'recovered_amount_usd',
    'without_usd',
    'amount_unvalued',
    'recovered_amount_unvalued',
  ],
  facts: facts('', ''),
  more: byPerson(facts(PERSON, OF_PERSON), ['funnel', 'country', 'product']),
}

/** SQL: the declined payments of the customer whose figures depend on an attempt at this instant. */
export const declinesAround = (row: string, organization: string, customer: string, instant: string) =>
  `${row}.organization_id = ${organization} and ${row}.external_id = ${customer} and ${row}.psp_transaction_type = 'sale'
   and ${row}.status = 'failed' and ${paidAt(row)} >= ${instant} - ${IN_TIME} and ${paidAt(row)} <= ${instant} + ${IN_TIME}`
