// One charge with its timeline, and the forms that refund or resolve it.
import type { Response } from '../call.ts'
import { id, milliseconds, moment, money, status, time } from '../format.ts'
import { html, type Piece } from '../html.ts'
import { actionForm, customerLink, facts, hiddenField, section, selectField, textField } from '../parts.ts'
import type { Page } from '../shell.ts'
import { pathOf, type View } from '../view.ts'

type Order = Response<'getOrder'>['order']
type Entry = Response<'getOrder'>['timeline'][number]

export async function charge(view: View): Promise<Page> {
  const { organization_id, order_id } = view.params as { organization_id: string; order_id: string }
  const { order, timeline } = await view.call('getOrder', { params: { organization_id, order_id } })
  const form = formOf(view, order)
  return {
    title: 'Charge',
    actions: html`<a href="${view.href('/charges')}">All charges</a>`,
    body: html`
      <p class="lead">${money(order.amount, order.currency_code)} ${status(order.status)} ${refundStatus(order)}</p>
      ${facts({
        Order: id(order.order_id),
        Customer: customerLink(view, order.external_id),
        Created: time(order.created_at),
        Settled: time(order.settled_at),
        ...(order.pending_since && { 'Pending at the provider since': time(order.pending_since) }),
        Refunded: money(order.amount_refunded, order.currency_code),
        Provider: `${order.psp}${order.psp_merchant_id ? `, ${order.psp_merchant_id}` : ''}`,
        'Message for the customer': order.failed_message_for_user || '–',
        'Idempotency key': id(order.idempotency_key),
        'Idempotency key at the provider': id(order.provider_key),
        Consumable: order.consumable_id
          ? html`${id(order.consumable_id)} ${status(order.consumable_active ? 'active' : 'revoked')}`
          : '–',
      })}
      ${form && html`<div class="row">${form}</div>`}
      ${section('Timeline', timelineOf(view, timeline, order.currency_code))}
      ${order.client_metadata && section('Metadata', html`<pre>${JSON.stringify(order.client_metadata, null, 2)}</pre>`)}`,
  }
}

/** How much of the charge was refunded, in words. */
function refundStatus({ amount, amount_refunded }: Order): Piece {
  if (amount_refunded === 0) return ''
  return status(amount_refunded < amount ? 'partially refunded' : 'refunded')
}

/** The form that refunds a successful charge, or resolves one in progress. */
function formOf(view: View, order: Order): Piece {
  const left = Math.round((order.amount - order.amount_refunded) * 1e4) / 1e4
  if (order.status === 'processing') return resolveForm(view, order)
  const most = Math.min(left, limitOf(view, order))
  return order.status === 'succeeded' && most > 0 && refundForm(view, order, most)
}

/** What the operator may still refund of the charge. */
function limitOf({ session: { access } }: View, { currency_code, amount_refunded }: Order): number {
  if (access.refundLimits === null) return Number.POSITIVE_INFINITY
  return Math.round((Number(access.refundLimits[currency_code] ?? 0) - amount_refunded) * 1e4) / 1e4
}

const refundForm = (view: View, order: Order, left: number) =>
  actionForm(view, {
    action: addressOf(view, order, 'refund'),
    button: 'Refund',
    danger: true,
    explanation: html`Returns money to ${order.external_id}. You may still refund up to ${money(left, order.currency_code)} of this charge. A full refund revokes the consumable.`,
    fields: html`${textField('amount', `Amount in ${order.currency_code}`, { value: String(left), required: true })}
      ${textField('reason', 'Reason', { hint: 'Stored with the refund.' })}
      <p class="field"><label><input type="checkbox" name="soft_refund" value="1"> Soft refund: only recorded. No money is returned, and the customer keeps the consumable</label></p>
      ${hiddenField('idempotency_key', `dashboard-${order.amount_refunded}-${order.order_id.slice(0, 8)}-${Date.now()}`)}`,
  })

const resolveForm = (view: View, order: Order) =>
  actionForm(view, {
    action: addressOf(view, order, 'resolve'),
    button: 'Resolve manually',
    danger: true,
    explanation:
      'Only for a charge whose outcome the provider will never report. The provider is asked once more. If it knows the outcome, that is recorded instead of yours.',
    fields: html`${selectField('as', 'Outcome', { succeeded: 'It succeeded', failed: 'It failed', cancelled: 'It was never charged' })}${textField('because', 'How do you know?', { required: true })}`,
  })

const addressOf = (view: View, { organization_id, order_id }: Order, action: string) =>
  view.href(pathOf('charges', organization_id, order_id, action))

const STEPS: Record<string, string> = {
  claimed: 'Charge started',
  provider_called: 'Provider called',
  settled: 'Outcome recorded',
  payment: 'Added to the payment report',
  refund_begun: 'Refund started',
  refund_settled: 'Refund outcome recorded',
  event: 'Event',
  delivery: 'Event delivery',
  // The time of a pending delivery is that of its next attempt.
  next_attempt: 'Next delivery attempt',
}

const DETAILS: Record<string, string> = {
  psp: 'provider',
  psp_transaction_id: 'ID at the provider',
  status_checks: 'status checks at the provider',
  refund_id: 'refund',
  call: 'request',
}

function timelineOf(view: View, timeline: Entry[], currency: string): Piece {
  const kindOf = (event_id: string | undefined) =>
    timeline.find(({ what, detail }) => what === 'event' && detail.event_id === event_id)
  return html`<ol class="timeline">${timeline.map(({ at, what, detail }) => {
    const { event_id, type, ...rest } = detail
    const step = what === 'delivery' && detail.status === 'pending' ? 'next_attempt' : what
    const kind = type ?? kindOf(event_id)?.detail.type
    return html`<li class="${what}">${moment(at)} <strong>${STEPS[step] ?? step}</strong>
      ${event_id && html`<a href="${view.href(pathOf('webhooks', 'events', event_id))}">${kind ?? event_id}</a>`}
      <span>${detailOf(event_id ? rest : detail, currency)}</span></li>`
  })}</ol>`
}

/** The values of a step. Refunds have no currency: theirs is that of the charge. The sequence of an event is on its page. */
function detailOf(detail: Entry['detail'], currency: string): Piece {
  const {
    duration_ms,
    outcome,
    status: state,
    amount,
    currency_code,
    status_checks,
    sequence: _sequence,
    ...rest
  } = detail
  const others = Object.entries({ ...rest, ...(status_checks && { status_checks }) }).filter(
    ([, value]) => value !== null && value !== '' && value !== false,
  )
  const result = outcome || state
  return html`${result && status(spaced(result))} ${amount && money(amount, currency_code ?? currency)}
    ${duration_ms !== undefined && html`<span class="quiet">${milliseconds(duration_ms)}</span>`}
    ${others.map(([name, value]) => html`<span class="detail"><span class="quiet">${DETAILS[name] ?? spaced(name)}</span> ${CODES.has(name) ? spaced(String(value)) : String(value)}</span> `)}`
}

/** Details whose values are names of ours, such as `look_up`. */
const CODES = new Set(['call', 'type'])

const spaced = (name: string) => name.replaceAll('_', ' ')

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
