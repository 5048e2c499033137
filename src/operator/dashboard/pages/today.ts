// Today: the main figures compared with the period before, and what needs attention right now.
import { dateOf } from '../../../lib/days.ts'
import { knownFindings } from '../../doctor/kept-findings.ts'
import type { Response } from '../call.ts'
import { duration, number, plural, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { firstLacking, lackingOf } from '../lacking.ts'
import { endOfPeriod, figures, inEarlier, type Series, seriesTable, total } from '../numbers.ts'
import { pageLink, section, tile, tiles, withoutDollars, withoutSandbox } from '../parts.ts'
import { hasProjects, noProject, type Page } from '../shell.ts'
import { chart } from '../table.ts'
import { daysOf, inCurrency, nameOfProject, organizationOf, type View } from '../view.ts'
import { projectTable } from './by-project.ts'
import { checklist, isNew } from './checklist.ts'
import { isHere } from './operations.ts'
import { soFar } from './so-far.ts'

type State = Response<'getProjectState'>

const GROSS: Series = { label: 'Revenue', metric: 'revenue', unit: 'usd' }
const REVENUE = [GROSS, inEarlier(GROSS)]

const SLOW_LAG_SECONDS = 60
// A charge that takes longer needs attention; the doctor has the same limit.
const LONG_IN_PROGRESS_MS = 10 * 60_000

export async function today(view: View): Promise<Page> {
  const { project, organization } = view
  const title = project || !organization ? 'Today' : `Today, all projects of ${organization.name || organization.id}`
  if (!organization || !hasProjects(view)) return { title, body: noProject(view) }
  const state = project && (await view.call('getProjectState', { params: { project_id: project.id } }))
  const now = state && section('Right now', rightNow(view, state))
  if (project && (await isNew(view))) {
    view.filtered.byForm = false
    return { title, body: html`${alarm(view)}${await checklist(view, project.id)}${now}` }
  }
  const [so, sum, level, lines, [whole], lacks] = await Promise.all([
    soFar(view),
    total(
      view,
      'revenue,net_revenue,conversion_rate,acceptance_rate,refund_rate,sales,sessions,new_subscriptions,without_usd',
    ),
    endOfPeriod(view, 'mrr,paying'),
    figures(view, 'revenue', { by: view.span.by, compare: true }),
    figures({ ...view, test: true }, 'sessions,sales,new_subscriptions'),
    lackingOf(view, 'net_revenue', 'refunds', 'revenue', 'mrr'),
  ])
  const isUrgent =
    state &&
    (isLong(view, state) ||
      state.figures_missing.length > 0 ||
      failingOf(state) > 0 ||
      state.horizon_lag_seconds >= SLOW_LAG_SECONDS)
  const to = (path: string) => (view.mayOpen(path) ? view.href(path) : undefined)
  const body = html`
    ${alarm(view)}
    ${isUrgent && now}
    ${so}
    ${tiles(
      tile('Net revenue', sum, 'net_revenue', 'usd', { lacks: lacks.net_revenue, href: to('/revenue') }),
      tile('MRR', level, 'mrr', 'usd', { lacks: lacks.mrr, href: to('/subscriptions') }),
      tile('Paying subscriptions', level, 'paying', 'number', { href: to('/subscriptions') }),
      tile('Conversion', sum, 'conversion_rate', 'percent', { href: to('/funnels') }),
      tile('Acceptance rate', sum, 'acceptance_rate', 'percent', { href: to('/charges') }),
      tile('Refund rate', sum, 'refund_rate', 'percent', {
        bad: true,
        lacks: firstLacking(lacks.refunds, lacks.revenue),
        href: to('/refunds'),
      }),
    )}
    ${withoutDollars(view, sum)}${withoutSandbox(view, sum, whole)}
    ${section(
      `Revenue by ${view.span.by}`,
      chart(view, 'revenue', seriesTable(view, `Revenue by ${view.span.by}, ${inCurrency(view)}`, lines, REVENUE), {
        kind: 'bar',
        unit: 'usd',
      }),
      {
        actions: to('/revenue') && html`<a href="${to('/revenue')!}">Revenue by product, country, funnel</a>`,
        note: `${view.reporting.currency === 'USD' ? 'In US dollars' : `In ${view.reporting.currency}`}. Faint line: the same days of the period before.`,
      },
    )}
    ${state ? !isUrgent && now : await projectSection(view)}`
  const question = 'How is today, how were the last days, and does anything need attention?'
  return { title, question, body, hasPeriod: true }
}

/** What failed in the last examination of the doctor, at the top; a page does not wait for one. */
function alarm(view: View): Piece {
  if (!view.mayOpen('/doctor')) return ''
  const failed = knownFindings(view.app)?.findings.filter((one) => one.level === 'failed' && isHere(view, one)) ?? []
  return failed.map(
    ({ check, message, fix }) =>
      html`<p class="failed" role="alert"><strong>${check}</strong>: ${message} ${fix} <a href="${view.href('/doctor')}">Doctor</a></p>`,
  )
}

const isLong = ({ nowMs }: View, { oldest_charge_at: at }: State) =>
  at !== null && Date.parse(at) < nowMs - LONG_IN_PROGRESS_MS
const failingOf = ({ endpoints_failing, endpoints_disabled }: State): number => endpoints_failing + endpoints_disabled

/** For a whole organization: its projects in one table. */
async function projectSection(view: View): Promise<Piece> {
  const { missing } = await view.call('getOrganizationFigures', {
    params: { organization_id: organizationOf(view).id },
    query: { metric: 'sales', ...daysOf(view) },
  })
  const failed = missing.map(
    ({ project_id, day }) => html`<li>${nameOfProject(view, project_id)}: ${dateOf(day, view.span.today)}</li>`,
  )
  return html`${failed.length > 0 && section('Days that cannot be computed', html`<ul>${failed}</ul>`, { note: 'Changes of these days are not counted.' })}
    ${await projectTable(view)}`
}

function rightNow(view: View, state: State): Piece {
  const { endpoints, endpoints_failing, figures_missing } = state
  const lag = state.horizon_lag_seconds as number
  const failing = failingOf(state)
  const line = (isFine: boolean, title: string, href: string, text: Piece) =>
    html`<li class="${isFine ? 'fine' : 'care'}">${pageLink(view, href, title)} <span>${text}</span></li>`
  return html`<ul class="now">
    ${line(!isLong(view, state), 'Charges in progress', '/charges', inProgress(state))}
    ${line(
      failing === 0,
      'Webhooks',
      '/webhooks',
      endpoints === 0
        ? 'No endpoints yet.'
        : failing === 0
          ? html`No failures at ${plural(endpoints, 'endpoint')}; ${plural(state.deliveries_waiting, 'delivery', 'deliveries')} pending.`
          : html`${number(endpoints_failing)} failing, ${number(state.endpoints_disabled)} disabled, ${plural(state.deliveries_waiting, 'delivery', 'deliveries')} pending.`,
    )}
    ${line(lag < SLOW_LAG_SECONDS, 'Sync', '/sync', lag < 1 ? 'Readers get every change within a second.' : html`Changes of the last ${duration(lag)} are not visible to readers yet.`)}
    ${line(figures_missing.length === 0 && !view.lagging, 'Figures', '/doctor', notComputed(view, figures_missing))}
    ${line(true, 'Erasures', '/erasures', state.erasures_of_week === 0 ? 'None in the last seven days.' : html`${plural(state.erasures_of_week, 'person', 'people')} in the last seven days.`)}
    ${view.mayOpen('/doctor') && html`<li><a href="${view.href('/doctor')}">Doctor</a> <span hx-get="${view.href('/doctor')}" hx-trigger="load" hx-sync="this" hx-select="#findings" hx-swap="innerHTML ignoreTitle:true">Checks of the installation and their findings.</span></li>`}
  </ul>
  ${state.figures_as_of && html`<p class="quiet">Figures include all changes before ${time(state.figures_as_of)}.</p>`}`
}

function notComputed({ lagging, span: { today } }: View, days: string[]): Piece {
  if (days.length === 0) return lagging ? 'Being computed, the newest days first.' : 'All days are computed.'
  const more = days.length > 1 ? html` and ${plural(days.length - 1, 'earlier day')}` : ''
  return html`${dateOf(days[0]!, today)}${more} cannot be computed: changes of them are not counted.`
}

function inProgress({ charges_in_progress: charges, oldest_charge_at, refunds_in_progress }: State): Piece {
  const refunds = refunds_in_progress > 0 && plural(refunds_in_progress, 'refund')
  if (charges === 0) return refunds ? html`No charges, but ${refunds}.` : 'None.'
  // Those that are pending at the provider, as a bank debit is for days, are not among the oldest.
  const since = oldest_charge_at ? html`the oldest since ${time(oldest_charge_at)}` : 'pending at the payment provider'
  return html`${number(charges)}, ${since}${refunds && html`, and ${refunds}`}.`
}
