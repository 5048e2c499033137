// The days, weeks or months of a table, each marked if it is shorter than the others.
import { addDays } from '../lib/days.ts'
import { html } from './html.ts'
import type { Span } from './period.ts'
import { type Cell, type Column, cell, type Table } from './sheet.ts'

interface Period {
  /** Its first day. */
  start: string
  /** Why it cannot be compared with the others: it is not over, or the period of the page has only a part of it. */
  part: 'so far' | 'in part' | 'to come' | undefined
}

export interface PeriodRow {
  period: Period
  cells: Cell[]
}

/** All periods of the span, so that a chart has no gaps. */
export function periodsOf(span: Span): Period[] {
  const all: Period[] = []
  for (let start = startOf(span.from, span.by); start < span.to; start = endOf(start, span.by))
    all.push({ start, part: partOf(start, span) })
  return all
}

function partOf(start: string, { from, to, today, by }: Span): Period['part'] {
  const end = endOf(start, by)
  if (start > today) return 'to come'
  if (end > today) return 'so far'
  return start < from || end > to ? 'in part' : undefined
}

/** Weeks begin on Monday. */
function startOf(day: string, by: Span['by']): string {
  if (by === 'month') return `${day.slice(0, 7)}-01`
  return by === 'day' ? day : addDays(day, -((new Date(day).getUTCDay() + 6) % 7))
}

/** The first day after it. */
function endOf(start: string, by: Span['by']): string {
  return by === 'month' ? startOf(addDays(start, 31), 'month') : addDays(start, by === 'day' ? 1 : 7)
}

const LABELS = { day: 'Day', week: 'Week from', month: 'Month' }

/** A row a period, which names those that are shorter; sheets say it in a column of their own. */
export function periodTable(caption: string, { by }: Span, series: Column[], rows: PeriodRow[]): Table {
  const shorter = shorterOnes(rows, by)
  return {
    caption,
    columns: [
      { label: LABELS[by] },
      ...series.map((column) => ({ ...column, number: true })),
      { label: 'Complete', sheetOnly: true },
    ],
    rows: rows.map(({ period: { start, part }, cells }) => {
      const text = by === 'month' ? start.slice(0, 7) : start
      return [
        cell(part ? html`${text} <span class="part">${part}</span>` : text, text),
        ...cells,
        part ? `no, ${part}` : 'yes',
      ]
    }),
    ...(shorter && { shorter }),
  }
}

function shorterOnes(rows: PeriodRow[], by: Span['by']): string | undefined {
  const count = (part: Period['part']) => rows.filter(({ period }) => period.part === part).length
  const cut =
    count('in part') > 0 && `the ${by}${count('in part') > 1 ? 's' : ''} of which only a part is in the period`
  const running = count('so far') > 0 && (by === 'day' ? 'today, which is not over' : `the ${by} that is not over`)
  const ahead = count('to come') > 0 && 'what is to come'
  return [cut, running, ahead].filter(Boolean).join(', and ') || undefined
}
