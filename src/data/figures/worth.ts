// Figures of what people are worth: money by when the person came or paid first, and by the time since.
import { dayOf, type Family, orNone } from './family.ts'
import { MOVED } from './sales.ts'
import { alone, VISITED, visitColumns } from './splits.ts'

/** Up to this age in days, the day of the beginning is kept. */
export const KEPT_DAYS = 180

const monthsBetween = `(extract(year from day) - extract(year from began)) * 12 + extract(month from day) - extract(month from began)`

// A month is over on the same day of the next month, or on its last day.
const MONTHS = `greatest(0, apart - (began + make_interval(months => apart) > day)::int)`

const COHORT = `case when day - began <= ${KEPT_DAYS} then began
  else greatest(date_trunc('month', began::timestamp), date_trunc('week', began::timestamp))::date end`

export const worth: Family = {
  name: 'sales',
  table: 'figures_worth',
  dimensions: ['funnel', 'source', 'campaign', 'country', 'variant', 'product'],
  splits: alone(['funnel', 'source', 'campaign', 'country', 'variant', 'product']),
  limited: VISITED,
  also: { base: 'text', cohort: 'date', age: 'int', months: 'int' },
  money: true,
  measures: [
    'sales',
    'customers',
    'gross',
    'net',
    'gross_usd',
    'net_usd',
    'without_usd',
    'gross_unvalued',
    'net_unvalued',
  ],
  facts: `
    select day, test, currency, base, funnel, country, source, campaign, variant, product, ${COHORT} as cohort,
      least(greatest(0, day - began), ${KEPT_DAYS + 1}) as age, ${MONTHS} as months,
      sales, customers, gross, gross - refunded - charged_back as net,
      gross_usd, gross_usd - refunded_usd - charged_back_usd as net_usd, without_usd, gross * without_usd as gross_unvalued,
      (gross - refunded - charged_back) * without_usd as net_unvalued
    from (
      select *, (${monthsBetween})::int as apart from (
        select moved.day, moved.test, moved.currency, bases.base, ${dayOf('bases.at')} as began,
          coalesce(first.funnel_id, '') as funnel, ${orNone("coalesce(first.country, moved.country, '')")} as country,
          ${visitColumns('first')}, coalesce(paid.product, '') as product,
          moved.sales, (paid.id is not distinct from moved.moved_id)::int as customers, moved.gross, moved.refunded,
          moved.charged_back, moved.gross_usd, moved.refunded_usd, moved.charged_back_usd, moved.without_usd
        from ${MOVED}
        cross join lateral (values ('session', first.created_at), ('payment', paid.at)) bases (base, at)
        where bases.at is not null) begun) placed`,
}
