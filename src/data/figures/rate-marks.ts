// Marks the days whose figures change with exchange rates: those of projects whose amounts are converted when figures are computed. In US
// dollars amounts have the value that was stored with them.
import { OLDEST_RATE_DAYS } from '../../core/records/exchange-rates.ts'
import { paidAt } from '../../core/records/payment-time.ts'
import { dayIn } from '../../core/tenants/reporting.ts'
import type { Query } from '../../lib/pg/types.ts'
import { COUNTED_DAYS } from './experiments.ts'
import { DUE } from './renewals.ts'
import { end, firstPayment } from './subscriptions.ts'

/** Marks what depends on the rates of these days, of one organization or of all. */
export async function markRates(query: Query, organization: string | null, from: string, to: string): Promise<void> {
  await query(MARK, [organization, from, to])
}

// A rate counts on its day and on those after it that have none. Subscriptions have that of the day on which they were created.
const UNTIL = `$3::date + ${OLDEST_RATE_DAYS}`
const converted = (instant: string) =>
  `${instant} >= day_begins($2::date, p.zone) and ${instant} < day_begins(${UNTIL} + 1, p.zone)`

const MARK = `
  with p as materialized (
    select id, organization_id, time_zone as zone from projects
    where reporting_currency <> 'USD' and ($1::text is null or organization_id = $1)
  ), changed as (
    select p.id, family, ${dayIn('t.created_at', 'p.zone')} as day
    from p join transactions t on t.project_id = p.id and ${converted('t.created_at')}
    cross join (values ('sales')) f (family)
    union
    select p.id, family, ${dayIn(paidAt('r'), 'p.zone')}
    from p join report_transactions r on r.organization_id = p.organization_id and ${converted(paidAt('r'))}
    cross join (values ('sales'), ('declines')) f (family)
    union
    -- What went back belongs to the day of its payment, too.
    select p.id, 'sales', ${dayIn(paidAt('o'), 'p.zone')}
    from p join report_transactions r on r.organization_id = p.organization_id and ${converted(paidAt('r'))}
      and r.psp_transaction_type <> 'sale'
    join report_transactions o on o.organization_id = r.organization_id and o.order_id = r.order_id
    union
    select p.id, 'visits', s.day from p join spend s on s.project_id = p.id and s.day >= $2::date and s.day <= ${UNTIL}
    union
    select p.id, 'experiments', e.day from p join figures_experiments e on e.project_id = p.id and e.split = ''
      and e.day > $2::date - ${COUNTED_DAYS + 2} and e.day <= ${UNTIL}
    union
    select p.id, d.family, ${dayIn('d.at', 'p.zone')}
    from p join subscriptions u on u.project_id = p.id and ${converted('u.created_at')}
    cross join lateral (
      values ('subscriptions', u.created_at), ('subscriptions', ${end('u')}),
        ('renewals', case when u.status in ${DUE} and u.renews then u.period_ends_at end),
        ('subscriptions', ${firstPayment('u', 'p.id')})
    ) d (family, at) where d.at is not null and isfinite(d.at)
  )
  insert into figure_marks (project_id, family, day) select id, family, day from changed`
