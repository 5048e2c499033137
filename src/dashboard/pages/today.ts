// Today: the business beside the period before, and what needs attention right now.

import type { Answer } from '../call.ts'
import { duration, number, plural, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { figures, pivotTable, show, standing, total } from '../numbers.ts'
import { section, tableSection, tile, tiles } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import type { View } from '../view.ts'

const SLOW_LAG_SECONDS = 60

export async function today(view: View): Promise<Page> {
  const { project, organization } = view
  if (!organization || view.projects.length === 0) return { title: 'Today', body: noProject(view) }
  const [sum, level, byCurrency, state] = await Promise.all([
    total(
      view,
      'revenue,net_revenue,sales,new_subscriptions,sessions,conversion_rate,attempts,acceptance_rate,refund_rate,ended',
    ),
    standing(view, 'mrr,paying'),
    figures(view, 'revenue', { by: `${view.span.by},currency` }),
    project && (view.call('getProjectState', { params: { project_id: project.id } }) as Promise<Answer>),
  ])
  const body = html`
    ${tiles(
      tile('Revenue', sum, 'revenue', 'usd'),
      tile('Net revenue', sum, 'net_revenue', 'usd'),
      tile('MRR', level, 'mrr', 'usd'),
      tile('Paying subscriptions', level, 'paying', 'number'),
      tile('New subscriptions', sum, 'new_subscriptions', 'number'),
      tile('Sessions', sum, 'sessions', 'number'),
      tile('Conversion', sum, 'conversion_rate', 'percent'),
      tile('Sales', sum, 'sales', 'number'),
      tile('Acceptance rate', sum, 'acceptance_rate', 'percent'),
      tile('Refund rate', sum, 'refund_rate', 'percent', { bad: true }),
    )}
    ${section(
      `Revenue by ${view.span.by}`,
      chart(
        view,
        'revenue-by-currency',
        pivotTable(view, `Revenue by ${view.span.by} and currency, in US dollars`, byCurrency, {
          metric: 'revenue',
          unit: 'usd',
        }),
        { kind: 'stacked', unit: 'usd' },
      ),
      { note: 'In US dollars, stacked by the currency of the payment.' },
    )}
    ${state ? section('Right now', rightNow(view, state)) : await projectSection(view)}`
  return { title: project ? 'Today' : `Today, all of ${organization.name || organization.id}`, body, hasPeriod: true }
}

/** Of a whole organization: each project beside the others. */
async function projectSection(view: View): Promise<Piece> {
  const each = await figures(view, 'revenue,net_revenue,sales,sessions,conversion_rate,new_subscriptions,paying,mrr', {
    by: 'project',
  })
  const nameOf = (key: string) => view.projects.find(({ id }) => id === key)?.name || key
  const content: Table = {
    caption: 'By project',
    columns: [
      { label: 'Project' },
      ...['Revenue', 'Net', 'Sales', 'Sessions', 'Conversion', 'New subscriptions', 'Paying', 'MRR'].map((label) => ({
        label,
        number: true,
      })),
    ],
    rows: each
      .sort((a, b) => (b.values.revenue ?? 0) - (a.values.revenue ?? 0))
      .map(({ key, values }) => [
        cell(html`<a href="${view.href('/', { project: key! })}">${nameOf(key!)}</a>`, key),
        show('usd', values.revenue ?? 0),
        show('usd', values.net_revenue ?? 0),
        show('number', values.sales ?? 0),
        show('number', values.sessions ?? 0),
        show('percent', values.conversion_rate),
        show('number', values.new_subscriptions ?? 0),
        show('number', values.paying ?? 0),
        show('usd', values.mrr ?? 0),
      ]),
  }
  return tableSection(view, 'projects', content)
}

function rightNow(view: View, state: Answer): Piece {
  const { charges_in_progress, oldest_charge_at, refunds_in_progress, endpoints, endpoints_failing } = state
  const lag = state.horizon_lag_seconds as number
  const failing = endpoints_failing + state.endpoints_disabled
  const line = (isFine: boolean, title: string, href: string, says: Piece) =>
    html`<li class="${isFine ? 'fine' : 'care'}"><a href="${view.href(href)}">${title}</a> <span>${says}</span></li>`
  return html`<ul class="now">
    ${line(
      charges_in_progress === 0,
      'Charges in progress',
      '/charges',
      charges_in_progress === 0
        ? 'None.'
        : html`${number(charges_in_progress)}, the oldest since ${time(oldest_charge_at)}${refunds_in_progress > 0 && html`, and ${plural(refunds_in_progress, 'refund')}`}.`,
    )}
    ${line(
      failing === 0,
      'Webhooks',
      '/webhooks',
      endpoints === 0
        ? 'No endpoint yet.'
        : failing === 0
          ? html`No failures at ${plural(endpoints, 'endpoint')}; ${plural(state.deliveries_waiting, 'delivery', 'deliveries')} waiting.`
          : html`${number(endpoints_failing)} failing, ${number(state.endpoints_disabled)} switched off, ${plural(state.deliveries_waiting, 'delivery', 'deliveries')} waiting.`,
    )}
    ${line(lag < SLOW_LAG_SECONDS, 'Sync', '/sync', html`The horizon is ${duration(Math.max(0, lag))} behind the clock.`)}
    ${line(true, 'Erasures', '/erasures', html`${plural(state.erasures_of_week, 'person', 'people')} in the last seven days, ${number(state.erasures)} in total.`)}
    <li class="doctor" hx-get="${view.href('/doctor')}" hx-trigger="load" hx-swap="outerHTML" hx-select="#findings"><a href="${view.href('/doctor')}">Doctor</a> <span>Its findings are on their own page.</span></li>
  </ul>
  <p class="quiet">${state.figures_as_of ? html`Figures count every change before ${time(state.figures_as_of)}.` : 'No records yet: figures appear some seconds after the first import.'}</p>`
}
