// Filters of lists that are behind figures: by the days and the dimensions by which figures are split.

import { dayIn, zoneOf } from '../../core/tenants/reporting.ts'
import { readDay } from '../../lib/days.ts'
import { DAY_PATTERN, DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import { Type } from '../../lib/shape/schema.ts'
import type { ListDeclaration } from './list.ts'

type Filters = NonNullable<ListDeclaration['filters']>

/** A day as a parameter. */
export const day = (description: string) =>
  Type.String({ description, maxLength: 40, examples: ['2026-01-31'], [DECLARED_ONLY]: { pattern: DAY_PATTERN } })

type Bound = (value: string) => string

const days = (zone: string, from: Bound, to: Bound): Filters => ({
  from: {
    schema: day(`Only those of this day or later, in ${zone}.`),
    where: from,
    param: (value: string) => readDay('from', value),
  },
  to: {
    schema: day(`Only those of this day or earlier, in ${zone}.`),
    where: to,
    param: (value: string) => readDay('to', value),
  },
})

/** The days of the instant `at`, both included, in the time zone of the project $1. */
export const dayFilters = (at: string): Filters =>
  days(
    'the time zone of the project',
    (value) => `${at} >= day_begins(${value}::date, ${zoneOf('$1')})`,
    (value) => `${at} < day_begins(${value}::date + 1, ${zoneOf('$1')})`,
  )

/** The same in the time zone of the project of each row; the first condition is for the index. */
export const dayFiltersOf = (project: string, at: string): Filters =>
  days(
    'the time zone of its project',
    (value) =>
      `${at} >= (${value}::date - 1)::timestamp at time zone 'UTC' and ${dayIn(at, zoneOf(project))} >= ${value}::date`,
    (value) =>
      `${at} < (${value}::date + 2)::timestamp at time zone 'UTC' and ${dayIn(at, zoneOf(project))} <= ${value}::date`,
  )

/** The same in UTC, of what belongs to no project. */
export const utcDayFilters = (at: string): Filters =>
  days(
    'UTC',
    (value) => `${at} >= ${value}::timestamp at time zone 'UTC'`,
    (value) => `${at} < (${value}::timestamp + interval '1 day') at time zone 'UTC'`,
  )

/** Whether test data, which is `what`, is in the list; without the filter it is. `isTest` is SQL. */
export const testFilter = (isTest: string, what = 'sandbox payments and people of previews'): Filters[string] => ({
  schema: Type.Boolean({ description: `\`false\`: without ${what}, as figures are. By default all.` }),
  where: (value) => `(${value}::boolean or not ${isTest})`,
})

/** SQL: a field of the person of a row. */
export const ofPerson = (row: string, column: string) =>
  `(select p.${column} from profiles p where p.project_id = ${row}.project_id and p.id = ${row}.profile_id)`

/** SQL: whether the person is one of a preview. */
export const isPreview = (row: string) => ofPerson(row, 'preview')

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
