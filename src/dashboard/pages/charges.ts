// Charges: acceptance, reasons of declines, the list, and one charge with its timeline.
import type { Answer } from '../call.ts'
import { bar, id, milliseconds, moment, money, number, percent, status, time, words } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { type Figure, figures, seriesTable, show, total } from '../numbers.ts'
import {
  asking,
  chosen,
  customerLink,
  facts,
  filters,
  further,
  section,
  selectField,
  tableSection,
  textField,
  tile,
  tiles,
} from '../parts.ts'
import { cell, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { chart, table } from '../table.ts'
import { pathOf, type View } from '../view.ts'

const STATES = { processing: 'In progress', succeeded: 'Succeeded', failed: 'Failed', cancelled: 'Cancelled' }

export async function charges(view: View): Promise<Page> {
  if (!view.organization) return { title: 'Charges', body: noProject(view) }
  const { id: organization_id } = view.organization
  const ofProject = view.project && { project_id: view.project.id }
  const cursor = view.query.get('cursor')
  const ask = (query: object) =>
    view.call('listOrders', { params: { organization_id }, query: { ...ofProject, ...query } }) as Promise<Answer>
  const [sum, lines, reasons, types, providers, open, list] = await Promise.all([
    total(view, 'attempts,accepted,declined,acceptance_rate'),
    figures(view, 'attempts,acceptance_rate', { by: view.span.by }),
    figures(view, 'declined', { by: 'reason' }),
    figures(view, 'declined', { by: 'decline' }),
    figures(view, 'attempts,accepted,declined,acceptance_rate', { by: 'provider' }),
    ask({ status: 'processing', limit: 20 }),
    ask({ ...chosen(view, 'status', 'external_id'), limit: 20, ...(cursor && { cursor }) }),
  ])
  const allDeclined = sum.values.declined ?? 0
  const declines = reasons.filter(({ values }) => values.declined)
  declines.sort((a, b) => b.values.declined! - a.values.declined!)
  const reasonTable: Table = {
    caption: 'Why payments were declined',
    columns: [
      { label: 'Reason' },
      { label: '', bar: true },
      { label: 'Declined', number: true },
      { label: 'Share', number: true },
    ],
    rows: declines.map(({ key, values }) => [
      key ? words(key) : 'not given',
      cell(bar(values.declined! / declines[0]!.values.declined!), null),
      show('number', values.declined),
      show('percent', allDeclined ? values.declined! / allDeclined : null),
    ]),
  }
  const providerTable: Table = {
    caption: 'By payment provider',
    columns: [
      { label: 'Provider' },
      ...['Attempts', 'Accepted', 'Declined', 'Acceptance rate'].map((label) => ({ label, number: true })),
    ],
    rows: providers.map(({ key, values }) => [
      key,
      show('number', values.attempts),
      show('number', values.accepted),
      show('number', values.declined),
      show('percent', values.acceptance_rate),
    ]),
  }
  return {
    title: 'Charges',
    hasPeriod: true,
    body: html`
      ${open.data.length > 0 && section('In progress', table(view, 'in-progress', orderTable(view, 'Charges in progress', open.data), { hideCaption: true }), { note: 'Their outcome is not known yet. It is looked up at the provider until it is; nothing is charged twice.' })}
      ${tiles(
        tile('Attempts', sum, 'attempts', 'number'),
        tile('Acceptance rate', sum, 'acceptance_rate', 'percent'),
        tile('Accepted', sum, 'accepted', 'number'),
        tile('Declined', sum, 'declined', 'number', { bad: true }),
      )}
      ${section(
        `Acceptance by ${view.span.by}`,
        chart(
          view,
          'acceptance',
          seriesTable(view, `Attempts and the share that succeeded, by ${view.span.by}`, lines, [
            { label: 'Attempts', metric: 'attempts', unit: 'number' },
            { label: 'Accepted', metric: 'acceptance_rate', unit: 'percent' },
          ]),
          { kind: 'bar', lines: ['Accepted'] },
        ),
        { note: 'All payments of the report, including imported ones.' },
      )}
      <div class="halves">${tableSection(view, 'reasons', reasonTable, { empty: html`<p>Nothing was declined in this period.</p>`, note: typesOf(types) })}
      ${tableSection(view, 'providers', providerTable, { empty: html`<p>No payments in this period.</p>` })}</div>
      ${section(
        'Custom charges',
        html`${filters(view, [
          { name: 'status', label: 'State', options: STATES },
          { name: 'external_id', label: 'Customer' },
        ])}${table(view, 'charges', orderTable(view, 'Custom charges', list.data), { hideCaption: true, empty: html`<h3>No charge yet</h3><p>Custom charges are made by <a href="/docs/guides/charging">the billing API</a>, once they are switched on in <a href="${view.href('/settings')}">Settings</a>.</p>` })}${further(view, list.pagination.next_cursor)}`,
      )}`,
  }
}

/** How many of the declined might succeed if they are tried again. */
function typesOf(found: Figure[]): Piece {
  const all = found.reduce((sum, { values }) => sum + (values.declined ?? 0), 0)
  const of = (key: string) => found.find((one) => one.key === key)?.values.declined ?? 0
  return (
    all > 0 &&
    html`${number(of('soft'))} soft (${percent(of('soft') / all)}), which may succeed later; ${number(of('hard'))} hard (${percent(of('hard') / all)}), which will not.`
  )
}

export function orderTable(view: View, caption: string, data: Answer[]): Table {
  return {
    caption,
    columns: [
      { label: 'Order' },
      { label: 'Amount', number: true },
      ...['State', 'Customer', 'Created', 'Provider'].map((label) => ({ label })),
      { label: 'Refunded', number: true },
    ],
    rows: data.map((one) => [
      cell(id(one.order_id, view.href(pathOf('charges', one.organization_id, one.order_id))), one.order_id),
      cell(money(one.amount, one.currency_code), one.amount),
      status(one.status),
      customerLink(view, one.external_id),
      time(one.created_at),
      one.psp ?? '',
      cell(one.amount_refunded > 0 ? money(one.amount_refunded, one.currency_code) : '', one.amount_refunded),
    ]),
  }
}

export async function charge(view: View): Promise<Page> {
  const { organization_id, order_id } = view.params as { organization_id: string; order_id: string }
  const { order, timeline }: Answer = await view.call('getOrder', { params: { organization_id, order_id } })
  const left = Math.round((order.amount - order.amount_refunded) * 1e4) / 1e4
  const path = pathOf('charges', organization_id, order_id)
  return {
    title: 'Charge',
    actions: html`<a href="${view.href('/charges')}">All charges</a>`,
    body: html`
      <p class="lead">${money(order.amount, order.currency_code)} ${status(order.status)}</p>
      ${facts({
        Order: id(order.order_id),
        Customer: customerLink(view, order.external_id),
        Created: time(order.created_at),
        Settled: time(order.settled_at),
        Refunded: money(order.amount_refunded, order.currency_code),
        Provider: `${order.psp}${order.psp_merchant_id ? `, ${order.psp_merchant_id}` : ''}`,
        'Message for the customer': order.failed_message_for_user || '–',
        'Idempotency key': id(order.idempotency_key),
        'Key at the provider': id(order.provider_key),
        Consumable: order.consumable_id
          ? html`${id(order.consumable_id)} ${order.consumable_active ? 'active' : 'revoked'}`
          : '–',
      })}
      <div class="row">${
        order.status === 'succeeded' && left > 0
          ? asking(view, {
              action: `${path}/refund`,
              button: 'Refund',
              danger: true,
              says: html`This pays money back to ${order.external_id}: at most ${money(left, order.currency_code)}, which is left of the charge. A full refund revokes the consumable.`,
              fields: html`${textField('amount', `Amount in ${order.currency_code}`, { value: String(left), required: true })}
                ${textField('reason', 'Reason', { hint: 'Kept with the refund.' })}
                <p class="field"><label><input type="checkbox" name="soft_refund" value="1"> Soft: recorded only. No money moves, and the customer keeps the consumable</label></p>
                <input type="hidden" name="idempotency_key" value="dashboard-${order.amount_refunded}-${order_id.slice(0, 8)}-${Date.now()}">`,
            })
          : ''
      }
      ${
        order.status === 'processing'
          ? asking(view, {
              action: `${path}/resolve`,
              button: 'Resolve by hand',
              danger: true,
              says: 'Only for a charge whose outcome the provider will never know. It is looked up there once more; if the provider knows it, that outcome is recorded.',
              fields: html`${selectField('as', 'Outcome', { succeeded: 'It succeeded', failed: 'It failed', cancelled: 'It was never charged' })}${textField('because', 'How do you know?', { required: true })}`,
            })
          : ''
      }
      </div>
      ${section('Timeline', timelineOf(view, timeline))}
      ${order.client_metadata && section('Metadata', html`<pre>${JSON.stringify(order.client_metadata, null, 2)}</pre>`)}`,
  }
}

const WHAT: Record<string, string> = {
  claimed: 'Claimed',
  provider_called: 'Provider called',
  settled: 'Settled',
  payment: 'Report row',
  refund_begun: 'Refund claimed',
  refund_settled: 'Refund settled',
  event: 'Event',
  delivery: 'Delivery',
}

function timelineOf(view: View, timeline: Answer[]): Piece {
  return html`<ol class="timeline">${timeline.map(({ at, what, detail }) => {
    const { event_id, type, ...rest } = detail
    const isEvent = what === 'event' && type
    return html`<li class="${what}">${moment(at)} <strong>${WHAT[what] ?? what}</strong>
      ${isEvent && html`<a href="${view.href(pathOf('webhooks', 'events', event_id))}">${type}</a>`}
      <span>${detailOf(isEvent ? rest : detail)}</span></li>`
  })}</ol>`
}

function detailOf(detail: Record<string, Answer>): Piece {
  const { duration_ms, outcome, status: state, amount, currency_code, looks, ...rest } = detail
  const others = Object.entries({ ...rest, ...(looks > 0 && { looks }) }).filter(
    ([, value]) => value !== null && value !== '' && value !== false,
  )
  return html`${(outcome || state) && status(outcome ?? state)} ${amount && money(amount, currency_code ?? 'USD')}
    ${duration_ms !== undefined && html`<span class="quiet">${milliseconds(duration_ms)}</span>`}
    ${others.map(([name, value]) => html`<span class="detail"><span class="quiet">${name.replaceAll('_', ' ')}</span> ${String(value)}</span> `)}`
}

export async function refundCharge(view: View, form: URLSearchParams): Promise<string> {
  const { organization_id, order_id } = view.params as { organization_id: string; order_id: string }
  const soft = form.get('soft_refund') === '1'
  await view.call('refundOrder', {
    params: { organization_id, order_id },
    body: {
      amount: form.get('amount') ?? '',
      idempotency_key: form.get('idempotency_key') ?? '',
      ...(form.get('reason') && { reason: form.get('reason')! }),
      ...(soft && { soft_refund: true }),
    },
  })
  return view.href(pathOf('charges', organization_id, order_id), { done: 'refunded' })
}

export async function resolveCharge(view: View, form: URLSearchParams): Promise<string> {
  const { organization_id, order_id } = view.params as { organization_id: string; order_id: string }
  await view.call('resolveOrder', {
    params: { organization_id, order_id },
    body: { as: form.get('as') ?? '', because: form.get('because') ?? '' },
  })
  return view.href(pathOf('charges', organization_id, order_id), { done: 'resolved' })
}
