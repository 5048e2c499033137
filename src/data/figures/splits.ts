// Which dimensions figures are split by, alone and in pairs. A pair makes it possible to split by one and filter by the other.
import { paidAt } from '../../core/records/payment-time.ts'
import { DIMENSIONS } from '../../core/records/visit.ts'
import { type Filter, orNone } from './family.ts'

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

const boughtAt = (instant: string) => `
  t.project_id = c.project_id and t.profile_id = c.profile_id and t.created_at = ${instant} and t.subscription_id is not null`

// A declined attempt has no transaction. Another payment for the same subscription has: the nearest one, because a person may change to
// another product.
const BOUGHT = `
    (select t.subscription_id from transactions t where ${boughtAt(paidAt('r'))} order by t.id limit 1),
    (select t.subscription_id from report_transactions s join transactions t on ${boughtAt(paidAt('s'))}
      where s.organization_id = r.organization_id and s.external_id = r.external_id and s.meta_subs_id = r.meta_subs_id
        and s.psp_transaction_type = 'sale' and s.status = 'succeeded'
      order by abs(extract(epoch from ${paidAt('s')} - ${paidAt('r')})), t.id limit 1)`

/**
 * SQL: the person of a row `r` of the payment report of the customer `c`, and the product of the subscription that the row names, or else
 * of that of the transaction at the time of this payment, or of another payment for the same subscription.
 */
export const OF_PERSON = `
    left join profiles p on p.project_id = c.project_id and p.id = c.profile_id
    left join subscriptions named on named.project_id = c.project_id and named.id = r.meta_subs_id
    left join subscriptions u on u.project_id = c.project_id and u.id = coalesce(named.id, ${BOUGHT})`
export const PERSON = `, c.profile_id, ${orNone('p.funnel_id')} as funnel, ${orNone('p.country')} as country,
    ${orNone('u.product_id')} as product`

/**
 * SQL: the product of a payment as `bought.product_id`, as in finance: of the first of `named`, the subscriptions that its rows name, or else
 * of that of the profile's transaction at the same time.
 */
export const productOf = (named: readonly string[], profileId: string, at: string) => `
  left join lateral (
    select u.product_id from (values ${named.map((id, n) => `(${n}, ${id})`).join(', ')}, (${named.length}, (
      select t.subscription_id from transactions t
      where t.project_id = $1 and t.profile_id = ${profileId} and t.created_at = ${at} and t.subscription_id is not null
      order by t.id limit 1))) given (place, id)
    join subscriptions u on u.project_id = $1 and u.id = given.id collate "C"
    order by given.place limit 1) bought on true`

const FIRST_VISIT = ['source', 'campaign', 'variant']

const firstVisit = (profileId: string) => `left join lateral (
      select s.* from sessions s where s.project_id = $1 and s.profile_id = ${profileId}
      order by s.created_at, s.id limit 1) visit on true`
const ofFirstVisit = (name: string) => `coalesce(visit.visit_${name}, '')`

/**
 * Facts that have a `profile_id`, with the dimensions of the person's first session, which money has too: figures of them can be filtered
 * by these and by `others`, which the facts have as columns.
 */
export const byPerson = (facts: string, others: readonly string[] = []) => ({
  dimensions: [...FIRST_VISIT, ...others],
  facts: `
    select facts.*, ${FIRST_VISIT.map((name) => `${ofFirstVisit(name)} as ${name}`).join(', ')}
    from (${facts}) facts ${firstVisit('facts.profile_id')}`,
})

/**
 * SQL before facts of which each is of a profile: only the profiles with these values are there, so that the facts of others are not
 * computed. `conditionOf` adds a value to the statement.
 */
export function onlyPeople(filters: readonly Filter[], conditionOf: (sql: string, value: string) => string): string {
  const columns: Record<string, string> = { country: orNone('p.country') }
  for (const name of FIRST_VISIT) columns[name] = ofFirstVisit(name)
  const conditions = filters.flatMap(({ dimension, value }) => {
    const sql = columns[dimension]
    return sql === undefined ? [] : [conditionOf(sql, value)]
  })
  if (conditions.length === 0) return ''
  return `with profiles as materialized (
    select p.* from profiles p ${firstVisit('p.id')} where p.project_id = $1 and ${conditions.join(' and ')})`
}
