// Figures of payment attempts: accepted and declined, with decline reasons, by the day of the attempt.
import { ACCOUNT, IS_TEST } from '../../core/records/payment-account.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { dayOf, type Family, hourOf, orNone, within } from './family.ts'
import { byPerson, OF_PERSON, PERSON } from './splits.ts'

const facts = (columns: string, joins: string) => `
    select ${dayOf(paidAt('r'))} as day, ${hourOf(paidAt('r'))} as hour, ${IS_TEST} as test,
      ${orNone('r.psp')} as provider,
      -- With its provider, because two of them may use the same id.
      concat_ws(' ', r.psp, r.psp_merchant_id) as account,
      case when r.status = 'failed' then ${orNone('r.psp_reason_decline_type')} else '' end as decline,
      case when r.status = 'failed' then ${orNone('coalesce(r.psp_reason_code, r.psp_reason_type)')} else '' end as reason,
      1 as attempts, (r.status = 'succeeded')::int as accepted, (r.status = 'failed')::int as declined ${columns}
    from projects j
    join report_transactions r on r.organization_id = j.organization_id and ${within(paidAt('r'))}
    join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id and c.project_id = j.id
    ${ACCOUNT} ${joins}
    where j.id = $1 and r.psp_transaction_type = 'sale' and r.status in ('succeeded', 'failed')`

export const payments: Family = {
  name: 'payments',
  table: 'figures_payments',
  dimensions: ['hour', 'provider', 'account', 'decline', 'reason'],
  splits: [['hour'], ['provider'], ['account'], ['decline', 'reason']],
  money: false,
  measures: ['attempts', 'accepted', 'declined'],
  facts: facts('', ''),
  more: byPerson(facts(PERSON, OF_PERSON), ['funnel', 'country', 'product']),
}
