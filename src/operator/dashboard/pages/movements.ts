// Movements: where the MRR came from and where it went. Churn: who leaves, why, and what is due next.
import { addDays } from '../../../lib/days.ts'
import type { Response } from '../call.ts'
import { callFiltered } from '../filter.ts'
import { country, money, number, percent } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { lackingOf } from '../lacking.ts'
import {
  endOfPeriod,
  type Figure,
  figures,
  type Names,
  namesOf,
  roundMoney,
  seriesTable,
  valueCell,
} from '../numbers.ts'
import { choices, section, tableSection, tile, tiles } from '../parts.ts'
import type { Span } from '../period.ts'
import { type Column, cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import { inCurrency, type View } from '../view.ts'
import { hasChosenPeriod, YEAR } from './acquisition.ts'

type Churn = Response<'getChurn'>['data'][number]
type Due = Exclude<keyof Response<'getRenewalForecast'>['data'][number], 'day'>

const MOVEMENTS: Record<string, string> = {
  new: 'New',
  reactivation: 'Reactivation',
  expansion: 'Expansion',
  contraction: 'Contraction',
  churn: 'Churn',
  paused: 'Paused',
}

/** Without days of the future, whose ends are known but whose beginnings are not. */
const pastOf = ({ span }: View): Span => ({ ...span, to: [span.to, addDays(span.today, 1)].sort()[0]! })

export async function movements(view: View): Promise<Page | string> {
  const title = 'MRR movements'
  if (!view.project) return { title, body: noProject(view) }
  if (!hasChosenPeriod(view)) return view.href(view.path, YEAR)
  const span = pastOf(view)
  const days = { from: span.from, to: span.to }
  const [now, sums, flow, lacks] =
    span.from < span.to
      ? await Promise.all([
          endOfPeriod({ ...view, span }, 'mrr'),
          figures(view, 'mrr_change', { by: 'movement', ...days }),
          figures(view, 'mrr_change', { by: `${span.by},movement`, ...days }),
          lackingOf({ ...view, span }, 'mrr'),
        ])
      : [NOTHING, [], [], undefined]
  const all = Object.fromEntries(sums.map(({ key, values }) => [key ?? '', values.mrr_change ?? 0]))
  const figure: Figure = {
    ...NOTHING,
    currency: view.reporting.currency,
    values: { ...all, change: sumOf(Object.values(all)) },
  }
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
    body: html`<p class="quiet">Where did the monthly recurring revenue come from, and where did it go?</p>
      ${tiles(
        tile('MRR', now, 'mrr', 'usd', { note: 'at the end', ...(lacks && { lacks: lacks.mrr }) }),
        tile('Change', figure, 'change', 'usd', { note: 'sum of all movements' }),
        ...Object.entries(MOVEMENTS).map(([metric, label]) =>
          tile(label, figure, metric, 'usd', { note: NOTES[metric]! }),
        ),
      )}
      ${section('Movements', chart(view, 'movements', content, { kind: 'stacked', unit: 'usd' }), {
        note: 'Of each person: what is paid for after the day against before it. Together they are the change of the MRR.',
      })}
      ${tableSection(view, 'movements-sum', sumTable(all), { title: 'In this period' })}`,
  }
}

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

function sumTable(all: Record<string, number>): Table {
  const rows = Object.entries(MOVEMENTS).map(([key, label]) => [cell(label, key), valueCell('usd', all[key] ?? 0)])
  return {
    caption: 'Movements of the MRR in this period',
    columns: [{ label: 'Movement' }, { label: 'MRR', number: true }],
    rows: [...rows, ['Total', valueCell('usd', sumOf(Object.values(all)))]],
  }
}

const CHURN_BY = {
  product: 'Product',
  funnel: 'Funnel',
  country: 'Country',
  cohort: 'Cohort',
  reason: 'Reason',
} as const
type By = keyof typeof CHURN_BY
const MAX_ROWS = 100

