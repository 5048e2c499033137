// Subscriptions: started, ended and paying over time, MRR, trials, churn by cohort, and the list.

import { addDays } from '../../lib/days.ts'
import { id, minorMoney, percent, status, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Figure, figures, namesOf, seriesTable, total } from '../numbers.ts'
import { chosen, filters, further, section, tableSection, tile, tiles } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { picture, table } from '../table.ts'
import { type Answer, pathOf, projectOf, type View } from '../view.ts'

const STATES = ['created', 'trialing', 'active', 'paused', 'cancelled', 'expired', 'unpaid']
const FILTERS = ['status', 'product_id', 'funnel_id', 'payment_provider', 'email', 'created_after']

export async function subscriptions(view: View): Promise<Page> {
  if (!view.project) return { title: 'Subscriptions', body: noProject(view) }
  const params = { project_id: projectOf(view).id }
  const cursor = view.query.get('cursor')
  const [names, sum, standing, flow, level, state, began, ended, list] = await Promise.all([
    namesOf(view),
    total(view, 'new_subscriptions,began_paying,ended,trials,converted,trial_conversion'),
    total(view, 'mrr,paying'),
    figures(view, 'new_subscriptions,began_paying,ended', { by: view.span.by }),
    figures(view, 'mrr,paying,without_payment,over', { by: view.span.by }),
    view.call('getProjectState', { params }) as Promise<Answer>,
    figures(view, 'began_paying', { by: 'cohort', from: YEARS_AGO, to: view.span.to }),
    figures(view, 'ended', { by: 'month,cohort', from: YEARS_AGO, to: view.span.to }),
    view.call('listProjectSubscriptions', {
      params,
      query: { ...filtersOf(view), limit: 20, ...(cursor && { cursor }) },
    }) as Promise<Answer>,
  ])
  const options = (all: Record<string, string>) => Object.fromEntries(Object.entries(all).slice(0, 200))
  return {
    title: 'Subscriptions',
    hasPeriod: true,
    body: html`
      ${tiles(
        tile('MRR', standing, 'mrr', 'usd'),
        tile('Paying', standing, 'paying', 'number'),
        tile('Made', sum, 'new_subscriptions', 'number'),
        tile('Began to pay', sum, 'began_paying', 'number'),
        tile('Ended', sum, 'ended', 'number', { bad: true }),
        tile('Trials that paid', sum, 'trial_conversion', 'percent'),
      )}
      <div class="halves">
      ${section('Monthly recurring revenue', picture(view, 'mrr', seriesTable(view, `Monthly recurring revenue by ${view.span.by}, in US dollars`, level, [{ label: 'MRR', metric: 'mrr', unit: 'usd' }]), { kind: 'line', unit: 'usd' }), { note: `At the end of each ${view.span.by}.` })}
      ${section('Paying subscriptions', picture(view, 'paying', seriesTable(view, `Paying subscriptions by ${view.span.by}`, level, [{ label: 'Paying', metric: 'paying', unit: 'number' }]), { kind: 'line' }), { note: `At the end of each ${view.span.by}.` })}
      </div>
      ${section(
        'Began and ended',
        picture(
          view,
          'flow',
          seriesTable(view, `Subscriptions by ${view.span.by}`, flow, [
            { label: 'Made', metric: 'new_subscriptions', unit: 'number' },
            { label: 'Began to pay', metric: 'began_paying', unit: 'number' },
            { label: 'Ended', metric: 'ended', unit: 'number' },
          ]),
          { kind: 'bar' },
        ),
      )}
      ${section(
        'By state',
        html`${states(state.subscriptions, view)}
        ${picture(
          view,
          'by-state',
          seriesTable(view, `Subscriptions by state at the end of each ${view.span.by}`, level, [
            { label: 'Paid for', metric: 'paying', unit: 'number' },
            { label: 'Nothing paid yet', metric: 'without_payment', unit: 'number' },
            { label: 'Over', metric: 'over', unit: 'number' },
          ]),
          { kind: 'stacked' },
        )}`,
        { note: `Above, each state now; below, all subscriptions at the end of each ${view.span.by}.` },
      )}
      ${cohorts(view, began, ended)}
      ${section(
        'List',
        html`${filters(view, [
          { name: 'status', label: 'State', options: Object.fromEntries(STATES.map((one) => [one, words(one)])) },
          { name: 'product_id', label: 'Product', options: options(names.products) },
          { name: 'funnel_id', label: 'Funnel', options: options(names.funnels) },
          { name: 'payment_provider', label: 'Provider' },
          { name: 'email', label: 'E-mail' },
          { name: 'created_after', label: 'Made after', type: 'date' },
        ])}
        ${table(view, 'subscriptions', listTable(view, list.data), { hideCaption: true, empty: html`<p>No subscription matches.</p>` })}
        ${further(view, list.pagination.next_cursor)}`,
      )}`,
  }
}

