// Webhooks: endpoints with their success rates, deliveries, one event with its attempts.
import type { Answer } from '../call.ts'
import { cut, id, milliseconds, moment, number, percent, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { asking, facts, further, section, textField } from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { table } from '../table.ts'
import { organizationOf, pathOf, projectOf, type View } from '../view.ts'

export async function webhooks(view: View): Promise<Page> {
  if (!view.project) return { title: 'Webhooks', body: noProject(view) }
  const params = { project_id: projectOf(view).id }
  const cursor = view.query.get('cursor')
  const [state, endpoint] = [view.query.get('state'), view.query.get('endpoint')]
  const [statistics, deliveries]: Answer[] = await Promise.all([
    view.call('getWebhookStatistics', { params }),
    view.call('listDeliveries', {
      params,
      query: {
        limit: 20,
        ...(state && { status: state }),
        ...(endpoint && { endpoint_id: endpoint }),
        ...(cursor && { cursor }),
      },
    }),
  ])
  const content: Table = {
    caption: 'Endpoints',
    columns: [
      ...['Endpoint', 'State'].map((label) => ({ label })),
      ...['Attempts', 'Succeeded', 'p50', 'p95', 'Waiting'].map((label) => ({ label, number: true })),
      { label: 'Last error' },
      { label: 'Change' },
    ],
    rows: statistics.data.map((one: Answer) => [
      cell(
        html`<a class="cut" href="${view.href('/webhooks', { endpoint: one.endpoint_id })}" title="${one.url}">${one.url}</a>${id(one.endpoint_id)}`,
        one.url,
      ),
      html`${status(!one.enabled ? 'disabled' : one.failing_since ? 'failing' : 'enabled')}${one.disabled_because && html` <span class="quiet">${WHY[one.disabled_because]}</span>`}${one.failing_since && html`<br><span class="quiet">since ${time(one.failing_since)}</span>`}`,
      cell(number(one.attempts), one.attempts),
      cell(
        percent(one.attempts ? one.succeeded / one.attempts : null),
        one.attempts ? one.succeeded / one.attempts : null,
      ),
      cell(milliseconds(one.p50_ms), one.p50_ms),
      cell(milliseconds(one.p95_ms), one.p95_ms),
      cell(number(one.waiting), one.waiting),
      one.last_error ?? '',
      switches(view, one),
    ]),
  }
  return {
    title: 'Webhooks',
    body: html`
      ${section(
        'Endpoints',
        html`${table(view, 'endpoints', content, { hideCaption: true, empty: html`<h3>No endpoint yet</h3><p>Events of subscriptions, charges and refunds are posted to each endpoint. <a href="/docs/guides/webhooks">Events and signatures</a>.</p>` })}
      ${asking(view, { action: view.href('/webhooks/new'), button: 'Add an endpoint', says: 'Every event of the project is sent to it, signed with the keys of the project.', fields: textField('url', 'Address', { required: true, type: 'url', hint: 'https://example.com/tundish' }) })}`,
        statistics.data.length > 0 ? { note: 'Attempts and times of the last seven days.' } : {},
      )}
      ${section('Deliveries', html`${statesOf(view, state)}${table(view, 'deliveries', deliveryTable(view, deliveries.data), { hideCaption: true, empty: html`<p>No deliveries${state || endpoint ? ' match' : ' yet'}.</p>` })}${further(view, deliveries.pagination.next_cursor)}`, endpoint === null ? {} : { note: onlyTo(view, endpoint, statistics.data) })}`,
  }
}

/** The states of deliveries as choices, of one endpoint if one is chosen. */
function statesOf(view: View, state: string | null): Piece {
  const to = (one: string | null) => view.href(view.path, { endpoint: view.query.get('endpoint'), state: one })
  const link = (one: string | null) =>
    html`<a href="${to(one)}"${one === state ? html` aria-current="true"` : ''}>${one ?? 'all'}</a> `
  return html`<p class="chips">${[null, 'pending', 'failed', 'succeeded'].map(link)}</p>`
}

const onlyTo = (view: View, endpoint: string, all: Answer[]): Piece =>
  html`Only to ${all.find(({ endpoint_id }) => endpoint_id === endpoint)?.url ?? endpoint}. <a href="${view.href(view.path)}">To all endpoints</a>`

const WHY: Record<string, string> = {
  operator: 'by an operator',
  gone: 'it responded 410',
  failing: 'it failed for five days',
}

function switches(view: View, { endpoint_id, enabled }: Answer): Piece {
  if (!view.mayWrite) return ''
  return html`<div class="acts"><form method="post" action="${view.href(`/webhooks/${endpoint_id}/switch`)}" hx-boost="false"><input type="hidden" name="enabled" value="${enabled ? '' : '1'}"><button class="link">${enabled ? 'Switch off' : 'Switch on'}</button></form>
    ${enabled && html`<form method="post" action="${view.href(`/webhooks/${endpoint_id}/test`)}" hx-boost="false"><button class="link">Send a test</button></form>`}
    ${asking(view, { action: view.href(`/webhooks/${endpoint_id}/remove`), button: 'Remove', danger: true, says: 'It receives no more events, and its deliveries are deleted.' })}</div>`
}

function deliveryTable(view: View, data: Answer[]): Table {
  return {
    caption: 'Deliveries',
    columns: [
      ...['Event', 'Kind', 'State', 'Endpoint', 'Created', 'Next attempt'].map((label) => ({ label })),
      { label: 'Attempts', number: true },
    ],
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
  const [found, attempts, deliveries]: Answer[] = await Promise.all([
    view.call('getEvent', { params }),
    view.call('listAttempts', { params, query: { limit: 100 } }),
    view.call('listDeliveries', { params, query: { event_id: params.event_id, limit: 100 } }),
  ])
  const urlOf = (endpoint: string): string =>
    deliveries.data.find(({ endpoint_id }: Answer) => endpoint_id === endpoint)?.url ?? endpoint
  const content: Table = {
    caption: 'Attempts',
    columns: [...['When', 'Endpoint', 'Response', 'Body'].map((label) => ({ label })), { label: 'Took', number: true }],
    rows: attempts.data.map((one: Answer) => [
      moment(one.attempted_at),
      cell(cut(urlOf(one.endpoint_id)), urlOf(one.endpoint_id)),
      one.status ? `HTTP ${one.status}` : one.error,
      one.answer ?? '',
      cell(milliseconds(one.duration_ms), one.duration_ms),
    ]),
  }
  return {
    title: found.type,
    actions: html`<a href="${view.href('/webhooks')}">All webhooks</a>`,
    body: html`
      ${facts({ Event: id(found.id), About: id(found.object_id, aboutOf(view, found)), Sequence: found.sequence, Written: time(found.created_at) })}
      ${asking(view, { action: view.href(`/webhooks/events/${found.id}/send`), button: 'Send again', says: 'The event is sent to every endpoint that receives its kind, under the same webhook-id.' })}
      ${deliveries.data.length > 0 && section('Deliveries', table(view, 'deliveries', deliveryTable(view, deliveries.data), { hideCaption: true }))}
      ${section('Attempts', table(view, 'attempts', content, { hideCaption: true, empty: html`<p>No attempts. They are kept for 30 days.</p>` }))}
      ${section('Payload', html`<pre>${JSON.stringify(found.data, null, 2)}</pre>`)}`,
  }
}

/** The page of the charge or the person that an event is about; its data names them unless they were erased. */
function aboutOf(view: View, { type, object_id, data }: Answer): string | undefined {
  if (data.order_id) return view.href(pathOf('charges', organizationOf(view).id, data.order_id))
  const profile = type.startsWith('profile.') ? object_id : data.profile_id
  return profile && view.href(pathOf('people', profile))
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
