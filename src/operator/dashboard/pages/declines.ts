// Declines: what they cost, and what comes back, by reason and by attempt.
import { urlValue } from '../dimensions.ts'
import { nameOfReason, ordinal } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { lackingOf } from '../lacking.ts'
import {
  type Figure,
  figures,
  inEarlier,
  mostFirst,
  roundMoney,
  type Series,
  seriesTable,
  total,
  valueCell,
} from '../numbers.ts'
import { rowsBehind, section, tableSection, tile, tiles } from '../parts.ts'
import { type Cell, cell, named, numbers, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import type { View } from '../view.ts'

const METRICS = 'first_declines,declined_amount,recovered,recovered_amount,recovery_rate'

const DECLINED: Series = { label: 'Declined first', metric: 'first_declines', unit: 'number' }

export async function declines(view: View): Promise<Page> {
  const title = 'Recovered declines'
  if (!view.project) return { title, body: noProject(view) }
  const [sum, reasons, attempts, flow, lacks] = await Promise.all([
    total(view, METRICS),
    figures(view, METRICS, { by: 'reason' }),
    figures(view, METRICS, { by: 'attempt' }),
    figures(view, METRICS, { by: view.span.by, compare: true }),
    lackingOf(view, 'declined_amount', 'recovered_amount'),
  ])
  const lost = (sum.values.declined_amount ?? 0) - (sum.values.recovered_amount ?? 0)
  const figure: Figure = { ...sum, values: { ...sum.values, lost: roundMoney(lost) } }
  const content = seriesTable(view, `First declines by ${view.span.by}`, flow, [
    DECLINED,
    { label: 'Paid later', metric: 'recovered', unit: 'number' },
    inEarlier(DECLINED),
  ])
  const listed = (paid_attempt: string) =>
    view.may('listDeclinedPayments') ? rowsBehind(view, '/charges', 'declined', { paid_attempt }) : undefined
  return {
    title,
    hasPeriod: true,
    question: 'What do declines cost, and how much of it comes back?',
    body: html`${tiles(
      tile('Declined first', sum, 'first_declines', 'number', { bad: true, rows: listed('any') }),
      tile('Paid later', sum, 'recovered', 'number', { rows: listed('paid') }),
      tile('Recovery rate', sum, 'recovery_rate', 'percent', { rows: listed('paid') }),
      tile('Declined', sum, 'declined_amount', 'usd', { bad: true, lacks: lacks.declined_amount, rows: listed('any') }),
      tile('Recovered', sum, 'recovered_amount', 'usd', { lacks: lacks.recovered_amount, rows: listed('paid') }),
      tile('Not recovered', figure, 'lost', 'usd', {
        note: 'so far',
        lacks: lacks.declined_amount,
        rows: listed('none'),
      }),
    )}
      ${section('First declines', chart(view, 'declines', content, { kind: 'bar' }), {
        note: 'By the day of the first attempt. A payment can still be made within 30 days of it. Faint line: those of the earlier period.',
      })}
      ${tableSection(view, 'by-reason', reasonTable(view, reasons, sum), {
        title: 'By reason of the first decline',
        empty: html`<p>No payment was declined in this period.</p>`,
      })}
      ${tableSection(view, 'by-attempt', attemptTable(view, attempts, sum), {
        title: 'By attempt that was paid',
        empty: html`<p>No payment was declined in this period.</p>`,
      })}`,
  }
}

/** Leads to the declined payments. */
const toPayments = (view: View, name: string, query: Record<string, string>): Piece =>
  view.may('listDeclinedPayments') ? html`<a href="${view.href('/charges', query)}#declined">${name}</a>` : name

const reasonTable = (view: View, found: Figure[], sum: Figure): Table => ({
  caption: 'First declines by reason',
  columns: [{ label: 'Reason' }, ...numbers('Recovery rate', 'Declined first', 'Paid later', 'Declined', 'Recovered')],
  rows: withTotal(
    mostFirst(found, 'first_declines'),
    sum,
    (key) => named(toPayments(view, nameOfReason(key), { reason: urlValue(key), paid_attempt: 'any' }), key),
    [
      ['percent', 'recovery_rate'],
      ['number', 'first_declines'],
      ['number', 'recovered'],
      ['usd', 'declined_amount'],
      ['usd', 'recovered_amount'],
    ],
  ),
})

const attemptTable = (view: View, found: Figure[], sum: Figure): Table => ({
  caption: 'Recovered by attempt',
  columns: [{ label: 'Attempt' }, ...numbers('Payments', 'Recovered', 'Declined')],
  rows: withTotal(
    found,
    sum,
    (key) =>
      cell(
        toPayments(view, key === '' ? 'Not paid' : `${ordinal(Number(key))} attempt`, { paid_attempt: key || 'none' }),
        key || 'Not paid',
      ),
    [
      ['number', 'first_declines'],
      ['usd', 'recovered_amount'],
      ['usd', 'declined_amount'],
    ],
  ),
})

type Cells = ['percent' | 'number' | 'usd', string][]

function withTotal(found: Figure[], sum: Figure, cellOf: (key: string) => Cell, cells: Cells): Table['rows'] {
  const valuesOf = ({ values }: Figure) => cells.map(([unit, metric]) => valueCell(unit, values[metric]))
  const rows = found.map((one) => [cellOf(one.key!), ...valuesOf(one)])
  return found.length > 1 ? [...rows, ['Total', ...valuesOf(sum)]] : rows
}
