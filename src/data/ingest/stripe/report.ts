// The report of an import from Stripe: the sums at Stripe, those stored here, and the differences.
import { formatMinor, minorUnits } from '../../../lib/money.ts'
import { table } from '../report-table.ts'
import type { Status } from './state.ts'
import { type Figure, figuresOf, isDifferent, type Tally } from './tally.ts'

/** Amounts are in major units, as text; null if a figure has none. */
export interface ReportFigure {
  kind: string
  month: string | null
  currency: string | null
  stripe_count: number
  stripe_sum: string | null
  here_count: number
  here_sum: string | null
}

export interface StripeReport {
  /** Objects read at Stripe. */
  read: number
  /** Objects left out, because Tundish itself made the charge. */
  own: number
  /** Charges of these without an order here: a restored backup has lost it, or another installation made them. */
  lost: number
  erased: number
  rejected: number
  /** Texts that were cut or left out. */
  shortened: number
  /** The first hundred objects that were rejected, or lost a text, with the reason. */
  rejects: string[]
  figures: ReportFigure[]
  differences: ReportFigure[]
}

export function reportOf(tally: Tally): StripeReport {
  const { read, own, lost = 0, erased, rejected, shortened = 0, rejects } = tally
  const all = figuresOf(tally)
  const figures = all.map(shown)
  const differences = figures.filter((_, n) => isDifferent(all[n]!))
  return { read, own, lost, erased, rejected, shortened, rejects, figures, differences }
}

function shown({ kind, month, currency, stripe, here }: Figure): ReportFigure {
  // An amount in an unknown currency cannot be imported, so it is not in a sum.
  const hasSum = kind !== 'subscriptions' && minorUnits(currency) !== undefined
  const sum = (minor: string) => (hasSum ? formatMinor(BigInt(minor), currency) : null)
  return {
    kind,
    month: month || null,
    currency: currency || null,
    stripe_count: stripe.count,
    stripe_sum: sum(stripe.minor),
    here_count: here.count,
    here_sum: sum(here.minor),
  }
}

/** The report as text. A dry run has nothing stored to compare with. */
export function describeReport(
  report: StripeReport,
  { status, isDry, title = 'Stripe' }: { status?: Status; isDry?: boolean; title?: string } = {},
): string {
  const { read, own, lost, erased, rejected, shortened, figures, differences } = report
  const wrong = new Set(differences)
  const head = ['', 'month', 'currency', `at ${title}`, '', ...(isDry ? [] : ['here', ''])]
  const rows = figures.map((one) => [
    one.kind,
    one.month ?? '',
    one.currency ?? '',
    String(one.stripe_count),
    one.stripe_sum ?? '',
    ...(isDry ? [] : [String(one.here_count), one.here_sum ?? '', wrong.has(one) ? '<- differs' : '']),
  ])
  const more = [
    own > 0 ? `${own} were charged by Tundish itself and are ${lost > 0 ? 'left out' : 'here already'}.` : '',
    lost > 0
      ? `${lost} of these charges ${lost === 1 ? 'has' : 'have'} no order here: compare with tundish reconcile, then see tundish reconcile lost.`
      : '',
    erased > 0 ? `${erased} lines about erased persons were stored without personal data.` : '',
    rejected > 0 ? `${rejected} could not be imported.` : '',
    shortened > 0 ? `${shortened} texts were too long: names and descriptions were cut, others left out.` : '',
  ].filter((line) => line !== '')
  const end = isDry
    ? 'This was a dry run: nothing was stored.'
    : differences.length === 0
      ? `Everything ${rejected > 0 ? 'else ' : ''}read at ${title} is stored here, with the same sums.`
      : `${differences.length} of ${figures.length} figures differ.`
  const following = status === 'following' ? ['Changes at Stripe are followed.'] : []
  return [table([head, ...rows]), '', `${read} objects read at ${title}.`, ...more, end, ...following].join('\n')
}
