// Finance: what a month brought in, by merchant account and currency; how it agrees with the dashboard; its rows; closing it.
import { monthOf } from '../../../lib/days.ts'
import { ApiError } from '../../../lib/errors.ts'
import { readPeriod } from '../../../payments/billing/finance/period.ts'
import type { Exact, Response } from '../call.ts'
import { money, percent, plural, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Listed, pageLinks } from '../lists.ts'
import { actionForm, hiddenField, howToValue, tableSection, tiles } from '../parts.ts'
import { noProject, type Page } from '../shell.ts'
import { allChoices, hiddenParameters, organizationOf, type View } from '../view.ts'
import { accountTable, monthBefore, presentMonth, rowTable } from './finance-tables.ts'
import { tieOut } from './finance-tie-out.ts'

type Report = Exact<Response<'getFinanceReport'>>
type Rows = Exact<Response<'listFinanceRows'>>
type Row = Rows['rows'][number]

const SHOWN_ROWS = 20
const MAX_CSV_ROWS = 100_000
const MONTHS = 36

export async function finance(view: View): Promise<Page> {
  const title = 'Finance'
  if (!view.organization) return { title, body: noProject(view) }
  const newest = await presentMonth(view)
  const month = view.query.get('month') ?? monthBefore(newest, 1)
  const days = readPeriod({ month })
  const params = { organization_id: view.organization.id }
  const query = { month, test: view.test }
  const [report, tied, rows, months] = await Promise.all([
    view.call.exactly('getFinanceReport', { params, query }),
    view.test ? undefined : view.call.exactly('getTieOut', { params, query: { month } }).catch(refusal),
    rowsOf(view, params, query),
    view.call('listFinanceMonths', { params, query: { limit: 1 } }),
  ])
  const closed = report.closed[0]
  const movements = await rowTable(view, rows.data, report.reporting_currency)
  return {
    title,
    days,
    actions: closed && html`<span class="badge good">closed</span>`,
    question: html`What did ${view.organization.name || view.organization.id} take in, by account, and does it agree with the dashboard?`,
    body: html`${monthChooser(view, month, newest)}
      ${sumTiles(report)}
      ${withoutRate(report)}
      ${tableSection(view, 'accounts', accountTable(view, report), {
        empty: html`<p>No ${view.test ? 'test ' : ''}money moved in this month.</p>`,
        note: html`Days in ${report.time_zone}. Sums in ${report.reporting_currency}: the currency of closed months, else the one that all projects report in, else the US dollar. Refunds and chargebacks are negative. Fees have the currency of the balance that they were taken from.`,
      })}
      ${typeof tied === 'string' ? html`<p class="note">No tie-out with the dashboard: ${tied}</p>` : tied && tieOut(view, tied, month)}
      ${tableSection(
        view,
        'rows',
        { ...movements, of: Object.values(accountOf(view)) },
        {
          title: 'Movements',
          note: report.time_zone !== 'UTC' && `Times are in UTC, days and months in ${report.time_zone}.`,
          above: ofAccount(view),
          empty: html`<p>No movements.</p>`,
          below: pageLinks(view, rows),
        },
      )}
      ${closed ? html`<p class="note">Closed on ${time(closed.closed_at)}: this month no longer changes. Later changes are corrections in the first open month.</p>` : month < newest && closing(view, month, months.data[0]?.month)}`,
  }
}

/** The sentence of a refusal: the rest of the page can be shown. */
function refusal(error: unknown): string {
  if (error instanceof ApiError && error.code === 'operation_refused') return error.message
  throw error
}

function monthChooser(view: View, month: string, newest: string): Piece {
  const months = Array.from({ length: MONTHS }, (_, n) => monthBefore(newest, n))
  if (!months.includes(month)) months.push(month)
  const link = (to: string, text: string) =>
    to <= newest && html`<a href="${view.href(view.path, { ...allChoices(view), month: to })}">${text}</a>`
  const test = view.test
    ? html`<a href="${view.href(view.path, { ...allChoices(view), test: null })}">Show real money</a>`
    : html`<a href="${view.href(view.path, { ...allChoices(view), test: '1' })}">Show test money</a>`
  return html`${view.test && html`<p class="note">This is test money of sandbox accounts. It is never added to real money.</p>`}
    <form class="filters" method="get" action="${view.path}">${hiddenParameters(view, ['month'])}
      <label>Month <select name="month" data-submit>${months.map((one) => html`<option value="${one}"${one === month && html` selected`}>${monthOf(one)}</option>`)}</select></label>
      <button>Show</button> ${link(monthBefore(month, 1), 'Month before')} ${link(monthBefore(month, -1), 'Month after')} ${test}
    </form>`
}

