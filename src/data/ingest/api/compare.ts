// Compares what was read of a service with what is stored here: numbers and sums by kind, month and currency, and the differences.
import { paidAt } from '../../../core/records/payment-time.ts'
import { formatMinor, minorUnits } from '../../../lib/money.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { table } from '../report-table.ts'
import { type ItemKind, NAMES, type Noted } from './convert.ts'
import type { ApiImportName, ApiImportState, Notes } from './state.ts'

/** Amounts are in major units, as text; null if a figure has none. */
export interface ApiFigure {
  kind: string
  month: string | null
  currency: string | null
  source_count: number
  source_sum: string | null
  /** null in a dry run, which stores nothing. */
  here_count: number | null
  here_sum: string | null
}

export interface ApiReport {
  read: number
  repeated: number
  rejected: number
  shortened: number
  erased: number
  rejects: string[]
  figures: ApiFigure[]
  /** Sentences that name each difference. */
  differences: string[]
  /** What the service does not show. */
  missing: string[]
}

const PLAIN = ['funnel', 'experiment', 'product', 'session'] as const

const join = (name: string, key = 't.id = i.id') =>
  `from api_import_ids i join ${name} t on t.project_id = i.project_id and ${key} where i.project_id = $1 and i.source = $2`
const month = (time: string) => `to_char(${time} at time zone 'UTC', 'YYYY-MM')`

// A row whose id is none is rejected, and counted as read.
const UUID_FORM = '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'

/** The stored records whose ids were read. A merged profile is stored as an alias of the other. */
const HERE = [
  ...PLAIN.map(
    (kind) =>
      `select '${kind}' as kind, '' as label, count(*) as n, 0 as sum ${join(NAMES[kind])} and i.kind = '${kind}'`,
  ),
  `select 'profile', '', count(*), 0 from api_import_ids i where i.project_id = $1 and i.source = $2 and i.kind = 'profile'
     and (exists (select from profiles t where t.project_id = $1 and t.id = i.id)
       or exists (select from profile_aliases a where a.project_id = $1 and a.alias = i.id))`,
  `select 'replies', '', 0, count(*) ${join('replies', 't.session_id = i.id')} and i.kind = 'replies'`,
  `select 'subscription', '|' || t.currency, count(*), 0 ${join('subscriptions')} and i.kind = 'subscription' group by 2`,
  `select 'transaction', ${month('t.created_at')} || '|' || t.currency, count(*), sum(t.price) ${join('transactions')}
     and i.kind = 'transaction' group by 2`,
  `select 'payment', ${month(paidAt('t'))} || '|' || t.currency_code || '|' || t.psp_transaction_type || ' ' || t.status,
     count(*), sum(t.amount)
   from api_import_ids i join report_transactions t on t.organization_id = $3 and t.trx_id = case when i.id ~ '${UUID_FORM}' then i.id::uuid end
   where i.project_id = $1 and i.source = $2 and i.kind = 'payment' group by 2`,
].join(' union all ')

/** The service has lost what pass $3, which read everything again, did not bring; of payments, if $4, what was not read again. */
const LOST = `kind <> 'replies' and case kind when 'payment' then pass = 0 and $4 else pass < $3 end`

const FIRST_LOST = `
  select kind, id, count(*) over () as n from api_import_ids
  where project_id = $1 and source = $2 and ${LOST} order by kind, id limit 5`

const SOURCE = `
  select kind, label, case kind when 'replies' then 0 else count(*) end as n, sum(amount) as sum
  from api_import_ids where project_id = $1 and source = $2 and not (${LOST}) group by kind, label`

interface Sums {
  n: number
  sum: string
}

export async function compareApi(query: Query, state: ApiImportState): Promise<ApiReport> {
  const { projectId, source, organizationId }: ApiImportName = state
  const { anew } = state.notes
  // Within a pass what was read may be still to be read again.
  const isRead = anew !== undefined && state.place.step === ''
  const given = [projectId, source, isRead ? anew : 0, isRead && state.options.billing !== null]
  const [there, here] = [
    sumsOf(await query(SOURCE, given)),
    sumsOf(await query(HERE, [projectId, source, organizationId])),
  ]
  // Following that ends within a pass has read records since the service was asked how many it has.
  const report = reportOf(state.notes, there, here, state.place.step !== '')
  const lost = await query(FIRST_LOST, given)
  if (lost.length > 0) report.differences.push(lostSentence(lost))
  return report
}

function lostSentence(lost: Awaited<ReturnType<Query>>): string {
  const { n } = lost[0]!
  const more = Number(n) > lost.length ? ', …' : ''
  return `${n} records stay here that the service has lost (${lost.map(({ kind, id }) => `${kind} ${id}`).join(', ')}${more}).`
}

/** The report of a dry run. */
export function dryReport(notes: Notes, noted: Noted[]): ApiReport {
  const there = new Map<string, Sums>()
  for (const { kind, label, amount } of noted) {
    const key = `${kind}|${label}`
    const before = there.get(key) ?? { n: 0, sum: '0' }
    there.set(key, { n: before.n + (kind === 'replies' ? 0 : 1), sum: added(before.sum, amount) })
  }
  return reportOf(notes, there, undefined)
}

