// Computes the figures of some days from the records, and replaces the stored rows of these days.
import { allCurrencies } from '../../lib/currencies.ts'
import type { Param, Query } from '../../lib/pg/types.ts'
import { families } from './families.ts'
import type { Family } from './family.ts'

/** Days as `2026-01-31`; `to` is the day after the last. */
export interface Days {
  from: string
  to: string
}

const DECIMALS = JSON.stringify(Object.fromEntries(allCurrencies))

/** Recomputes the families of this name for these days. Call it in a transaction that holds the project's lock on figures. */
export async function compute(query: Query, projectId: string, name: string, { from, to }: Days): Promise<void> {
  for (const family of families.filter((one) => one.name === name)) {
    await query(`delete from ${family.table} where project_id = $1 and day >= $2::date and day < $3::date`, [
      projectId,
      from,
      to,
    ])
    // A prepared statement, because planning takes as long as computing a day with few records.
    const text = `insert into ${family.table} (${columnsOf(family).join(', ')}) ${computed(family)}`
    await query({ name: `compute ${family.table}`, text }, paramsOf(family, projectId, { from, to }))
  }
}

/** Counts the rows of a family for these days that are missing, plus those that are wrong. */
export async function countDifferences(query: Query, projectId: string, family: Family, { from, to }: Days) {
  const columns = columnsOf(family).join(', ')
  const [row] = await query(
    `with computed as (${computed(family)}), stored as (
       select ${columns} from ${family.table} where project_id = $1 and day >= $2::date and day < $3::date)
     select (select count(*) from (table computed except table stored) missing)
       + (select count(*) from (table stored except table computed) wrong) as differences`,
    paramsOf(family, projectId, { from, to }),
  )
  return Number(row!.differences)
}

/** PostgreSQL refuses parameters that the statement does not use. */
function paramsOf({ facts }: Family, projectId: string, { from, to }: Days): Param[] {
  return [projectId, from, to, ...(facts.includes('$4') ? [DECIMALS] : [])]
}

function columnsOf({ money, measures }: Family): string[] {
  return ['project_id', 'split', 'day', 'test', 'key', 'subkey', ...(money ? ['currency'] : []), ...measures]
}

/** SQL: the rows of a family, with one grouping set for each split. */
function computed(family: Family): string {
  const { dimensions, splits, money, measures } = family
  const always = ['day', 'test', ...(money ? ['currency'] : [])]
  const all = [[], ...splits]
  const sums = measures.map((measure) => `sum(${measure})${isCount(measure) ? '::bigint' : ''}`)
  const split = `case grouping(${dimensions.join(', ')}) ${all.map((one) => `when ${mask(family, one)} then '${one.join('_')}'`).join(' ')} end`
  const part = (n: number) =>
    `case grouping(${dimensions.join(', ')}) ${splits.map((one) => `when ${mask(family, one)} then ${one[n] ?? "''"}`).join(' ')} else '' end`
  return `
    select $1::text collate "C", ${split} collate "C", day, test, ${part(0)} collate "C", ${part(1)} collate "C"${money ? ', currency collate "C"' : ''}, ${sums.join(', ')}
    from (${family.facts}) facts
    group by grouping sets (${all.map((one) => `(${[...always, ...one].join(', ')})`).join(', ')})`
}

const MONEY = new Set(['gross', 'refunded', 'charged_back', 'gross_usd', 'refunded_usd', 'charged_back_usd'])
const isCount = (measure: string) => !MONEY.has(measure) && !measure.startsWith('mrr')

/** The value of `grouping(…all dimensions)` in the set of `present`: a bit for each absent dimension, the last one lowest. */
function mask({ dimensions }: Family, present: readonly string[]): number {
  return dimensions.reduce((bits, name) => bits * 2 + (present.includes(name) ? 0 : 1), 0)
}
