// Tables with a row for each day, week or month, in which incomplete periods are marked.
import { addDays, dateOf, monthOf } from '../../lib/days.ts'
import { html } from './html.ts'
import type { Span } from './period.ts'
import { type Cell, type Column, cell, type Table } from './sheet.ts'

interface Period {
  /** The first day. */
  start: string
  /** Why the period is incomplete: it is not over, only partly in the page's period, or in the future. */
  part: 'so far' | 'partial' | 'future' | undefined
}

export interface PeriodRow {
  period: Period
  cells: Cell[]
}

/** All periods of the span, also those without figures, so that a chart has no gaps. */
export function periodsOf(span: Span): Period[] {
  const all: Period[] = []
  for (let start = startOf(span.from, span.by); start < span.to; start = endOf(start, span.by))
    all.push({ start, part: partOf(start, span) })
  return all
}

function partOf(start: string, { from, to, today, by }: Span): Period['part'] {
  const end = endOf(start, by)
  if (start > today) return 'future'
  if (end > today) return 'so far'
  return start < from || end > to ? 'partial' : undefined
}

/** Weeks begin on Monday. */
function startOf(day: string, by: Span['by']): string {
  if (by === 'month') return `${day.slice(0, 7)}-01`
  return by === 'day' ? day : addDays(day, -((new Date(day).getUTCDay() + 6) % 7))
}

/** The first day after the period. */
function endOf(start: string, by: Span['by']): string {
  return by === 'month' ? startOf(addDays(start, 31), 'month') : addDays(start, by === 'day' ? 1 : 7)
}

const LABELS = { day: 'Day', week: 'Week from', month: 'Month' }

/** A table with a row for each period, linked by `linkTo`. Incomplete ones are marked next to the date, and in the CSV in a column "Complete". */
export function periodTable(
  caption: string,
  { by, today }: Span,
  series: Column[],
  rows: PeriodRow[],
  linkTo?: (from: string, to: string) => string,
): Table {
  const incomplete = incompletePeriods(rows, by)
  return {
    caption,
    columns: [
      { label: LABELS[by] },
      ...series.map((column) => ({ ...column, number: true })),
      { label: 'Complete', csvOnly: true },
    ],
    rows: rows.map(({ period: { start, part }, cells }) => {
      const text = by === 'month' ? monthOf(start) : dateOf(start, today)
      return [
        cell(
          html`${linkTo && part !== 'future' ? html`<a href="${linkTo(start, addDays(endOf(start, by), -1))}">${text}</a>` : text}${part && html` <span class="part">${part}</span>`}`,
          by === 'month' ? start.slice(0, 7) : start,
        ),
        ...cells,
        part ? `no, ${part}` : 'yes',
      ]
    }),
    ...(incomplete && { incomplete }),
  }
}

/** Describes the incomplete periods: "the weeks that are only partly in the period, and today, which is not over". */
function incompletePeriods(rows: PeriodRow[], by: Span['by']): string | undefined {
  const count = (part: Period['part']) => rows.filter(({ period }) => period.part === part).length
  const partial = count('partial')
  const cut = partial > 0 && `the ${by}${partial > 1 ? 's that are' : ' that is'} only partly in the period`
  const running = count('so far') > 0 && (by === 'day' ? 'today, which is not over' : `the ${by} that is not over`)
  const ahead = count('future') > 0 && `the ${by}s in the future`
  return [cut, running, ahead].filter(Boolean).join(', and ') || undefined
}