const SCALE = 9
const units = (text: string) => {
  const [whole = '0', fraction = ''] = text.replace('-', '').split('.')
  const value = BigInt(whole + fraction.slice(0, SCALE).padEnd(SCALE, '0'))
  return text.startsWith('-') ? -value : value
}

/** The sum of two decimal texts. */
function added(one: string, other: string): string {
  const sum = String(units(one) + units(other)).padStart(SCALE + 1, '0')
  return `${sum.slice(0, -SCALE)}.${sum.slice(-SCALE)}`
}

const sumsOf = (rows: Awaited<ReturnType<Query>>): Map<string, Sums> =>
  new Map(rows.map(({ kind, label, n, sum }) => [`${kind}|${label}`, { n: Number(n), sum: sum ?? '0' }]))

function reportOf(
  notes: Notes,
  there: Map<string, Sums>,
  here: Map<string, Sums> | undefined,
  isWithinPass = false,
): ApiReport {
  const differences: string[] = []
  const keys = [...new Set([...there.keys(), ...(here?.keys() ?? [])])].sort()
  const figures = keys.map((key) => {
    const figure = shown(key, there.get(key), here && (here.get(key) ?? { n: 0, sum: '0' }))
    if (here && (figure.source_count !== figure.here_count || figure.source_sum !== figure.here_sum))
      differences.push(
        `${nameOf(figure)}: ${counted(figure.source_count, figure.source_sum)} at the service, ${counted(figure.here_count ?? 0, figure.here_sum)} here.`,
      )
    return figure
  })
  for (const [kind, total] of Object.entries(notes.totals)) {
    const read = [...there].filter(([key]) => key.startsWith(`${kind}|`)).reduce((sum, [, { n }]) => sum + n, 0)
    if (read !== total && !(isWithinPass && read > total))
      differences.push(`${NAMES[kind as ItemKind]}: the service says that it has ${total}, and ${read} were read.`)
  }
  if (notes.repeated > 0)
    differences.push(
      `${notes.repeated} records came more than once (${notes.repeats.slice(0, 5).join(', ')} …): each is stored once, as it came last.`,
    )
  const { read, repeated, rejected, shortened, erased, rejects, unnamed = 0 } = notes
  const missing = unnamed > 0 ? [...notes.missing, unnamedSentence(unnamed)] : notes.missing
  return { read, repeated, rejected, shortened, erased, rejects, figures, differences, missing }
}

const unnamedSentence = (count: number) =>
  `${count} payments name neither a session nor a subscription: each has its own customer. Name theirs with --customers.`

function shown(key: string, there: Sums = { n: 0, sum: '0' }, here: Sums | undefined): ApiFigure {
  const [kind, month = '', currency = '', what] = key.split('|') as [ItemKind, string?, string?, string?]
  const count = ({ n, sum }: Sums) => (kind === 'replies' ? Number(sum) : n)
  const sum = ({ sum }: Sums) => (kind === 'transaction' || kind === 'payment' ? amountOf(kind, currency, sum) : null)
  return {
    kind: what === undefined ? NAMES[kind] : `${NAMES[kind]}: ${what}`,
    month: month || null,
    currency: currency || null,
    source_count: count(there),
    source_sum: sum(there),
    here_count: here ? count(here) : null,
    here_sum: here ? sum(here) : null,
  }
}

/** In major units; an amount in an unknown currency cannot be imported, and is shown as it came. */
function amountOf(kind: ItemKind, currency: string, sum: string): string {
  const places = minorUnits(currency)
  if (places === undefined) return sum
  if (kind === 'transaction') return formatMinor(units(sum) / 10n ** BigInt(SCALE), currency)
  return formatMinor(units(sum) / 10n ** BigInt(SCALE - places), currency)
}

const nameOf = ({ kind, month, currency }: ApiFigure) => [kind, month, currency].filter((one) => one !== null).join(' ')
const counted = (count: number, sum: string | null) => (sum === null ? String(count) : `${count} of ${sum}`)

/** The report as text. */
export function describeApi(report: ApiReport, status: ApiImportState['status'] | 'dry_run'): string {
  const isDry = status === 'dry_run'
  const head = ['', 'month', 'currency', 'at the service', '', ...(isDry ? [] : ['here', ''])]
  const rows = report.figures.map((one) => [
    one.kind,
    one.month ?? '',
    one.currency ?? '',
    String(one.source_count),
    one.source_sum ?? '',
    ...(isDry ? [] : [String(one.here_count), one.here_sum ?? '']),
  ])
  const { read, erased, rejected, shortened, differences, missing } = report
  const end = isDry
    ? 'This was a dry run: nothing was stored.'
    : differences.length === 0
      ? 'Everything that was read is stored here, with the same sums.'
      : `${differences.length} differences are named above.`
  const lines = [
    `${read} objects read.`,
    erased > 0 ? `${erased} lines about erased persons were stored without personal data.` : '',
    rejected > 0 ? `${rejected} could not be imported, or not whole.` : '',
    shortened > 0 ? `${shortened} texts were too long: names and descriptions were cut, others left out.` : '',
    ...missing,
    ...differences,
    end,
  ]
  return [table([head, ...rows]), '', ...lines.filter((line) => line !== '')].join('\n')
}
