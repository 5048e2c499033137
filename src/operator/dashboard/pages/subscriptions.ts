// Subscriptions: created, ended and paying over time, MRR, trials, retention by cohort, and the list.
import { STATUSES } from '../../../core/records/subscription.ts'
import { addDays, FIRST_DAY, readDay } from '../../../lib/days.ts'
import { MAX_DAYS } from '../../admin/figures-query.ts'
import type { Item } from '../call.ts'
import { country, cut, day, id, labelsOf, number, status, time } from '../format.ts'
import { type Html, html, type Piece } from '../html.ts'
import { lackingOf } from '../lacking.ts'
import { listed, pageLinks } from '../lists.ts'
import { endOfPeriod, type Figure, figures, inEarlier, namesOf, type Series, seriesTable, total } from '../numbers.ts'
import { chosenFilters, filters, howToValue, personLink, section, tableSection, tile, tiles } from '../parts.ts'
import { amountColumns, cell, columns, minorCells, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import { inCurrency, pathOf, projectOf, type View } from '../view.ts'
import { behindNote, isBehind, movedLink, movedRows } from './moved.ts'
import { cohorts } from './retention.ts'

type Terms = Pick<
  Item<'listProjectSubscriptions'>,
  'price' | 'currency' | 'billing_interval' | 'billing_interval_count'
>

const MRR: Series = { label: 'MRR', metric: 'mrr', unit: 'usd' }
const PAYING: Series = { label: 'Paying', metric: 'paying', unit: 'number' }
const CREATED: Series = { label: 'Created', metric: 'new_subscriptions', unit: 'number' }
const TRIALS: Series = { label: 'Trials', metric: 'trials', unit: 'number' }

const FILTERS = [
  'status',
  'payment_provider',
  'email',
  'created_after',
  'first_payment',
  'source',
  'campaign',
  'country',
  'variant',
  'product',
  'funnel',
  'moved',
  'due',
  'reason',
]

const QUESTION = 'How many people pay, is it growing, and who stays?'

export async function subscriptions(view: View): Promise<Page> {
  if (!view.project) return { title: 'Subscriptions', body: noProject(view) }
  const params = { project_id: projectOf(view).id }
  const all = { ...view, filters: [] }
  const years = { from: yearsBefore(view.span.to), to: view.span.to }
  const [names, sum, now, { mrr: lacks }, flow, level, state, began, ended, countries, providers, list] =
    await Promise.all([
      namesOf(view),
      total(view, 'new_subscriptions,began_paying,ended,trials,converted,trial_conversion'),
      endOfPeriod(view, 'mrr,paying'),
      lackingOf(view, 'mrr'),
      figures(view, 'new_subscriptions,began_paying,ended,trials,trial_conversion', {
        by: view.span.by,
        compare: true,
      }),
      figures(view, 'mrr,paying,without_payment,over', { by: view.span.by, compare: true }),
      view.call('getProjectState', { params }),
      figures(view, 'began_paying', { by: 'cohort', ...years }),
      figures(view, 'ended', { by: 'month,cohort', ...years }),
      figures(all, 'sales', { by: 'country', ...years }),
      figures(all, 'sales', { by: 'provider', ...years }),
      view.may('listProjectSubscriptions')
        ? listed(view, 'subscriptions', 'listProjectSubscriptions', { params, query: filtersOf(view) })
        : undefined,
    ])
  if (Object.keys(state.subscriptions).length === 0) {
    view.filtered.byForm = false
    return { title: 'Subscriptions', question: QUESTION, body: NO_SUBSCRIPTION }
  }
  // The counts by status are those of the whole project.
  const isWhole = view.filters.length === 0
  return {
    title: 'Subscriptions',
    hasPeriod: true,
    question: QUESTION,
    body: html`${tiles(
      tile('MRR', now, 'mrr', 'usd', { lacks, rows: movedRows(view, 'paying') }),
      tile('Paying', now, 'paying', 'number', { rows: movedRows(view, 'paying') }),
      tile('Created', sum, 'new_subscriptions', 'number', { href: movedLink(view, 'created') }),
      tile('Started paying', sum, 'began_paying', 'number', { href: movedLink(view, 'started') }),
      tile('Ended', sum, 'ended', 'number', { bad: true, href: movedLink(view, 'ended') }),
      tile('Trial conversion', sum, 'trial_conversion', 'percent', {
        note: 'so far',
        rows: movedRows(view, 'converted'),
      }),
    )}
      <p class="quiet">Paying: paid at least once and not ended. Those are the active ones, and those that were cancelled while the period they paid for still runs.${isWhole && html` By status now: ${number(state.subscriptions.active ?? 0)} active, ${number(state.subscriptions.cancelled ?? 0)} cancelled.`}</p>
      ${lacks.currencies.length > 0 && html`<p class="note">The MRR is ${lacks.shown} of subscriptions: they have no value ${inCurrency(view)}. ${howToValue(view.reporting.currency)}</p>`}
      <div class="halves">
      ${section('Monthly recurring revenue', chart(view, 'mrr', seriesTable(view, `Monthly recurring revenue by ${view.span.by}, ${inCurrency(view)}`, level, [MRR, inEarlier(MRR)], { atEnd: true }), { kind: 'line', unit: 'usd' }), { note: `At the end of each ${view.span.by}.` })}
      ${section('Paying subscriptions', chart(view, 'paying', seriesTable(view, `Paying subscriptions by ${view.span.by}`, level, [PAYING, inEarlier(PAYING)], { atEnd: true }), { kind: 'line' }), { note: `At the end of each ${view.span.by}.` })}
      </div>
      ${section('New and ended subscriptions', flowChart(view, flow, level, sum), { note: `Churn: ended subscriptions, divided by those that were paying at the start of the ${view.span.by}, in the last row at the start of all. Faint line: those created in the earlier period.` })}
      ${(sum.values.trials ?? 0) > 0 && section('Trials', trialChart(view, flow, sum), { note: 'By the day on which the trial began. Conversion: the share that was paid for later, so far. Faint line: the trials of the earlier period.' })}
      ${section(
        'By status',
        html`${isWhole && statusCounts(state.subscriptions, view)}
        ${chart(
          view,
          'by-state',
          seriesTable(
            view,
            `Subscriptions by status at the end of each ${view.span.by}`,
            level,
            [
              PAYING,
              { label: 'Not paid yet', metric: 'without_payment', unit: 'number' },
              { label: 'Ended', metric: 'over', unit: 'number' },
            ],
            { atEnd: true },
          ),
          { kind: 'stacked' },
        )}`,
        {
          note: `${isWhole ? 'Numbers: now. Chart: at' : 'At'} the end of each ${view.span.by}.`,
        },
      )}
      ${cohorts(view, began, ended)}
      ${
        list &&
        tableSection(view, 'subscriptions', listTable(view, list.data), {
          title: isBehind(view) ? 'Subscriptions' : 'All subscriptions',
          note: behindNote(view),
          above: filters(view, [
            { name: 'status', label: 'Status', options: labelsOf(...STATUSES) },
            { name: 'product', label: 'Product', options: names.products },
            { name: 'funnel', label: 'Funnel', options: names.funnels },
            { name: 'country', label: 'Country', options: choices(countries, country) },
            { name: 'payment_provider', label: 'Provider', options: choices(providers, (key) => key) },
            { name: 'email', label: 'E-mail' },
            { name: 'created_after', label: 'Created after', type: 'day' },
          ]),
          empty: html`<p>No subscriptions match these filters.</p>`,
          below: pageLinks(view, list),
        })
      }`,
  }
}

/** The values of a dimension as choices of a filter, by their name. */
const choices = (found: Figure[], nameOf: (key: string) => string): Record<string, string> =>
  Object.fromEntries(
    found
      .flatMap(({ key }) => (key ? [[key, nameOf(key)] as const] : []))
      .sort(([, a], [, b]) => a.localeCompare(b, 'en')),
  )

function flowChart(view: View, flow: Figure[], level: Figure[], sum: Figure): Html {
  const flowIn = new Map(flow.map((figure) => [figure.period, figure]))
  const atStartOf = (figure: Figure): number => {
    const { began_paying, ended } = flowIn.get(figure.period)?.values ?? {}
    return (figure.values.paying ?? 0) - (began_paying ?? 0) + (ended ?? 0)
  }
  const churnOf = (ended: number | null | undefined, atStart: number) => (atStart > 0 ? (ended ?? 0) / atStart : null)
  const withChurn = level.map((figure) => {
    const { values = {}, previous = {} } = flowIn.get(figure.period) ?? {}
    return { ...figure, values: { ...values, churn: churnOf(values.ended, atStartOf(figure)) }, previous }
  })
  const ofAll = { churn: level[0] ? churnOf(sum.values.ended, atStartOf(level[0])) : null }
  const content = seriesTable(
    view,
    `Subscriptions by ${view.span.by}`,
    withChurn,
    [
      CREATED,
      { label: 'Started paying', metric: 'began_paying', unit: 'number' },
      { label: 'Ended', metric: 'ended', unit: 'number' },
      { label: 'Churn', metric: 'churn', unit: 'percent' },
      inEarlier(CREATED),
    ],
    { ofAll },
  )
  return chart(view, 'flow', content, { kind: 'bar', lines: ['Churn'] })
}

function trialChart(view: View, flow: Figure[], { values: ofAll }: Figure): Html {
  const content = seriesTable(
    view,
    `Trials by ${view.span.by}`,
    flow,
    [TRIALS, { label: 'Conversion', metric: 'trial_conversion', unit: 'percent' }, inEarlier(TRIALS)],
    { ofAll },
  )
  return chart(view, 'trials', content, { kind: 'bar', lines: ['Conversion'] })
}

const NO_SUBSCRIPTION = html`<div class="empty"><h2>No subscriptions yet</h2><p>Load subscriptions with <a href="/docs/guides/import">an import</a>.</p></div>`

const yearsBefore = (day: string) => [addDays(day, -MAX_DAYS), FIRST_DAY].sort()[1]!

/** The chosen filters as parameters of the operation: `created_after` a day begins with the next one, in the time zone of the page. */
function filtersOf(view: View): Record<string, unknown> {
  const { created_after: day, product, funnel, ...others } = chosenFilters(view, ...FILTERS)
  return {
    ...others,
    ...(product !== undefined && { product_id: product }),
    ...(funnel !== undefined && { funnel_id: funnel }),
    ...(isBehind(view) && { test: view.test }),
    ...(day && { from: addDays(readDay('created_after', day), 1) }),
  }
}

function statusCounts(counts: Record<string, number>, view: View): Piece {
  return html`<ul class="states">${STATUSES.map(
    (one) =>
      html`<li><a href="${view.href(view.path, { status: one })}">${status(one)}</a> <strong>${number(counts[one] ?? 0)}</strong></li>`,
  )}</ul>`
}

function listTable(view: View, data: Item<'listProjectSubscriptions'>[]): Table {
  return {
    caption: 'Subscriptions',
    columns: [
      ...columns('Subscription', 'Status', 'Person', 'Product'),
      ...priceColumns,
      ...columns('Created', 'Paid until', 'Provider'),
    ],
    rows: data.map((one) => [
      cell(id(one.id, view.href(pathOf('subscriptions', one.id))), one.id),
      status(one.status),
      personLink(view, one.profile_id, one.email),
      cut(one.product_name),
      ...priceCells(one),
      time(one.created_at),
      day(one.period_ends_at, view.reporting.timeZone),
      one.payment_provider ?? '',
    ]),
  }
}

export const priceColumns = [...amountColumns('Price'), { label: 'Interval', csvOnly: true }]

/** The price of a subscription and how often it is paid. */
export function priceCells(one: Terms): Table['rows'][0] {
  const { billing_interval_count: count, billing_interval: unit } = one
  const interval = count > 1 ? `${count} ${unit}s` : unit
  return minorCells(one, html` <span class="quiet per">/ ${interval}</span>`).concat(interval)
}