const YEARS_AGO = '2018-01-01'

/** The chosen filters as the operation takes them: a day is the instant it is over. */
function filtersOf(view: View): Record<string, string> {
  const { created_after: day, ...others } = chosen(view, ...FILTERS)
  return {
    ...others,
    ...(day && { created_after: /^\d{4}-\d{2}-\d{2}$/.test(day) ? `${addDays(day, 1)}T00:00:00Z` : day }),
  }
}

function states(counts: Record<string, number>, view: View): Piece {
  return html`<ul class="states">${STATES.map(
    (one) =>
      html`<li><a href="${view.href(view.path, { status: one })}">${status(one)}</a> <strong>${(counts[one] ?? 0).toLocaleString('en-US')}</strong></li>`,
  )}</ul>`
}

const MONTHS = 12

/** A row a month of first payment, a column a month after it: what share of them still pays at its end. */
function cohorts(view: View, began: Figure[], ended: Figure[]): Piece {
  const last = new Date(Date.parse(view.span.to) - 86_400_000).toISOString().slice(0, 7)
  const rows = began
    .filter(({ key, values }) => key !== '' && values.began_paying)
    .slice(-MONTHS)
    .map(({ key, values }) => {
      const size = values.began_paying!
      let left = size
      const cells = Array.from({ length: MONTHS }, (_, n) => {
        const month = monthAfter(key!, n)
        if (month > last) return cell('', null)
        left -= ended.find((one) => one.key === key && one.period === `${month}-01`)?.values.ended ?? 0
        return cell(
          html`<span class="heat h${Math.round((left / size) * 10)}">${percent(left / size)}</span>`,
          left / size,
        )
      })
      return [key, cell(size.toLocaleString('en-US'), size), ...cells]
    })
  const content: Table = {
    caption: 'Still paying, by month of the first payment',
    columns: [
      { label: 'Began' },
      { label: 'Subscriptions', number: true },
      ...Array.from({ length: MONTHS }, (_, n) => ({ label: `${n}`, number: true })),
    ],
    rows,
  }
  return tableSection(view, 'cohorts', content, {
    note: 'Columns are months after the first payment; a cell is the share that still pays at the end of that month.',
  })
}

function monthAfter(month: string, months: number): string {
  const date = new Date(`${month}-01T00:00:00Z`)
  date.setUTCMonth(date.getUTCMonth() + months)
  return date.toISOString().slice(0, 7)
}

function listTable(view: View, data: Answer[]): Table {
  return {
    caption: 'Subscriptions',
    columns: ['Subscription', 'State', 'Product', 'Person', 'Provider', 'Made', 'Paid until']
      .map((label) => ({ label }))
      .concat({ label: 'Price', number: true } as never),
    rows: data.map((one) => [
      cell(id(one.id), one.id),
      status(one.status),
      one.product_name,
      html`<a class="url" href="${view.href(pathOf('people', one.profile_id))}">${one.email ?? one.profile_id}</a>`,
      one.payment_provider ?? '',
      time(one.created_at),
      time(one.period_ends_at),
      html`${minorMoney(one.price, one.currency)} <span class="quiet">/ ${one.billing_interval_count > 1 ? `${one.billing_interval_count} ` : ''}${one.billing_interval}${one.billing_interval_count > 1 ? 's' : ''}</span>`,
    ]),
  }
}
