// Figures of a combination of dimensions that is not stored: sums by day, computed from the records once for all questions of a page.
import type { Db } from '../../lib/pg/db.ts'
import type { Family, Filter } from './family.ts'
import { FILTERS } from './filters.ts'
import { BEGINNING, checkOther, checkSize, END, type Place, sizeProblem, sourceOfRecords } from './source.ts'

/**
 * The sums of one day, and of one value of each dimension, as the database writes them: `day`, `test`, `currency` (null for families without
 * money), the dimensions of the place and perhaps others, and the measures.
 */
export type DaySums = Record<string, string | null>

// Sums by more dimensions are nearly as many as the records.
const FEW = 8
// Those that a page has in all of its questions.
const OF_PAGE: readonly string[] = FILTERS

const shared = new WeakMap<Db, Map<string, Promise<unknown>>>()

/** The database for the questions of one request or page: what they need for combinations that are not stored is read once. */
export function sharingSums(db: Db): Db {
  if (shared.has(db)) return db
  const sharing = { ...db }
  shared.set(sharing, new Map())
  return sharing
}

/** What `read` returns; read once for all questions that share the database. */
function once<T>(db: Db, what: readonly unknown[], read: () => Promise<T>): Promise<T> {
  const known = shared.get(db)
  const key = JSON.stringify(what)
  const found = (known?.get(key) as Promise<T> | undefined) ?? read()
  known?.set(key, found)
  return found
}

/**
 * The sums of the records that fulfil the filters, of each project by day and by the dimensions of the place. Other days may be among them.
 * Throws a 400 if there are too many records.
 */
export async function sumsOfRecords(
  db: Db,
  family: Family,
  place: Place,
): Promise<{ projectId: string; rows: DaySums[] }[]> {
  checkOther(family, place.filters)
  const { from = BEGINNING, to } = place.days
  const all = { ...place, days: { from: BEGINNING, to: END } }
  const problem = await once(db, ['size', family.table, place.projects], () => sizeProblem(db, family, all))
  const isWhole = problem === undefined && from >= BEGINNING && to <= END
  if (!isWhole) await checkSize(db, family, place)
  const read = isWhole ? all : place
  return Promise.all(
    place.projects.map(async (projectId) => ({ projectId, rows: await sumsOfProject(db, family, projectId, read) })),
  )
}

async function sumsOfProject(db: Db, family: Family, projectId: string, place: Place): Promise<DaySums[]> {
  const { dimensions } = family
  // A page asks about the same records by several dimensions.
  if (dimensions.length > FEW || !place.dimensions.every((name) => dimensions.includes(name)))
    return sharedSums(db, family, projectId, place)
  const isOwn = ({ dimension }: Filter) => dimensions.includes(dimension) && !OF_PAGE.includes(dimension)
  const own = place.filters.filter(isOwn)
  const filters = place.filters.filter((one) => !isOwn(one))
  const found = await sharedSums(db, family, projectId, { ...place, dimensions, filters })
  return found.filter((row) => own.every(({ dimension, value }) => row[dimension] === value))
}

const sharedSums = (db: Db, family: Family, projectId: string, place: Place) =>
  once(db, [family.table, projectId, place.dimensions, place.filters, place.days], () =>
    readSums(db, family, projectId, place),
  )

async function readSums(db: Db, family: Family, projectId: string, place: Place): Promise<DaySums[]> {
  const { money, measures } = family
  const { table, params } = await sourceOfRecords(db, family, projectId, place)
  const groups = ['test', ...(money ? ['currency'] : []), ...place.dimensions]
  return db.query(
    `select to_char(day, 'YYYY-MM-DD') as day, ${[...groups, ...measures.map((name) => `sum(${name}) as ${name}`)].join(', ')}
     from ${table} group by ${['facts.day', ...groups].join(', ')}`,
    params,
  )
}
