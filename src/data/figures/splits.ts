// Which dimensions figures are split by, alone and in pairs. A pair makes it possible to split by one and filter by the other.
import { DIMENSIONS } from '../../core/records/visit.ts'

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
