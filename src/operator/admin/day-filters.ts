// Filters of lists that are behind figures: by the days and the dimensions by which figures are split.

import { readDay } from '../../lib/days.ts'
import { DAY_PATTERN, DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import { Type } from '../../lib/shape/schema.ts'
import type { ListDeclaration } from './list.ts'

type Filters = NonNullable<ListDeclaration['filters']>

/** A day in UTC as a parameter. */
export const day = (description: string) =>
  Type.String({ description, maxLength: 40, [DECLARED_ONLY]: { pattern: DAY_PATTERN } })

/** The days of the instant `at`, in UTC, both included. */
export const dayFilters = (at: string): Filters => ({
  from: {
    schema: day('Only those of this day or later, in UTC.'),
    where: (value) => `${at} >= ${value}::timestamp at time zone 'UTC'`,
    param: (value: string) => readDay('from', value),
  },
  to: {
    schema: day('Only those of this day or earlier, in UTC.'),
    where: (value) => `${at} < (${value}::timestamp + interval '1 day') at time zone 'UTC'`,
    param: (value: string) => readDay('to', value),
  },
})

const text = (description: string) => Type.String({ description, maxLength: 256 })

/** A filter by SQL that may be null: an empty value finds rows without one, as figures have them under an empty key. */
export const valueFilter = (sql: string, description: string): Filters[string] => ({
  schema: text(description),
  where: (value) => `coalesce(${sql}, '') = ${value}`,
})

const VISITED = ['source', 'campaign', 'variant'] as const

/** By what is known of the session in `row`. */
export const visitFilters = (row: string): Filters =>
  Object.fromEntries(
    VISITED.map((name) => [name, valueFilter(`${row}.visit_${name}`, `Only those with this ${name} of the session.`)]),
  )

/** By the first session of the person, to which figures of money go by: `profile` is SQL for the person's id. */
export const firstVisitFilters = (project: string, profile: string): Filters =>
  Object.fromEntries(
    VISITED.map((name) => [
      name,
      valueFilter(
        `(select f.visit_${name} from sessions f where f.project_id = ${project} and f.profile_id = ${profile}
          order by f.created_at, f.id limit 1)`,
        `Only those of people whose first session has this ${name}.`,
      ),
    ]),
  )
