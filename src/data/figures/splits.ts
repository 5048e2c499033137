// Which dimensions figures are split by, alone and in pairs. A pair makes it possible to split by one and filter by the other.
import { DIMENSIONS } from '../../core/records/visit.ts'
import { orNone } from './family.ts'

/** The dimensions of a session whose values a visitor can choose: the number of values that are kept is limited. */
export const VISITED: readonly string[] = DIMENSIONS

/** By the last session before the payment, not the first session of the person. */
export const LAST_TOUCH = ['last_source', 'last_medium', 'last_campaign', 'last_content', 'last_term', 'last_referrer']

/** Each of `names` alone. */
export const alone = (names: readonly string[]) => names.map((name) => [name])

/** `first` with each of the others. */
export const with_ = (first: string, names: readonly string[]) => names.map((name) => [first, name])

/** SQL: a column for each dimension of the session in `row`; empty if there is none. */
export const visitColumns = (row: string) =>
  DIMENSIONS.map((name) => `coalesce(${row}.visit_${name}, '') as ${name}`).join(', ')

/** SQL: the person of a row `r` of the payment report of the customer `c`, and the product of the subscription that the row names. */
export const OF_PERSON = `
    left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    left join subscriptions u on u.project_id = c.project_id and u.id = r.meta_subs_id`
export const PERSON = `, c.profile_id, ${orNone('p.funnel_id')} as funnel, ${orNone('p.country')} as country,
    ${orNone('u.product_id')} as product`

const FIRST_VISIT = ['source', 'campaign', 'variant']

/**
 * Facts that have a `profile_id`, with the dimensions of the person's first session, which money has too: figures of them can be filtered
 * by these and by `others`, which the facts have as columns.
 */
export const byPerson = (facts: string, others: readonly string[] = []) => ({
  dimensions: [...FIRST_VISIT, ...others],
  facts: `
    select facts.*, ${FIRST_VISIT.map((name) => `coalesce(visit.visit_${name}, '') as ${name}`).join(', ')}
    from (${facts}) facts left join lateral (
      select s.* from sessions s where s.project_id = $1 and s.profile_id = facts.profile_id
      order by s.created_at, s.id limit 1) visit on true`,
})
