// Churn: who leaves, why, and what is due next.
import { dateOf, monthOf } from '../../../lib/days.ts'
import type { Response } from '../call.ts'
import { urlValue } from '../dimensions.ts'
import { callFiltered, nameOfValue } from '../filter.ts'
import { labelsOf, money, percent, plural, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { movementsLacking } from '../lacking.ts'
import { figureWith, type Names, namesOf, roundMoney, valueCell } from '../numbers.ts'
import { choices, tableSection, tile, tiles } from '../parts.ts'
import { type Cell, cell, named, numbers, type Table } from '../sheet.ts'
import { noProject, type Page, PLAIN_PERIOD } from '../shell.ts'
import { daysOf, inCurrency, type View } from '../view.ts'
import { movedLink, movedRows } from './moved.ts'

type Churn = Response<'getChurn'>['data'][number]
type Due = Exclude<keyof Response<'getRenewalForecast'>['data'][number], 'day'>

const CHURN_BY = labelsOf('product', 'funnel', 'country', 'cohort', 'reason')
type By = keyof typeof CHURN_BY

export async function churn(view: View): Promise<Page> {
  const title = 'Churn'
  if (!view.project) return { title, body: noProject(view) }
  const query = { ...daysOf(view), test: view.test }
  const params = { project_id: view.project.id }
  const by = (Object.keys(CHURN_BY) as By[]).find((name) => name === view.query.get('split')) ?? 'product'
  const [{ result: all, note: unfiltered }, { result: each, note }, forecast, names, without] = await Promise.all([
    callFiltered(view, 'getChurn', { params, query }),
    callFiltered(view, 'getChurn', { params, query: { ...query, by } }),
    callFiltered(view, 'getRenewalForecast', { params, query: { test: view.test } }),
    namesOf(view),
    movementsLacking(view),
  ])
  const [sum] = all.data
  const { key: _key, ...values } = sum ?? {}
  const figure = figureWith(view, values)
  return {
    title,
    ...PLAIN_PERIOD,
    question: 'Who leaves, why, and which trials become customers?',
    body: html`${unfiltered && html`<p class="note">${unfiltered}</p>`}
      ${tiles(
        tile('Churn', figure, 'churn_rate', 'percent', {
          note: 'ended ÷ paying before',
          rows: movedRows(view, 'ended'),
        }),
        tile('Ended', figure, 'ended', 'number', { note: 'subscriptions', href: movedLink(view, 'ended') }),
        tile('MRR lost', figure, 'mrr_lost', 'usd', {
          note: 'of people who left',
          lacks: without('churn'),
          href: movedLink(view, 'churn'),
        }),
        tile('MRR churn', figure, 'mrr_churn_rate', 'percent', {
          note: 'of the MRR before',
          lacks: without('churn'),
          rows: movedRows(view, 'churn'),
        }),
        tile('Trials', figure, 'trials', 'number', { note: 'began', rows: movedRows(view, 'trial') }),
        tile('Trial to paid', figure, 'trial_conversion', 'percent', {
          note: 'so far',
          rows: movedRows(view, 'converted'),
        }),
      )}
      ${tableSection(view, 'churn', churnTable(view, by, each.data, sum, names), {
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

/** The filter of the subscriptions that a line is about. Those of a reason have ended. */
const LEADS_TO: Partial<Record<By, string>> = {
  product: 'product',
  funnel: 'funnel',
  country: 'country',
  cohort: 'first_payment',
}

function nameCell(view: View, by: By, key: string, names: Names): Cell {
  const [name, filter] = [nameOf(by, key, names), LEADS_TO[by]]
  const value = urlValue(key)
  const shownAs = (shown: Piece) => (by === 'cohort' ? cell(shown, key) : named(shown, key))
  if (!view.mayOpen('/subscriptions')) return shownAs(name)
  if (by === 'reason' && key !== 'other')
    return shownAs(html`<a href="${movedLink(view, 'ended', { reason: value })}">${name}</a>`)
  if (filter === undefined || (filter === 'first_payment' && key === '')) return shownAs(name)
  return shownAs(html`<a href="${view.href('/subscriptions', { [filter]: value })}#subscriptions">${name}</a>`)
}

function churnTable(view: View, by: By, rows: Churn[], sum: Churn | undefined, names: Names): Table {
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
    columns: [{ label: CHURN_BY[by] }, ...numbers(...labels)],
    rows: [
      ...rows.map((row) => [nameCell(view, by, row.key ?? '', names), ...cells(row)]),
      ...(sum && rows.length > 1 ? [['Total', ...cells(sum)]] : []),
    ],
  }
}

const nameOf = (by: By, key: string, names: Names): string => {
  if (by === 'cohort' && key !== '') return monthOf(key)
  return by === 'reason' && key !== '' ? words(key) : nameOfValue(by, key, names)
}

const dueLink = (view: View, day: string): Piece => {
  const name = dateOf(day, view.span.today)
  return view.mayOpen('/subscriptions')
    ? html`<a href="${view.href('/subscriptions', { due: day })}#subscriptions">${name}</a>`
    : name
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
    columns: [{ label: 'Day' }, ...numbers('Expected', 'Renewals', 'Due', 'Trials', 'Due after trials')],
    rows: [
      ...rows.map((one) => [cell(dueLink(view, one.day), one.day), ...cells((name) => one[name])]),
      ...(rows.length > 0 ? [['Total', ...cells(total)]] : []),
    ],
  }
  return tableSection(view, 'forecast', content, {
    note: html`${note}A forecast, not a figure: expected is what is due times what was paid in the last 90 days:
      ${renewal_rate === null ? 'no renewals yet' : html`${percent(renewal_rate)} of renewals`}, ${trial_rate === null ? 'no trials yet' : html`${percent(trial_rate)} of trials`}.
      ${without_usd > 0 && html`<strong>${plural(without_usd, 'payment is left out: it has', 'payments are left out: they have')} no value ${inCurrency(view)}.</strong>`}
      Expected in all: ${money(total('expected'), view.reporting.currency)}.`,
    empty: html`<p>Nothing is due in the next 30 days.</p>`,
    short: true,
  })
}