function sumTiles({ reporting, reporting_currency, fees, currencies, totals }: Report): Piece {
  const sum = (value: number | string) => money(value, reporting_currency)
  const payments = currencies.reduce((total, one) => total + one.payments, 0)
  const unknownFees = totals.reduce((sum, { fees_unknown }) => sum + fees_unknown, 0)
  const one = (label: string, value: Piece, note: Piece) =>
    html`<div class="tile"><dt>${label}</dt><dd><strong>${value}</strong> <span class="quiet">${note}</span></dd></div>`
  const gross = Number(reporting.gross)
  const share = (part: number | string) => gross > 0 && html`${percent(-Number(part) / gross)} of gross`
  return tiles(
    one(
      'Net',
      sum(reporting.net),
      Number(reporting.corrected) !== 0 && html`with ${sum(reporting.corrected)} of corrections`,
    ),
    one('Gross', sum(reporting.gross), plural(payments, 'payment')),
    one('Refunds', sum(reporting.refunded), share(reporting.refunded)),
    one('Chargebacks', sum(reporting.charged_back), share(reporting.charged_back)),
    one(
      'Fees',
      fees.length === 0 ? '–' : fees.map(({ fee, fee_currency }, n) => [n > 0 && html`<br>`, money(fee, fee_currency)]),
      fees.length === 0 ? 'none is known' : unknownFees > 0 && `not known of ${plural(unknownFees, 'movement')}`,
    ),
  )
}

/** Says how much the tiles lack. */
function withoutRate({ currencies, reporting_currency }: Report): Piece {
  const missing = currencies.filter(({ without_rate }) => without_rate > 0)
  if (missing.length === 0) return ''
  const each = missing.map(
    ({ without_rate, net_without_rate, currency_code }, n) =>
      html`${n > 0 && ', '}${money(net_without_rate, currency_code)} (${plural(without_rate, 'movement')})`,
  )
  return html`<p class="note">Without a value in ${reporting_currency}, and so not in the figures above: ${each}. ${howToValue(reporting_currency)}</p>`
}

/** The merchant account whose movements are asked for. */
const accountOf = ({ query }: View) => {
  const [psp, psp_merchant_id] = [query.get('psp'), query.get('psp_merchant_id')]
  return { ...(psp && { psp }), ...(psp && psp_merchant_id && { psp_merchant_id }) }
}

/** Names the merchant account whose movements are shown, with a link to all. */
function ofAccount(view: View): Piece {
  const { psp, psp_merchant_id } = accountOf(view)
  const all = view.href(view.path, { ...allChoices(view), psp: null, psp_merchant_id: null })
  return (
    psp &&
    html`<p class="note">Only movements of ${words(psp)} ${psp_merchant_id ?? 'without an account'}. <a href="${all}#rows">Show all</a></p>`
  )
}

/** The shown page of the rows; all of them if they are downloaded as CSV. */
async function rowsOf(view: View, params: Record<string, string>, query: object): Promise<Listed<Row>> {
  const call = (more: object) =>
    view.call.exactly('listFinanceRows', { params, query: { ...query, ...accountOf(view), ...more } })
  if (view.query.get('csv') !== 'rows') {
    const after = view.query.get('cursor')
    const { rows, next_after } = await call({ limit: SHOWN_ROWS, ...(after && { after }) })
    return { data: rows, next: next_after ?? undefined, cursor: 'cursor' }
  }
  const data: Row[] = []
  let next: string | null = null
  do {
    const page: Rows = await call({ limit: 1000, ...(next && { after: next }) })
    data.push(...page.rows)
    next = page.next_after
  } while (next && data.length < MAX_CSV_ROWS)
  if (next) view.cuts.set('rows', data.length)
  return { data, next: undefined, cursor: 'cursor' }
}

/** The button that closes a month, or why it cannot be closed; `last` is the last month that is closed. */
function closing(view: View, month: string, last: string | undefined): Piece {
  const action = view.href('/finance/close')
  if (!view.maySend(action)) return ''
  const next = last === undefined ? month : monthBefore(last, -1)
  if (month < next) return html`<p class="note">Later months are closed already: this one stays as it is.</p>`
  if (month > next) {
    const first = view.href(view.path, { ...allChoices(view), month: next })
    return html`<p class="note">Months are closed one after the other: <a href="${first}">${monthOf(next)}</a> is the next.</p>`
  }
  return actionForm(view, {
    action,
    button: `Close ${monthOf(month)}`,
    explanation: `Its rows and sums then never change again. Late imports, fees and failed refunds become corrections in the next month. This cannot be undone.`,
    fields: hiddenField('month', month),
    danger: true,
  })
}

/** Closes the month of the form. */
export async function closeMonth(view: View, form: URLSearchParams): Promise<string> {
  const month = form.get('month') ?? ''
  await view.call('closeFinanceMonth', { params: { organization_id: organizationOf(view).id }, body: { month } })
  return view.href('/finance', { month, done: 'closed' })
}
