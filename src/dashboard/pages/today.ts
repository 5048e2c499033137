// Today: how the business does against the period before, and what needs a hand right now.
import { duration, number, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { figures, pivotTable, total } from '../numbers.ts'
import { section, tile, tiles } from '../parts.ts'
import { noProject, type Page } from '../shell.ts'
import { picture } from '../table.ts'
import { type Answer, projectOf, type View } from '../view.ts'

const SLOW_LAG_SECONDS = 60

export async function today(view: View): Promise<Page> {
  if (!view.project) return { title: 'Today', body: noProject(view) }
  const project = projectOf(view)
  const [sum, standing, byCurrency, state] = await Promise.all([
    total(
      view,
      'revenue,net_revenue,sales,new_subscriptions,sessions,conversion_rate,attempts,acceptance_rate,refund_rate,ended',
    ),
    total(view, 'mrr,paying'),
    figures(view, 'revenue', { by: `${view.span.by},currency` }),
    view.call('getProjectState', { params: { project_id: project.id } }) as Promise<Answer>,
  ])
  const body = html`
    ${tiles(
      tile('Revenue', sum, 'revenue', 'usd'),
      tile('Sales', sum, 'sales', 'number'),
      tile('New subscriptions', sum, 'new_subscriptions', 'number'),
      tile('Sessions', sum, 'sessions', 'number'),
      tile('Sessions that paid', sum, 'conversion_rate', 'percent'),
      tile('Monthly recurring revenue', standing, 'mrr', 'usd'),
      tile('Paying subscriptions', standing, 'paying', 'number'),
      tile('Accepted payments', sum, 'acceptance_rate', 'percent'),
      tile('Refunds to revenue', sum, 'refund_rate', 'percent', { bad: true }),
    )}
    ${section(
      `Revenue by ${view.span.by}`,
      picture(
        view,
        'revenue-by-currency',
        pivotTable(view, `Revenue by ${view.span.by} and currency, in US dollars`, byCurrency, {
          metric: 'revenue',
          unit: 'usd',
        }),
        { kind: 'stacked', unit: 'usd' },
      ),
      { note: 'Stacked by the currency it was paid in, in US dollars.' },
    )}
    ${section('Right now', rightNow(view, state))}`
  return { title: 'Today', body, hasPeriod: true }
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
        : html`${number(charges_in_progress)}, the oldest since ${time(oldest_charge_at)}${refunds_in_progress > 0 && html`, and ${number(refunds_in_progress)} refunds`}.`,
    )}
    ${line(
      failing === 0,
      'Webhooks',
      '/webhooks',
      endpoints === 0
        ? 'No endpoint is told of events yet.'
        : failing === 0
          ? html`All ${number(endpoints)} endpoints take their deliveries; ${number(state.deliveries_waiting)} are on their way.`
          : html`${number(endpoints_failing)} failing, ${number(state.endpoints_disabled)} switched off, ${number(state.deliveries_waiting)} deliveries waiting.`,
    )}
    ${line(lag < SLOW_LAG_SECONDS, 'Sync', '/sync', html`The horizon is ${duration(Math.max(0, lag))} behind.`)}
    ${line(true, 'Erasures', '/erasures', html`${number(state.erasures_of_week)} in the last seven days, ${number(state.erasures)} in all.`)}
    <li class="doctor" hx-get="${view.href('/doctor')}" hx-trigger="load" hx-swap="outerHTML" hx-select="#findings"><a href="${view.href('/doctor')}">Doctor</a> <span>What it found is on its page.</span></li>
  </ul>
  <p class="quiet">Figures count every change before ${time(state.figures_as_of)}.</p>`
}
