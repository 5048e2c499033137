// Where the sums of figures are read: in the stored rows of a split, or in the records, for combinations that are not stored.
import { invalidParameter } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Param } from '../../lib/pg/types.ts'
import { DECIMALS, OTHER } from './compute.ts'
import type { Family, Filter } from './family.ts'
import { settingsOf } from './settings.ts'
import { onlyPeople } from './splits.ts'
import { subscriptions } from './subscriptions.ts'
import { visits } from './visits.ts'

/** A table with the columns of the family, `key` and `subkey`, or a query in place of it. */
export interface Source {
  table: string
  /** SQL: the condition of its rows. */
  where: string
  /** Adds a parameter, and returns its placeholder. */
  add(value: Param): string
  params: Param[]
  /** The columns with the dimensions of the question. */
  columns: Record<string, string>
}

export interface Place {
  projects: readonly string[]
  /** The dimensions of the rows that are needed. */
  dimensions: readonly string[]
  filters: readonly Filter[]
  /** The days of the facts; `to` is the day after the last. Without `from`, all before. */
  days: { from?: string; to: string }
}

/** The most records from which a combination is computed: some seconds of the database. */
export const MOST_RECORDS = 20_000

/** Whether figures of the family can be of these dimensions together. */
export function has(family: Family, dimensions: readonly string[]): boolean {
  const isAlone = dimensions.length === 0 || splitOf(family, dimensions) !== undefined
  return isAlone || (!needsFunnel(family, dimensions) && dimensions.every((name) => known(family).includes(name)))
}

/** Whether the sums of these dimensions together are stored. */
export const isStored = (family: Family, dimensions: readonly string[]) => splitOf(family, dimensions) !== undefined

const known = ({ dimensions, more }: Family) => [...dimensions, ...(more?.dimensions ?? [])]

// Screens and versions have no meaning without their funnel.
const OF_FUNNEL = ['screen', 'version']
const needsFunnel = ({ name }: Family, dimensions: readonly string[]) =>
  name === 'visits' && dimensions.some((one) => OF_FUNNEL.includes(one)) && !dimensions.includes('funnel')

/** The smallest stored split with these dimensions. */
function splitOf({ splits }: Family, dimensions: readonly string[]): readonly string[] | undefined {
  const [found] = splits
    .filter((one) => dimensions.every((name) => one.includes(name)))
    .sort((a, b) => a.length - b.length)
  // The other dimension of the split may have no meaning without the funnel, or not be of every record.
  return found && dimensions.length === 1 && found.length > 1 && found[0] === 'funnel' ? undefined : found
}

/**
 * The sources whose sums together are the figures: one of the stored rows, or one for each project of its records. None if the family does
 * not have the dimensions. Throws a 400 if there are too many records.
 */
export async function sourcesOf(db: Db, family: Family, place: Place): Promise<Source[]> {
  if (!has(family, allOf(place))) return []
  const stored = storedSource(family, place)
  if (stored) return [stored]
  checkOther(family, place.filters)
  await checkSize(db, family, place)
  return Promise.all(place.projects.map((project) => sourceOfRecords(db, family, project, place)))
}

const allOf = ({ dimensions, filters }: Place) => [
  ...new Set([...dimensions, ...filters.map(({ dimension }) => dimension)]),
]

/** The stored rows of these dimensions; undefined if they are not stored. */
export function storedSource(family: Family, place: Place): Source | undefined {
  const { projects, filters } = place
  const dimensions = allOf(place)
  const split = dimensions.length === 0 ? [] : splitOf(family, dimensions)
  // Two values of one dimension are the records of neither.
  if (!split || filters.length !== new Set(filters.map(({ dimension }) => dimension)).size) return undefined
  const column = (name: string) => (split.indexOf(name) === 1 ? 'subkey' : 'key')
  const source = open(family.table, [projects as string[], split.join('_')])
  const conditions = filters.map(({ dimension, value }) => `${column(dimension)} = ${source.add(value)}`)
  source.where = ['project_id = any($1)', 'split = $2', ...conditions].join(' and ')
  for (const name of dimensions) source.columns[name] = column(name)
  return source
}

function open(table: string, params: Param[]): Source {
  return { table, where: 'true', params, columns: {}, add: (value) => `$${params.push(value)}` }
}

// Days before and after any record.
export const BEGINNING = '1970-01-01'
export const END = '2200-01-01'

