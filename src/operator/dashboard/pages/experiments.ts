// Experiments: which variant won, or that nothing is known yet.
import type { Response } from '../call.ts'
import { callFiltered } from '../filter.ts'
import { number, percent, plural } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { valueCell } from '../numbers.ts'
import { tableSection } from '../parts.ts'
import { type Column, cell, numbers, type Table } from '../sheet.ts'
import { noProject, type Page, PLAIN_PERIOD } from '../shell.ts'
import { daysOf, inCurrency, type View } from '../view.ts'
import { hasChosenPeriod, YEAR } from './acquisition.ts'

/** What is known of people when they come into an experiment. Its variants are compared, so that one alone says nothing. */
const ENTERED_BY = ['funnel', 'source', 'campaign', 'country']

type Experiment = Response<'getExperimentResults'>['data'][number]

export async function experiments(view: View): Promise<Page | string> {
  const title = 'Experiments'
  if (!view.project) return { title, body: noProject(view) }
  if (!hasChosenPeriod(view)) return view.href(view.path, YEAR)
  const query = { ...daysOf(view), test: view.test }
  const input = { params: { project_id: view.project.id }, query }
  const { result, note } = await callFiltered(view, 'getExperimentResults', input, ENTERED_BY)
  const seen = result.data.filter(({ people }) => people > 0)
  return {
    title,
    ...PLAIN_PERIOD,
    question: 'Which variant won? People who came into an experiment in this period, and what they did within 90 days.',
    body: html`${seen.length === 0 && html`<div class="empty"><h2>No experiments in this period</h2><p>Sessions with an <code>experiment_id</code> and a <code>variant</code> are compared here.</p></div>`}
      ${seen.map((one, n) =>
        tableSection(view, `experiment-${n + 1}`, variantTable(view, one), {
          title: one.title ?? one.experiment_id,
          note: html`${note}<strong>${verdictOf(one)}</strong> ${one.enabled ? 'It is running.' : 'It has ended.'}${without(view, one)}`,
        }),
      )}`,
  }
}

/** The answer in a sentence. */
function verdictOf({ variants, control, wrong_split, split_p }: Experiment): Piece {
  if (wrong_split)
    return `No verdict: the variants have too unequal numbers of people (p = ${shownP(split_p)}). Check how visitors are divided and recorded.`
  const compared = variants.flatMap(({ variant, conversion, against_control: against }) =>
    against ? [{ variant, conversion: conversion ?? 0, against }] : [],
  )
  if (control === null || compared.length === 0) return 'Nothing to compare: sessions have no second variant.'
  const best = compared
    .filter(({ against }) => against.verdict === 'better')
    .sort((a, b) => b.conversion - a.conversion)[0]
  if (best) return `“${best.variant}” is better than “${control}”: ${percentOf(best.conversion)} of people paid.`
  if (compared.every(({ against }) => against.verdict === 'worse')) return `“${control}” is better than all others.`
  const [needed] = compared.flatMap(({ against }) => against.people_needed ?? [])
  return needed
    ? html`No verdict yet: a difference as small as this needs ${plural(needed, 'more person', 'more people')} in each variant.`
    : 'No verdict yet.'
}

/** Says how many payments, refunds and chargebacks the revenue leaves out. */
function without(view: View, { variants }: Experiment): Piece {
  const count = variants.reduce((sum, { without_usd }) => sum + without_usd, 0)
  return (
    count > 0 &&
    html` Revenue is without ${plural(count, 'payment, refund or chargeback', 'payments, refunds and chargebacks')} that ${count === 1 ? 'has' : 'have'} no value ${inCurrency(view)}.`
  )
}

const percentOf = (share: number) => `${(share * 100).toFixed(1)}%`
const shownP = (p: number | null) => (p === null ? '' : p < 0.0001 ? '< 0.0001' : p.toFixed(4))
const points = (value: number) => `${value > 0 ? '+' : value < 0 ? '−' : ''}${Math.abs(value * 100).toFixed(1)}`

const COLUMNS: Column[] = [
  { label: 'Variant' },
  ...numbers(
    'People',
    'Paid',
    'Conversion',
    'Points',
    '95% interval',
    'p',
    'Revenue per person',
    'p of revenue',
    'Trial to paid',
    'Refunded',
  ),
  { label: 'Power', csvOnly: true },
]

/** Each variant leads to its sessions. */
function nameOf(view: View, experiment: string, variant: string): Piece {
  if (variant === '') return 'none'
  if (!view.mayOpen('/sessions')) return variant
  return html`<a href="${view.href('/sessions', { experiment, variant })}">${variant}</a>`
}

function variantTable(view: View, { variants, control, experiment_id, title }: Experiment): Table {
  return {
    caption: title ?? experiment_id,
    columns: COLUMNS,
    rows: variants.map((one) => {
      const { conversion, revenue_per_person, power } = one.against_control ?? {}
      return [
        cell(
          html`${nameOf(view, experiment_id, one.variant)}${one.variant !== '' && one.variant === control && html` <span class="quiet">control</span>`}`,
          one.variant,
        ),
        valueCell('number', one.people),
        valueCell('number', one.payers),
        valueCell('percent', one.conversion),
        conversion ? cell(points(conversion.difference), conversion.difference) : cell('', null),
        conversion
          ? cell(
              `${points(conversion.low)} to ${points(conversion.high)}`,
              [conversion.low, conversion.high].map((end) => end.toFixed(4)).join(' '),
            )
          : cell('', null),
        cell(shownP(conversion?.p ?? null), conversion?.p),
        valueCell('usd', one.revenue_per_person),
        cell(shownP(revenue_per_person?.p ?? null), revenue_per_person?.p),
        one.trials > 0 ? cell(percent(one.trials_paid / one.trials), one.trials_paid / one.trials) : cell('', null),
        cell(number(one.refunded), one.refunded),
        power === undefined || power === null ? cell('', null) : cell(percent(power), power),
      ]
    }),
  }
}
