// Figures of experiments: what the people of each variant did within 90 days, by the day of their first session in the experiment.
import { ACCOUNT, IS_TEST } from '../../core/records/payment-account.ts'
import { moveOf } from '../../core/records/payment-move.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { dayOf, type Family, orNone, reportedPrice, reportedRow, within } from './family.ts'
import { pays } from './sales.ts'
import { VISITED } from './splits.ts'
import { isTrial } from './subscriptions.ts'

/** What happens later is not counted: the figures of an experiment come to rest. */
export const COUNTED_DAYS = 90

const isCounted = (instant: string) =>
  `${instant} >= s.created_at and ${instant} < s.created_at + interval '${COUNTED_DAYS} days'`
const PRICE = reportedPrice('t')
const AMOUNT = reportedRow('r', paidAt('r'))

const PAID = `
  cross join lateral (
    select coalesce(sum(coalesce(${PRICE}, 0)), 0)::numeric as gross, count(*) filter (where t.price > 0) as payments,
      count(*) filter (where ${PRICE} is null) as unknown
    from transactions t
    where t.project_id = $1 and t.profile_id = s.profile_id and ${isCounted('t.created_at')} and not t.sandbox) paid`

const BACK = `
  cross join lateral (
    select coalesce(sum(case move when 'refund' then usd when 'refund_failed' then -usd when 'chargeback' then usd
        when 'chargeback_reversal' then -usd else 0 end), 0) as back,
      count(*) filter (where move is not null and usd is null) as unknown,
      coalesce(sum(case move when 'refund' then 1 when 'refund_failed' then -1 else 0 end), 0) as refunds
    from customers c
    join report_transactions r on r.organization_id = c.organization_id and r.external_id = c.external_id
      and r.psp_transaction_type <> 'sale'
    ${ACCOUNT}
    cross join lateral (select ${moveOf('r')} as move, ${AMOUNT} as usd) moved
    where c.project_id = $1 and c.profile_id = s.profile_id and ${isCounted(paidAt('r'))} and not ${IS_TEST}) returned`

const TRIALS = `
  cross join lateral (
    select count(*) as trials, count(*) filter (where exists (
      select from transactions t where t.project_id = $1 and t.subscription_id = u.id and ${pays('t', 'u')}
        and ${isCounted('t.created_at')})) as paid
    from subscriptions u
    where u.project_id = $1 and u.profile_id = s.profile_id and ${isCounted('u.created_at')} and ${isTrial('u')}
      and not u.sandbox) tried`

const FACTS = `
    select day, test, experiment, variant, 1 as people, (payments > 0)::int as payers, (trials > 0)::int as trials,
      (trials_paid > 0)::int as trials_paid, (payments > 0 and refunds > 0)::int as refunded, net as net_usd, net * net as net_usd_squares,
      unknown as without_usd, funnel, country, source, campaign
    from (
      select ${dayOf('s.created_at')} as day, p.preview as test, s.experiment_id as experiment,
        ${orNone('s.visit_variant')} as variant,
        ${orNone('s.funnel_id')} as funnel, ${orNone('s.country')} as country,
        coalesce(s.visit_source, '') as source, coalesce(s.visit_campaign, '') as campaign, paid.payments, paid.unknown + returned.unknown as unknown, tried.trials, tried.paid as trials_paid,
        returned.refunds, paid.gross - returned.back as net
      from sessions s join profiles p on p.project_id = s.project_id and p.id = s.profile_id
      ${PAID} ${BACK} ${TRIALS}
      where s.project_id = $1 and ${within('s.created_at')} and s.experiment_id is not null and not exists (
        select from sessions o where o.project_id = s.project_id and o.profile_id = s.profile_id
          and o.experiment_id = s.experiment_id and (o.created_at, o.id) < (s.created_at, s.id))) people`

export const experiments: Family = {
  name: 'experiments',
  table: 'figures_experiments',
  dimensions: ['experiment', 'variant'],
  splits: [['experiment', 'variant']],
  limited: VISITED,
  money: false,
  measures: ['people', 'payers', 'trials', 'trials_paid', 'refunded', 'net_usd', 'net_usd_squares', 'without_usd'],
  facts: FACTS,
  more: { dimensions: ['funnel', 'country', 'source', 'campaign'], facts: FACTS },
}