/** The records of a project that fulfil the filters. */
export async function sourceOfRecords(db: Db, family: Family, projectId: string, place: Place): Promise<Source> {
  const { dimensions, filters, days } = place
  const { timeZone, currency } = await settingsOf(db.query, projectId)
  const names = [...dimensions, ...filters.map(({ dimension }) => dimension)]
  const facts = names.every((name) => family.dimensions.includes(name)) ? family.facts : family.more!.facts
  // PostgreSQL refuses parameters that the statement does not use.
  const money = facts.includes('$5') ? [DECIMALS, currency] : []
  const source = open('', [projectId, days.from ?? BEGINNING, days.to, timeZone, ...money])
  const conditions = filters.map(({ dimension, value }) => `${dimension} = ${source.add(value)}`)
  const people = family.ofPeople ? onlyPeople(filters, (sql, value) => `${sql} = ${source.add(value)}`) : ''
  source.table = `(
    ${people} select facts.*, $1::text as project_id from (${facts}) facts
    ${conditions.length > 0 ? `where ${conditions.join(' and ')}` : ''}) facts`
  for (const name of dimensions) source.columns[name] = name
  return source
}

/** Only stored figures know which values are summed as `other`. */
export function checkOther({ limited = [] }: Family, filters: readonly Filter[]): void {
  const other = filters.find(({ dimension, value }) => value === OTHER && limited.includes(dimension))
  if (!other) return
  throw invalidParameter(
    `${other.dimension}=${OTHER} is the sum of many values, which cannot be combined with another filter.`,
  )
}

/** Throws a 400 if the days have more records than a combination is computed from, or if their figures do not tell. */
export async function checkSize(db: Db, family: Family, place: Pick<Place, 'projects' | 'days'>): Promise<void> {
  const problem = await sizeProblem(db, family, place)
  if (problem) throw invalidParameter(`This combination is not stored, and ${problem}`)
}

/** Why a combination is not computed from the records of these days; undefined if it can be. */
export async function sizeProblem(
  db: Db,
  family: Family,
  { projects, days }: Pick<Place, 'projects' | 'days'>,
): Promise<string | undefined> {
  const [table, measure] =
    family.table === 'figures_spend'
      ? [visits.table, 'sessions']
      : [family.table, family === subscriptions ? 'started' : family.measures[0]!]
  const [row] = await db.query(
    `select coalesce(sum(${measure}), 0) as records, (
       select count(*) from figure_marks m where m.project_id = any($1) and m.family = $4 and m.day >= $2::date and m.day < $3::date
         and not exists (select from ${table} f where f.project_id = m.project_id and f.split = '' and f.day = m.day)) as unknown, (
       select coalesce(sum(n), 0) from counts c
       where c.project_id = any($1) and c.list in ('sessions', 'subscriptions', 'transactions') and c.field = '') as stored
     from ${table} where project_id = any($1) and split = '' and day >= $2::date and day < $3::date`,
    [projects as string[], days.from ?? BEGINNING, days.to, family.name],
  )
  if (Number(row!.unknown) > MOST_UNKNOWN && Number(row!.stored) > MOST_RECORDS)
    return 'the figures of these days are still being computed: try again later, or give one filter.'
  if (Number(row!.records) > MOST_RECORDS)
    return `is computed only from at most ${MOST_RECORDS.toLocaleString('en-US')} records: give fewer days, or one filter.`
  return undefined
}

// Days whose figures are computed for the first time: the last ones of a feed, but not those of an import of years.
const MOST_UNKNOWN = 31

type Rows = Record<string, string | null>[]

/** Runs the statement of each source, and adds up the sums of rows that have the same other columns. */
export async function sumOver(
  db: Db,
  sources: readonly Source[],
  statement: (source: Source) => string,
  isSum: (column: string) => boolean,
): Promise<Rows> {
  // The statement adds its parameters, so it is made first.
  const all = await Promise.all(sources.map((source) => db.query(statement(source), source.params)))
  if (all.length === 1) return all[0]!
  const found = new Map<string, Record<string, string | null>>()
  for (const row of all.flat()) {
    const place = JSON.stringify(Object.entries(row).filter(([name]) => !isSum(name)))
    const one = found.get(place)
    if (!one) found.set(place, { ...row })
    else for (const name of Object.keys(row)) if (isSum(name)) one[name] = String(Number(one[name]) + Number(row[name]))
  }
  return [...found.values()]
}
