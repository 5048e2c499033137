// Movements: where the MRR came from and where it went.
import { addDays } from '../../../lib/days.ts'
import { howToFill } from '../filter.ts'
import { labelsOf } from '../format.ts'
import { html } from '../html.ts'
import { lackingOf, movementsLacking } from '../lacking.ts'
import { endOfPeriod, type Figure, figures, figureWith, roundMoney, seriesTable, valueCell } from '../numbers.ts'
import { section, tableSection, tile, tiles } from '../parts.ts'
import type { Span } from '../period.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import { inCurrency, type View } from '../view.ts'
import { hasChosenPeriod, YEAR } from './acquisition.ts'
import { movedLink, movedRows } from './moved.ts'

const MOVEMENTS = labelsOf('new', 'reactivation', 'expansion', 'contraction', 'churn', 'paused')

/** Without days of the future, whose ends are known but whose beginnings are not. */
const pastOf = ({ span }: View): Span => ({ ...span, to: [span.to, addDays(span.today, 1)].sort()[0]! })

export async function movements(view: View): Promise<Page | string> {
  const title = 'MRR movements'
  if (!view.project) return { title, body: noProject(view) }
  if (!hasChosenPeriod(view)) return view.href(view.path, YEAR)
  const span = pastOf(view)
  const days = { from: span.from, to: span.to }
  const [now, sums, flow, lacks, without] =
    span.from < span.to
      ? await Promise.all([
          endOfPeriod({ ...view, span }, 'mrr'),
          figures(view, 'mrr_change', { by: 'movement', ...days }),
          figures(view, 'mrr_change', { by: `${span.by},movement`, ...days }),
          lackingOf({ ...view, span }, 'mrr'),
          movementsLacking({ ...view, span }),
        ])
      : [NOTHING, [], [], undefined, undefined]
  if (sums.length === 0 && !now.values.mrr && !lacks?.mrr.shown)
    return { title, question: QUESTION, hasPeriod: true, isCompared: false, body: noMovement(view) }
  const all = Object.fromEntries(sums.map(({ key, values }) => [key ?? '', values.mrr_change ?? 0]))
  const figure = figureWith(view, { ...all, change: sumOf(Object.values(all)) })
  const series = [
    ...Object.entries(MOVEMENTS).map(([metric, label]) => ({ label, metric, unit: 'usd' as const })),
    { label: 'Change', metric: 'change', unit: 'usd' as const, sum: true },
  ]
  const content = seriesTable(view, `Movements of the MRR by ${span.by}, ${inCurrency(view)}`, byPeriod(flow), series, {
    span,
  })
  return {
    title,
    hasPeriod: true,
    isCompared: false,
    question: QUESTION,
    body: html`${tiles(
      tile('MRR', now, 'mrr', 'usd', { note: 'at the end', rows: movedRows(view, 'paying'), lacks: lacks?.mrr }),
      tile('Change', figure, 'change', 'usd', {
        note: 'sum of all movements',
        rows: movedRows(view, 'changed'),
        lacks: without?.(''),
      }),
      ...Object.entries(MOVEMENTS).map(([metric, label]) =>
        tile(label, figure, metric, 'usd', {
          note: NOTES[metric]!,
          href: movedLink(view, metric),
          lacks: without?.(metric),
        }),
      ),
    )}
      ${section('Movements', chart(view, 'movements', content, { kind: 'stacked', unit: 'usd' }), {
        note: 'Of each person: what is paid for after the day against before it. Together they are the change of the MRR.',
      })}
      ${tableSection(view, 'movements-sum', sumTable(view, all), { title: 'In this period' })}`,
  }
}

const QUESTION = 'Where did the monthly recurring revenue come from, and where did it go?'
const noMovement = (view: View) =>
  html`<div class="empty"><h2>No paid subscriptions in this period</h2>${howToFill(view, html`Load subscriptions with <a href="/docs/guides/import">an import</a>`)}</div>`

const NOTHING: Figure = { period: null, key: null, currency: null, values: {} }
const NOTES: Record<string, string> = {
  new: 'first subscription',
  reactivation: 'came back',
  expansion: 'pay more',
  contraction: 'pay less',
  churn: 'left',
  paused: 'paused',
}

const sumOf = (all: number[]) => roundMoney(all.reduce((sum, one) => sum + one, 0))

/** A figure for each period, with each movement as a metric. */
function byPeriod(flow: Figure[]): Figure[] {
  return [...Map.groupBy(flow, ({ period }) => period)].map(([period, own]) => {
    const values = Object.fromEntries(own.map(({ key, values }) => [key!, values.mrr_change ?? 0]))
    return { ...NOTHING, period, values: { ...values, change: sumOf(Object.values(values)) } }
  })
}

function sumTable(view: View, all: Record<string, number>): Table {
  const rows = Object.entries(MOVEMENTS).map(([key, label]) => [
    cell(all[key] ? html`<a href="${movedLink(view, key)}">${label}</a>` : label, key),
    valueCell('usd', all[key] ?? 0),
  ])
  return {
    caption: 'Movements of the MRR in this period',
    columns: [{ label: 'Movement' }, { label: 'MRR', number: true }],
    rows: [...rows, ['Total', valueCell('usd', sumOf(Object.values(all)))]],
  }
}
