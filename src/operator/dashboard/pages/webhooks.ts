// Webhooks: endpoints with their success rates, deliveries, and one event with its attempts.
import type { Item, Response } from '../call.ts'
import { cut, id, milliseconds, moment, number, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { valueCell } from '../numbers.ts'
import { actionForm, facts, hiddenField, linkButton, section, tableSection, textField } from '../parts.ts'
import { cell, columns, numbers, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { organizationOf, pathOf, projectOf, type View } from '../view.ts'

type Endpoint = Response<'getWebhookStatistics'>['data'][number]

export async function webhooks(view: View): Promise<Page> {
  if (!view.project) return { title: 'Webhooks', body: noProject(view) }
  const params = { project_id: projectOf(view).id }
  const [state, endpoint] = [view.query.get('state'), view.query.get('endpoint')]
  const filter = { ...(state && { status: state }), ...(endpoint && { endpoint_id: endpoint }) }
  const [statistics, deliveries] = await Promise.all([
    view.call('getWebhookStatistics', { params }),
    listed(view, 'deliveries', 'listDeliveries', { params, query: filter }),
  ])
  const content: Table = {
    caption: 'Endpoints',
    columns: [
      ...columns('Endpoint', 'Status'),
      ...numbers('Attempts', 'Success rate', 'p50', 'p95', 'Pending'),
      { label: 'Last error' },
      { label: 'Actions', actions: ['/webhooks/one/switch'] },
    ],
    rows: statistics.data.map((one) => [
      cell(
        html`<a class="cut" href="${view.href('/webhooks', { endpoint: one.endpoint_id })}" title="${one.url}">${one.url}</a>${id(one.endpoint_id)}`,
        one.url,
      ),
      html`${status(!one.enabled ? 'disabled' : one.failing_since ? 'failing' : 'enabled')}${one.disabled_because && html` <span class="quiet">${DISABLED_BECAUSE[one.disabled_because]}</span>`}${one.failing_since && html`<br><span class="quiet">since ${time(one.failing_since)}</span>`}`,
      cell(number(one.attempts), one.attempts),
      valueCell('percent', one.attempts ? one.succeeded / one.attempts : null),
      cell(milliseconds(one.p50_ms), one.p50_ms),
      cell(milliseconds(one.p95_ms), one.p95_ms),
      cell(number(one.waiting), one.waiting),
      one.last_error ?? '',
      switches(view, one),
    ]),
  }
  return {
    title: 'Webhooks',
    question: 'Do events arrive, and how fast?',
    body: html`
      ${tableSection(view, 'endpoints', content, {
        empty: html`<h3>No endpoints yet</h3><p>Events about subscriptions, charges and refunds are sent to each endpoint. <a href="/docs/guides/webhooks">Events and signatures</a>.</p>`,
        note: statistics.data.length > 0 && 'Attempts and response times are those of the last seven days.',
        below: actionForm(view, {
          action: view.href('/webhooks/new'),
          button: 'Add an endpoint',
          explanation: 'Every event of this project is sent to the endpoint, signed with the project’s keys.',
          fields: textField('url', 'URL', { required: true, type: 'url', hint: 'https://example.com/tundish' }),
        }),
      })}
      ${tableSection(view, 'deliveries', deliveryTable(view, deliveries.data), {
        note: endpoint !== null && onlyTo(view, endpoint, statistics.data),
        above: statusLinks(view, state),
        empty: html`<p>No deliveries${state || endpoint ? ' match' : ' yet'}.</p>`,
        below: pageLinks(view, deliveries),
      })}`,
  }
}

/** Links that filter the deliveries by status. */
function statusLinks(view: View, state: string | null): Piece {
  const to = (one: string | null) => view.href(view.path, { endpoint: view.query.get('endpoint'), state: one })
  const link = (one: string | null) =>
    html`<a href="${to(one)}"${one === state ? html` aria-current="true"` : ''}>${one ?? 'all'}</a> `
  return html`<p class="chips">${[null, 'pending', 'failed', 'succeeded'].map(link)}</p>`
}

const onlyTo = (view: View, endpoint: string, all: Endpoint[]): Piece =>
  html`Only deliveries to ${all.find(({ endpoint_id }) => endpoint_id === endpoint)?.url ?? endpoint}. <a href="${view.href(view.path)}">Show all</a>`

const DISABLED_BECAUSE: Record<string, string> = {
  operator: 'by an operator',
  gone: 'after a response with status 410',
  failing: 'after failing for five days',
}

function switches(view: View, { endpoint_id, enabled }: Endpoint): Piece {
  if (!view.maySend(`/webhooks/${endpoint_id}/switch`)) return ''
  return html`<div class="acts">${linkButton(view.href(`/webhooks/${endpoint_id}/switch`), enabled ? 'Disable' : 'Enable', hiddenField('enabled', enabled ? '' : '1'))}
    ${enabled && linkButton(view.href(`/webhooks/${endpoint_id}/test`), 'Send a test event')}
    ${actionForm(view, { action: view.href(`/webhooks/${endpoint_id}/remove`), button: 'Remove', danger: true, explanation: 'The endpoint receives no more events, and its deliveries are deleted.' })}</div>`
}

function deliveryTable(view: View, data: Item<'listDeliveries'>[]): Table {
  return {
    caption: 'Deliveries',
    columns: [...columns('Event', 'Type', 'Status', 'Endpoint', 'Created', 'Next attempt'), ...numbers('Attempts')],
    rows: data.map((one) => [
      cell(id(one.event_id, view.href(`/webhooks/events/${one.event_id}`)), one.event_id),
      one.event_type,
      status(one.status),
      cell(cut(one.url), one.url),
      time(one.created_at),
      time(one.next_attempt_at),
      cell(number(one.attempts), one.attempts),
    ]),
  }
}

export async function event(view: View): Promise<Page> {
  const params = { project_id: projectOf(view).id, event_id: view.params.event_id! }
  const [found, attempts, deliveries] = await Promise.all([
    view.call('getEvent', { params }),
    view.call('listAttempts', { params, query: { limit: 100 } }),
    view.call('listDeliveries', { params, query: { event_id: params.event_id, limit: 100 } }),
  ])
  const content: Table = {
    caption: 'Attempts',
    columns: [...columns('Time', 'Endpoint', 'Response', 'Response body'), { label: 'Duration', number: true }],
    rows: attempts.data.map((one) => [
      moment(one.attempted_at),
      cell(cut(one.url), one.url),
      one.status ? `HTTP ${one.status}` : one.error,
      one.answer ?? '',
      cell(milliseconds(one.duration_ms), one.duration_ms),
    ]),
  }
  return {
    title: found.type,
    actions: html`<a href="${view.href('/webhooks')}">All webhooks</a>`,
    body: html`
      ${facts({ Event: id(found.id), Object: id(found.object_id, objectPage(view, found)), Sequence: found.sequence, Created: time(found.created_at) })}
      ${actionForm(view, { action: view.href(`/webhooks/events/${found.id}/send`), button: 'Send again', explanation: 'Sends the event again to every endpoint that receives its type, with the same webhook-id.' })}
      ${deliveries.data.length > 0 && tableSection(view, 'deliveries', deliveryTable(view, deliveries.data))}
      ${tableSection(view, 'attempts', content, { empty: html`<p>No attempts. Attempts are kept for 30 days.</p>` })}
      ${section('Request body', html`<pre>${JSON.stringify(envelopeOf(params.project_id, found), null, 2)}</pre>`, { note: 'As it is sent to endpoints.' })}`,
  }
}

/** The body of the request, with the data in it. */
const envelopeOf = (project_id: string, { id, type, created_at, sequence, data }: Response<'getEvent'>) => ({
  id,
  type,
  created_at,
  project_id,
  sequence,
  data,
})

/** The page of the charge or person of an event, which its data names unless it was erased. */
function objectPage(view: View, { type, object_id, data }: Response<'getEvent'>): string | undefined {
  if (typeof data.order_id === 'string') return view.href(pathOf('charges', organizationOf(view).id, data.order_id))
  const profile = type.startsWith('profile.') ? object_id : data.profile_id
  if (typeof profile !== 'string') return undefined
  return view.href(pathOf('people', profile))
}

export async function addEndpoint(view: View, form: URLSearchParams): Promise<string> {
  await view.call('createWebhook', { params: { project_id: projectOf(view).id }, body: { url: form.get('url') ?? '' } })
  return view.href('/webhooks', { done: 'added' })
}

export async function switchEndpoint(view: View, form: URLSearchParams): Promise<string> {
  const params = { project_id: projectOf(view).id, webhook_id: view.params.webhook_id! }
  await view.call('setWebhook', { params, body: { enabled: form.get('enabled') === '1' } })
  return view.href('/webhooks', { done: 'switched' })
}

export async function testEndpoint(view: View): Promise<string> {
  await view.call('testWebhook', { params: { project_id: projectOf(view).id, webhook_id: view.params.webhook_id! } })
  return view.href('/webhooks', { done: 'tested' })
}

export async function sendEvent(view: View): Promise<string> {
  const { event_id } = view.params as { event_id: string }
  await view.call('sendEventAgain', { params: { project_id: projectOf(view).id, event_id } })
  return view.href(`/webhooks/events/${event_id}`, { done: 'sent' })
}

export async function removeEndpoint(view: View): Promise<string> {
  await view.call('removeWebhook', { params: { project_id: projectOf(view).id, webhook_id: view.params.webhook_id! } })
  return view.href('/webhooks', { done: 'removed' })
}
