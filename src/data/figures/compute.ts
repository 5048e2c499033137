// Computes the figures of some days from the records, and replaces the stored rows of these days.
import { allCurrencies } from '../../lib/currencies.ts'
import type { Param, Query } from '../../lib/pg/types.ts'
import { families } from './families.ts'
import type { Family } from './family.ts'
import { type Settings, settingsOf } from './settings.ts'

/** Days as `2026-01-31`; `to` is the day after the last. */
export interface Days {
  from: string
  to: string
}

/** The number of decimals of each currency. */
export const DECIMALS = JSON.stringify(Object.fromEntries(allCurrencies))

/** Recomputes the families of this name for these days. Call it in a transaction that holds the project's lock on figures. */
export async function compute(query: Query, projectId: string, name: string, { from, to }: Days): Promise<void> {
  const settings = await settingsOf(query, projectId)
  for (const family of families.filter((one) => one.name === name)) {
    await query(`delete from ${family.table} where project_id = $1 and day >= $2::date and day < $3::date`, [
      projectId,
      from,
      to,
    ])
    // A prepared statement, because planning takes as long as computing a day with few records.
    const text = `insert into ${family.table} (${columnsOf(family).join(', ')}) ${computed(family)}`
    await query({ name: `compute ${family.table}`, text }, paramsOf(family, projectId, { from, to }, settings))
  }
}

/** Counts the rows of a family for these days that are missing, plus those that are wrong. */
export async function countDifferences(query: Query, projectId: string, family: Family, { from, to }: Days) {
  const settings = await settingsOf(query, projectId)
  const columns = columnsOf(family).join(', ')
  const [row] = await query(
    `with computed as (${computed(family)}), stored as (
       select ${columns} from ${family.table} where project_id = $1 and day >= $2::date and day < $3::date)
     select (select count(*) from (table computed except table stored) missing)
       + (select count(*) from (table stored except table computed) wrong) as differences`,
    paramsOf(family, projectId, { from, to }, settings),
  )
  return Number(row!.differences)
}

/** PostgreSQL refuses parameters that the statement does not use. */
function paramsOf({ facts }: Family, projectId: string, { from, to }: Days, { timeZone, currency }: Settings): Param[] {
  return [projectId, from, to, timeZone, ...(facts.includes('$5') ? [DECIMALS, currency] : [])]
}

function columnsOf(family: Family): string[] {
  return [...keysOf(family), ...family.measures]
}

const keysOf = ({ money, also = {} }: Family) => [
  'project_id',
  'split',
  'day',
  'test',
  'key',
  'subkey',
  ...(money ? ['currency'] : []),
  ...Object.keys(also),
]

/** SQL: the rows of a family, with one grouping set for each split. */
function computed(family: Family): string {
  const { dimensions, splits, money, measures, also = {} } = family
  const always = ['day', 'test', ...(money ? ['currency'] : []), ...Object.keys(also)]
  const all = [[], ...splits]
  const sums = measures.map((measure) => `${sumOf(measure)} as ${measure}`)
  const grouping = `grouping(${dimensions.join(', ')})`
  const split = `case ${grouping} ${all.map((one) => `when ${mask(family, one)} then '${one.join('_')}'`).join(' ')} end`
  const part = (n: number) =>
    `case ${grouping} ${splits.map((one) => `when ${mask(family, one)} then ${one[n] ?? "''"}`).join(' ')} else '' end`
  const columns = [
    '$1::text collate "C" as project_id',
    `${split} collate "C" as split`,
    'day',
    'test',
    `${part(0)} collate "C" as key`,
    `${part(1)} collate "C" as subkey`,
    ...(money ? ['currency collate "C" as currency'] : []),
    ...Object.entries(also).map(([name, type]) => `${name}::${type} as ${name}`),
    ...sums,
  ]
  const rows = `
    select ${columns.join(', ')}
    from (${family.facts}) facts
    group by grouping sets (${all.map((one) => `(${[...always, ...one].join(', ')})`).join(', ')})`
  return family.limited ? limited(family, family.limited, rows) : rows
}

/** SQL: the sum. Most measures of most rows are 0: the filter leaves them out once, and not in each of fifty grouping sets. */
const sumOf = (measure: string) =>
  `coalesce(sum(${measure}) filter (where ${measure} <> 0), 0)${isCount(measure) ? '::bigint' : ''}`

/** The most values a day that visitors can choose, of each split and of each value that they cannot choose. */
const MAX_VALUES = 1000
export const OTHER = 'other'

/**
 * SQL: the same rows, with the values of limited dimensions beyond the most frequent ones summed as `other`. Only the splits and days that have
 * more are ranked and summed again, which takes longer than the first sum.
 */
function limited(family: Family, names: readonly string[], rows: string): string {
  const columns = columnsOf(family).join(', ')
  const places = [0, 1].map((n) => {
    const own = family.splits.filter((one) => one[n] !== undefined && names.includes(one[n]!))
    return own.length > 0 ? `split in (${own.map((one) => `'${one.join('_')}'`).join(', ')})` : 'false'
  })
  const [isKey, isSubkey] = places as [string, string]
  const fixed = `case when ${isKey} then '' else key end`
  const cut = (place: string, column: string) =>
    `case when place > ${MAX_VALUES} and ${place} then '${OTHER}' else ${column} end collate "C"`
  const kept = keysOf(family).map((name) =>
    name === 'key' ? `${cut(isKey, 'key')} as key` : name === 'subkey' ? `${cut(isSubkey, 'subkey')} as subkey` : name,
  )
  return `
    with grouped as materialized (select *, ${fixed} as fixed from (${rows}) grouped),
    crowded as materialized (
      select split, day, fixed from (select distinct split, day, fixed, key, subkey from grouped) named
      group by split, day, fixed having count(*) > ${MAX_VALUES})
    select ${columns} from grouped where (split, day, fixed) not in (table crowded)
    union all
    select ${[...kept, ...family.measures.map((measure) => `${sumOf(measure)} as ${measure}`)].join(', ')} from (
      select *, dense_rank() over (partition by split, day, fixed order by weight desc, key, subkey) as place from (
        select *, sum(${family.measures[0]}) over (partition by split, day, key, subkey) as weight
        from grouped where (split, day, fixed) in (table crowded)) weighted) ranked
    group by ${kept.map((_name, n) => n + 1).join(', ')}`
}

const MONEY = new Set([
  'gross',
  'refunded',
  'charged_back',
  'gross_usd',
  'refunded_usd',
  'charged_back_usd',
  'net',
  'net_usd',
  'net_usd_squares',
  'spent',
  'spent_usd',
  'amount',
  'amount_usd',
  'recovered_amount',
  'recovered_amount_usd',
])
const isCount = (measure: string) => !MONEY.has(measure) && !measure.startsWith('mrr')

/** The value of `grouping(…all dimensions)` in the set of `present`: a bit for each absent dimension, the last one lowest. */
function mask({ dimensions }: Family, present: readonly string[]): number {
  return dimensions.reduce((bits, name) => bits * 2 + (present.includes(name) ? 0 : 1), 0)
}
