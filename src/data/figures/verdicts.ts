// The results of experiments: what the people of each variant did, compared with the control.
import type { Db } from '../../lib/pg/db.ts'
import {
  type Amounts,
  compareMeans,
  compareShares,
  type Difference,
  powerOf,
  sizeFor,
  splitProbability,
} from '../../lib/significance.ts'
import { experiments as family } from './experiments.ts'
import type { Filter } from './family.ts'
import { minorUnitsOf, rounded } from './rounding.ts'
import { currencyOf } from './settings.ts'
import { type Source, sourcesOf, sumOver } from './source.ts'

// The interval has 95 %: a difference counts as real below 5 %.
const SIGNIFICANT = 0.05
/** Below this, the sizes of the variants are not those of an equal split. */
const WRONG_SPLIT = 0.001
// A normal distribution describes a share well enough from about ten on each side.
const FEWEST = 10

export interface Variant {
  /** Empty: sessions of the experiment without a variant. */
  variant: string
  people: number
  payers: number
  conversion: number | null
  /** Net revenue within 90 days in the reporting currency, and for each person. */
  revenue: number
  revenue_per_person: number | null
  without_usd: number
  trials: number
  trials_paid: number
  refunded: number
  /** Null for the control. */
  against_control: {
    conversion: Difference | null
    revenue_per_person: Difference | null
    trial_conversion: Difference | null
    refund_rate: Difference | null
    /** The probability of finding the difference of the conversion with so many people. */
    power: number | null
    /** How many more people this variant needs to find that difference with a probability of 80 %; null: there is none. */
    people_needed: number | null
    verdict: 'better' | 'worse' | 'none'
  } | null
}

export interface ExperimentResult {
  experiment_id: string
  title: string | null
  enabled: boolean
  control: string | null
  people: number
  /** The probability of these sizes, or less equal ones, if each variant has the same chance. */
  split_p: number | null
  wrong_split: boolean
  variants: Variant[]
}

interface Period {
  from: string
  to: string
  test: boolean
  control?: string
  filters?: readonly Filter[]
}

/** All experiments of a project, the newest first, with the people who came into them on these days. */
export async function readExperiments(db: Db, projectId: string, period: Period): Promise<ExperimentResult[]> {
  const { control } = period
  const [known, rows, currency] = await Promise.all([
    db.query('select id, title, enabled from experiments where project_id = $1 order by created_at desc, id', [
      projectId,
    ]),
    sumsOf(db, projectId, period),
    currencyOf(db, [projectId]),
  ])
  const own = Map.groupBy(inMajorUnits(rows, minorUnitsOf(currency)), ({ key }) => key!)
  return known.map(({ id, title, enabled }) => ({
    experiment_id: id!,
    title: title!,
    enabled: enabled === 't',
    ...resultOf(own.get(id!) ?? [], control),
  }))
}

/** A row for each experiment and variant, in their order; `key` and `subkey`. */
async function sumsOf(db: Db, projectId: string, { from, to, test, filters = [] }: Period): Promise<Row[]> {
  const dimensions = ['experiment', 'variant']
  const sources = await sourcesOf(db, family, { projects: [projectId], dimensions, filters, days: { from, to } })
  const statement = ({ table, where, columns, add }: Source) => `
    select ${columns.experiment} as key, ${columns.variant} as subkey, ${COUNTS.map((name) => `sum(${name}) as ${name}`).join(', ')},
      sum(net_usd) as net, sum(net_usd_squares) as squares, sum(without_usd) as without_usd
    from ${table} where ${where} and day >= ${add(from)}::date and day < ${add(to)}::date and (not test or ${add(test)})
    group by 1, 2 order by 1, 2`
  return sumOver(db, sources, statement, (name) => name !== 'key' && name !== 'subkey')
}

type Row = Record<string, string | null>

const inMajorUnits = (rows: Row[], units: number): Row[] =>
  rows.map((row) => ({
    ...row,
    net: String(Number(row.net) / units),
    squares: String(Number(row.squares) / units ** 2),
  }))

function resultOf(
  rows: Row[],
  wanted: string | undefined,
): Omit<ExperimentResult, 'experiment_id' | 'title' | 'enabled'> {
  const named = rows.filter(({ subkey }) => subkey !== '')
  const control =
    [wanted, 'control'].find((name) => named.some(({ subkey }) => subkey === name)) ?? named[0]?.subkey ?? null
  const first = named.find(({ subkey }) => subkey === control)
  const split_p = splitProbability(named.map(({ people }) => Number(people)))
  const wrong_split = split_p !== null && split_p < WRONG_SPLIT
  return {
    control,
    people: rows.reduce((sum, { people }) => sum + Number(people), 0),
    split_p,
    wrong_split,
    variants: rows.map((row) => variantOf(row, row === first || row.subkey === '' ? undefined : first, wrong_split)),
  }
}

function variantOf(row: Row, control: Row | undefined, isWrong: boolean): Variant {
  const { people, payers, trials, trials_paid, refunded } = countsOf(row)
  const revenue = Number(row.net)
  return {
    variant: row.subkey!,
    people,
    payers,
    conversion: people > 0 ? payers / people : null,
    revenue,
    revenue_per_person: people > 0 ? rounded(revenue / people) : null,
    without_usd: Number(row.without_usd),
    trials,
    trials_paid,
    refunded,
    against_control: control ? against(control, row, isWrong) : null,
  }
}

function against(control: Row, row: Row, isWrong: boolean): NonNullable<Variant['against_control']> {
  const [a, b] = [countsOf(control), countsOf(row)]
  const conversion = compareShares({ count: a.payers, of: a.people }, { count: b.payers, of: b.people })
  const [before, now] = [a.payers / a.people, b.payers / b.people]
  const needed = sizeFor(before, now)
  const isEnough = [a, b].every((one) => Math.min(one.payers, one.people - one.payers) >= FEWEST)
  const isReal = !isWrong && isEnough && conversion !== null && conversion.p < SIGNIFICANT
  return {
    conversion,
    revenue_per_person: compareMeans(amountsOf(control), amountsOf(row)),
    trial_conversion: compareShares({ count: a.trials_paid, of: a.trials }, { count: b.trials_paid, of: b.trials }),
    refund_rate: compareShares({ count: a.refunded, of: a.payers }, { count: b.refunded, of: b.payers }),
    power: powerOf(before, now, [a.people, b.people]),
    people_needed: needed === null || !Number.isFinite(needed) ? null : Math.max(0, Math.ceil(needed) - b.people),
    verdict: isReal ? (conversion.difference > 0 ? 'better' : 'worse') : 'none',
  }
}

const COUNTS = ['people', 'payers', 'trials', 'trials_paid', 'refunded'] as const
const countsOf = (row: Row) =>
  Object.fromEntries(COUNTS.map((name) => [name, Number(row[name])])) as Record<(typeof COUNTS)[number], number>

const amountsOf = ({ people, net, squares }: Row): Amounts => ({
  count: Number(people),
  sum: Number(net),
  sumOfSquares: Number(squares),
})