export async function churn(view: View): Promise<Page> {
  const title = 'Churn'
  if (!view.project) return { title, body: noProject(view) }
  const { from, to } = view.span
  const query = { from, to: addDays(to, -1), test: view.test }
  const params = { project_id: view.project.id }
  const by = (Object.keys(CHURN_BY) as By[]).find((name) => name === view.query.get('split')) ?? 'product'
  const [{ result: all, note: unfiltered }, { result: each, note }, forecast, names] = await Promise.all([
    callFiltered(view, 'getChurn', { params, query }),
    callFiltered(view, 'getChurn', { params, query: { ...query, by } }),
    callFiltered(view, 'getRenewalForecast', { params, query: { test: view.test } }),
    namesOf(view),
  ])
  const [sum] = all.data
  const { key: _key, ...values } = sum ?? {}
  const figure: Figure = { period: null, key: null, currency: view.reporting.currency, values }
  return {
    title,
    hasPeriod: true,
    isGrouped: false,
    isCompared: false,
    body: html`<p class="quiet">Who leaves, why, and which trials become customers?</p>
      ${unfiltered && html`<p class="note">${unfiltered}</p>`}
      ${tiles(
        tile('Churn', figure, 'churn_rate', 'percent', { note: 'ended ÷ paying before' }),
        tile('Ended', figure, 'ended', 'number', { note: 'subscriptions' }),
        tile('MRR lost', figure, 'mrr_lost', 'usd', { note: 'of people who left' }),
        tile('MRR churn', figure, 'mrr_churn_rate', 'percent', { note: 'of the MRR before' }),
        tile('Trials', figure, 'trials', 'number', { note: 'began' }),
        tile('Trial to paid', figure, 'trial_conversion', 'percent', { note: 'so far' }),
      )}
      ${tableSection(view, 'churn', churnTable(by, each.data.slice(0, MAX_ROWS), sum, names), {
        title: `By ${CHURN_BY[by].toLowerCase()}`,
        above: choices(view, CHURN_BY, by),
        note: html`${note}${NOTE[by]}`,
        empty: html`<p>No subscriptions in this period.</p>`,
      })}
      ${forecastOf(view, forecast)}`,
  }
}

const NOTE: Partial<Record<By, string>> = {
  cohort: 'The month of the first payment; of a trial, the month in which it began.',
  reason: 'Of all subscriptions that ended; churn is each reason’s part of it.',
}

function churnTable(by: By, rows: Churn[], sum: Churn | undefined, names: Names): Table {
  const isByReason = by === 'reason'
  const labels = [
    'Ended',
    'Churn',
    'MRR lost',
    ...(isByReason ? [] : ['Paying before', 'Trials', 'Paid', 'Trial to paid']),
  ]
  const cells = (row: Churn) => [
    valueCell('number', row.ended),
    valueCell('percent', row.churn_rate),
    valueCell('usd', row.mrr_lost),
    ...(isByReason
      ? []
      : [
          valueCell('number', row.paying),
          valueCell('number', row.trials),
          valueCell('number', row.converted),
          valueCell('percent', row.trial_conversion),
        ]),
  ]
  return {
    caption: `Churn by ${by}`,
    columns: [{ label: CHURN_BY[by] }, ...labels.map((label): Column => ({ label, number: true }))],
    rows: [
      ...rows.map((row) => [cell(nameOf(by, row.key ?? '', names), row.key), ...cells(row)]),
      ...(sum && rows.length > 1 ? [['Total', ...cells(sum)]] : []),
    ],
  }
}

const nameOf = (by: By, key: string, { funnels, products }: Names): string => {
  if (key === '') return 'none'
  if (by === 'country') return country(key)
  if (by === 'reason') return key.replaceAll('_', ' ')
  return (by === 'funnel' ? funnels[key] : by === 'product' ? products[key] : key) ?? key
}

function forecastOf(view: View, { result, note }: { result: Response<'getRenewalForecast'>; note: Piece }): Piece {
  const { renewal_rate, trial_rate, without_usd, data } = result
  const rows = data.filter((one) => one.renewals > 0 || one.trials > 0)
  const total = (name: Due) => roundMoney(rows.reduce((sum, one) => sum + (one[name] ?? 0), 0))
  const cells = (one: (name: Due) => number | null) => [
    valueCell('usd', one('expected')),
    valueCell('number', one('renewals')),
    valueCell('usd', one('renewals_due')),
    valueCell('number', one('trials')),
    valueCell('usd', one('trials_due')),
  ]
  const content: Table = {
    caption: 'Forecast of the next 30 days',
    columns: [
      { label: 'Day' },
      ...['Expected', 'Renewals', 'Due', 'Trials', 'Due after trials'].map(
        (label): Column => ({ label, number: true }),
      ),
    ],
    rows: [
      ...rows.map((one) => [one.day, ...cells((name) => one[name])]),
      ...(rows.length > 0 ? [['Total', ...cells(total)]] : []),
    ],
  }
  return tableSection(view, 'forecast', content, {
    note: html`${note}A forecast, not a figure: expected is what is due times what was paid in the last 90 days:
      ${renewal_rate === null ? 'no renewals yet' : html`${percent(renewal_rate)} of renewals`}, ${trial_rate === null ? 'no trials yet' : html`${percent(trial_rate)} of trials`}.
      ${without_usd > 0 && html`<strong>${number(without_usd)} payments are left out: they have no value ${inCurrency(view)}.</strong>`}
      Expected in all: ${money(total('expected'), view.reporting.currency)}.`,
    empty: html`<p>Nothing is due in the next 30 days.</p>`,
    short: true,
  })
}
