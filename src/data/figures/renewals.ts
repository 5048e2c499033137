// Figures of payments that are due: of active subscriptions and trials, by the day on which the present period ends.
import { dayOf, type Family, orNone, reportedPrice, within } from './family.ts'
import { byPerson } from './splits.ts'

/** The statuses of subscriptions of which a payment is due. An index has the same condition. */
export const DUE = `('active', 'trialing')`

const PRICE = reportedPrice('u')

const FACTS = `
    select ${dayOf('u.period_ends_at')} as day, u.sandbox or p.preview as test, u.product_id as product, u.currency, u.profile_id,
      ${orNone('u.funnel_id')} as funnel, ${orNone('p.country')} as country,
      case u.status when 'active' then 'renewal' else 'trial' end as due,
      1 as subscriptions, u.price::numeric as gross, coalesce(${PRICE}, 0)::numeric as gross_usd,
      (${PRICE} is null)::int as without_usd
    from subscriptions u join profiles p on p.project_id = u.project_id and p.id = u.profile_id
    where u.project_id = $1 and u.status in ${DUE} and u.renews and ${within('u.period_ends_at')}`

export const renewals: Family = {
  name: 'renewals',
  table: 'figures_renewals',
  dimensions: ['due', 'product'],
  splits: [['due'], ['product'], ['due', 'product']],
  money: true,
  measures: ['subscriptions', 'gross', 'gross_usd', 'without_usd'],
  facts: FACTS,
  more: byPerson(FACTS, ['funnel', 'country']),
}
