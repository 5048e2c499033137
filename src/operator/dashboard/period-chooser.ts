// The form and links that choose the period of a page, how its figures are grouped, and what they are compared with.
import { addDays, dateOf } from '../../lib/days.ts'
import { time } from './format.ts'
import { type Html, html, type Piece } from './html.ts'
import { comparison, presets } from './period.ts'
import { keptIfRefused } from './refused-form.ts'
import { dayInput } from './typed-days.ts'
import { allChoices, hiddenParameters, type View } from './view.ts'

const GROUPINGS = { day: 'Days', week: 'Weeks', month: 'Months' }
const COMPARISONS = { previous: 'previous period', month: 'a month earlier', year: 'a year earlier' }

/** What the chooser of a page has in addition to the period; both by default. */
export interface PeriodChoices {
  /** Whether the page has figures by day, week or month. */
  isGrouped?: boolean
  /** Whether the page compares figures with those of an earlier period. */
  isCompared?: boolean
}

/** Another period is grouped automatically, because the grouping of the last one may have too many or too few points. */
export function periodChooser(view: View, { isGrouped = true, isCompared = true }: PeriodChoices, filter: Piece): Html {
  const { span, test } = view
  const own = allChoices(view)
  const last = addDays(span.to, -1)
  const compare = span.compare === 'year' ? 'year' : null
  const link = (changes: Record<string, string | null>, label: string, isChosen: boolean) =>
    html`<li><a href="${view.href(view.path, { ...own, ...changes })}"${isChosen && html` aria-current="true"`}>${label}</a></li>`
  const form = html`<form action="${view.path}" method="get">${hiddenParameters(view, ['from', 'to', 'period', 'by', ...(isCompared ? ['compare'] : [])], own)}
      <label>From ${dayInput('from', span.from, true)}</label>
      <label>To ${dayInput('to', last)}</label>
      ${isCompared && html`<label>Compare with <select name="compare">${Object.entries(COMPARISONS).map(([name, label]) => html`<option value="${name}"${span.compare === name && html` selected`}>${label}</option>`)}</select></label>`}
      <button>Show</button>
    </form>`
  return html`<div class="period">
    <nav aria-label="Period"><ul>${Object.entries(presets).map(([name, label]) =>
      link({ period: name, from: null, to: null, by: null, compare }, label, name === span.name),
    )}</ul></nav>
    ${isGrouped && html`<nav aria-label="Group by"><ul>${Object.entries(GROUPINGS).map(([by, label]) => link({ by }, label, by === span.by))}</ul></nav>`}
    <details><summary>${dateOf(span.from, span.today)}${last > span.from && ` – ${dateOf(last, span.today)}`}${test && ', with sandbox'}</summary><div class="dates">
      ${keptIfRefused(view, view.path, form)}
      <p class="quiet">Days in ${view.reporting.timeZone}${isCompared && `; ${comparison(span)}`}.</p>
      ${!test && html`<p><a href="${view.href(view.path, { ...own, test: '1' })}">Include sandbox data</a></p>`}</div></details>${filter}
  </div>`
}

/** Says that figures are being computed, while they lag behind what is stored. */
export function computing({ reporting, lagging }: View): Piece {
  if (!lagging) return ''
  const { asOf } = lagging
  const counted = asOf
    ? html`Changes after ${time(asOf)} are still being counted`
    : 'Figures are being computed for the first time'
  const what = reporting.isChanging
    ? 'The time zone or the currency was changed: figures are being computed again'
    : counted
  return html`<p class="note" role="status">${what}, the newest days first. What is on this page is not complete yet.</p>`
}
