// Figures of what was spent on advertising, by source, campaign, and the funnels to which it brought people.
import { dayOf, type Family, minor, orNone, reported, within } from './family.ts'
import { alone } from './splits.ts'

// People whose first session it is, without previews, from what was paid for on their day.
const CAME = `
  select ${dayOf('s.created_at')} as day, s.visit_source as source, coalesce(s.visit_campaign, '') as campaign,
    ${orNone('s.funnel_id')} as funnel, count(*) as people
  from sessions s join profiles p on p.project_id = s.project_id and p.id = s.profile_id
  where s.project_id = $1 and ${within('s.created_at')} and not p.preview
    and (${dayOf('s.created_at')}, s.visit_source) in (select day, source from spent)
    and not exists (
      select from sessions o where o.project_id = s.project_id and o.profile_id = s.profile_id
        and (o.created_at, o.id) < (s.created_at, s.id))
  group by 1, 2, 3, 4`

// Of a day, which is that of the project, and no instant.
const VALUE = reported({
  amount: minor('spend.amount', 'spend.currency_code'),
  currency: 'spend.currency_code',
  cents: 'round(spend.amount_usd * 100)',
  at: `spend.day::timestamp at time zone $4::text`,
})

export const spend: Family = {
  name: 'visits',
  table: 'figures_spend',
  dimensions: ['source', 'campaign', 'funnel'],
  splits: [
    ...alone(['source', 'campaign', 'funnel']),
    ['source', 'campaign'],
    ['funnel', 'source'],
    ['funnel', 'campaign'],
  ],
  money: true,
  measures: ['spent', 'spent_usd', 'without_usd', 'spent_unvalued'],
  // A campaign that was left out stands for all of its source.
  facts: `
    with spent as materialized (
      select day, source, campaign, currency_code as currency, ${minor('amount', 'currency_code')} as amount,
        ${VALUE} as amount_usd
      from spend where project_id = $1 and day >= $2::date and day < $3::date),
    came as materialized (${CAME})
    select spent.day, false as test, spent.source, spent.campaign, coalesce(part.funnel, '') as funnel, spent.currency,
      spent.amount * coalesce(part.share, 1) as spent, coalesce(spent.amount_usd, 0) * coalesce(part.share, 1) as spent_usd,
      (spent.amount_usd is null and coalesce(part.place, 1) = 1)::int as without_usd,
      case when spent.amount_usd is null then spent.amount * coalesce(part.share, 1) else 0 end as spent_unvalued
    from spent left join lateral (
      select funnel, people / sum(people) over () as share, row_number() over (order by funnel) as place from (
        select funnel, sum(people) as people from came
        where came.day = spent.day and came.source = spent.source
          and (spent.campaign = '' or came.campaign = spent.campaign)
        group by funnel) each) part on true`,
}
