// Alerts: rules on figures, the morning digest, where messages go, and what became of them.

import { clockOf, dateOf } from '../../../lib/days.ts'
import { allOf, type Item, type Response } from '../call.ts'
import { id, status, time } from '../format.ts'
import { isChanged, shownField } from '../forms.ts'
import { type Html, html, type Piece } from '../html.ts'
import { listed, pageLinks } from '../lists.ts'
import { actionForm, facts, hiddenField, linkButton, section, selectField, tableSection, textField } from '../parts.ts'
import { cell, columns, type Table } from '../sheet.ts'
import { noProject, type Page } from '../shell.ts'
import { pathOf, projectOf, type View } from '../view.ts'
import { ruleForm, ruleTable } from './alert-rules.ts'

type Destination = Item<'listAlertDestinations'>

export async function alerts(view: View): Promise<Page> {
  const title = 'Alerts'
  if (!view.project) return { title, body: noProject(view) }
  const params = { project_id: projectOf(view).id }
  const [rules, destinations, settings, messages] = await Promise.all([
    allOf(view.call, 'listAlerts', { params }),
    allOf(view.call, 'listAlertDestinations', { params }),
    view.call('getAlertSettings', { params }),
    listed(view, 'messages', 'listAlertMessages', { params }),
  ])
  return {
    title,
    question: html`Which figures cause a message, and where is it sent? <a href="/docs/guides/alerts">How alerts work</a>.`,
    body: html`${tableSection(view, 'rules', ruleTable(view, rules), {
      empty: html`<h3>No rules yet</h3><p>A rule sends a message when a figure of the day before is too low, too high, or far from that of the same weekday.</p>`,
      note:
        rules.length > 0 &&
        !destinations.some(receivesAlerts) &&
        'No destination receives alerts: nobody gets these messages.',
      below: ruleForm(view),
    })}
      ${tableSection(view, 'destinations', destinationTable(view, destinations), {
        empty: html`<h3>No destinations yet</h3><p>Messages go to a signed webhook, a chat service with the format of Slack, or an e-mail address.</p>`,
        below: html`<div class="row">${destinationForm(view)}${destinations.length > 0 && sendForm(view)}</div>`,
      })}
      ${hours(view, settings)}
      ${tableSection(view, 'messages', messageTable(messages.data), {
        empty: html`<p>No messages yet.</p>`,
        note: messages.data.length > 0 && 'Messages are kept for 90 days.',
        below: pageLinks(view, messages),
      })}`,
  }
}

const receivesAlerts = ({ receives }: Destination) => receives.length === 0 || receives.includes('alert')

function destinationTable(view: View, destinations: Destination[]): Table {
  return {
    caption: 'Destinations',
    columns: [
      ...columns('Destination', 'Status', 'Last error', 'Last sent', 'Kind', 'Address', 'Receives'),
      { label: 'Actions', actions: ['/alerts/destinations/one/remove'] },
    ],
    rows: destinations.map((one) => [
      cell(id(one.id), one.id),
      status(one.failing_since ? 'failing' : one.last_sent_at ? 'ok' : 'not used yet'),
      one.last_error ? html`${one.last_error}<br><span class="quiet">since ${time(one.failing_since)}</span>` : '',
      time(one.last_sent_at),
      KINDS[one.kind] ?? one.kind,
      cell(html`<span class="cut" title="${one.address}">${one.address}</span>`, one.address),
      one.receives.length === 0 ? 'everything' : one.receives.join(', '),
      destinationActions(view, one),
    ]),
  }
}

const destinationActions = (
  view: View,
  { id: name }: Destination,
): Html => html`<div class="acts">${view.maySend('/alerts/send') && linkButton(view.href('/alerts/send'), 'Send one now', hiddenField('destination_id', name))}
  ${actionForm(view, { action: view.href(`${pathOf('alerts', 'destinations', name)}/remove`), button: 'Remove', danger: true, explanation: `Nothing more is sent to ${name}, and its messages are deleted.` })}</div>`

const KINDS: Record<string, string> = { webhook: 'Webhook', slack: 'Slack or compatible', email: 'E-mail' }
const RECEIVES = { '': 'Everything', alert: 'Alerts only', digest: 'The digest only' }

const destinationForm = (view: View): Piece =>
  actionForm(view, {
    action: view.href('/alerts/destinations/new'),
    button: 'Add a destination',
    explanation: 'A webhook is signed as those of events. A destination with the same name is replaced.',
    fields: html`${textField('destination_id', 'Name', { required: true, hint: 'For example team.' })}
      ${selectField('kind', 'Kind', KINDS, 'slack')}
      ${textField('address', 'Address', { required: true, isSecret: true, hint: 'A URL, or an e-mail address.' })}
      ${selectField('receives', 'Receives', RECEIVES)}`,
  })

const sendForm = (view: View): Piece =>
  actionForm(view, {
    action: view.href('/alerts/send'),
    button: 'Send a digest now',
    explanation: 'Sends the digest of yesterday to every destination, also in quiet hours.',
  })

const hour = (value: number | null) => (value === null ? '' : String(value))

function hours(view: View, { digest_hour, quiet_from, quiet_to }: Response<'getAlertSettings'>): Html {
  const shown = { digest_hour: hour(digest_hour), quiet_from: hour(quiet_from), quiet_to: hour(quiet_to) }
  return section(
    'Digest and quiet hours',
    html`${facts({
      'Morning digest': digest_hour === null ? 'none' : clockOf(digest_hour),
      'Quiet hours':
        quiet_from === null || quiet_to === null ? 'none' : `${clockOf(quiet_from)} to ${clockOf(quiet_to)}`,
    })}
    ${actionForm(view, {
      action: view.href('/alerts/hours'),
      button: 'Change the hours',
      explanation:
        'Hours from 0 to 23, in the time zone of the project. Leave a field empty for no digest, or no quiet hours.',
      fields: html`${shownField(shown)}${textField('digest_hour', 'Morning digest at', { value: shown.digest_hour })}
        ${textField('quiet_from', 'Quiet from', { value: shown.quiet_from })}
        ${textField('quiet_to', 'Quiet until', { value: shown.quiet_to })}`,
    })}`,
    {
      note: html`The digest has the main figures of yesterday, and what the doctor finds: <a href="${view.href('/alerts/digest')}">look at it</a>. What falls into quiet hours is sent at their end. Hours in ${view.reporting.timeZone}.`,
    },
  )
}

const messageTable = (data: Item<'listAlertMessages'>[]): Table => ({
  caption: 'Messages',
  columns: columns('Message', 'Status', 'Error', 'Destination', 'Made', 'Next attempt'),
  rows: data.map((one) => [
    one.title ?? `Digest of ${dateOf(one.day)}, sent by an operator`,
    status(one.status),
    one.error ?? '',
    cell(id(one.destination_id), one.destination_id),
    time(one.created_at),
    time(one.next_attempt_at),
  ]),
})

/** The fields of a form that are not empty. */
function given(form: URLSearchParams, ...names: string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (form.get(name) ? [[name, form.get(name)!]] : [])))
}

/** Hours as numbers; a text that is none is left for the operation to refuse. */
const hoursIn = (fields: Record<string, string>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).map(([name, text]) => [name, /^\d{1,2}$/.test(text) ? Number(text) : text]))

export async function putRule(view: View, form: URLSearchParams): Promise<string> {
  const { from_hour, ...fields } = given(form, 'metric', 'condition', 'threshold', 'from_hour')
  const params = { project_id: projectOf(view).id, alert_id: form.get('alert_id') ?? '' }
  const threshold = fields.threshold?.replace('−', '-')
  const today = from_hour !== undefined && { today: true, ...hoursIn({ from_hour }) }
  await view.call('putAlert', { params, body: { ...fields, threshold, ...today } })
  return view.href('/alerts', { done: 'saved' })
}

export async function removeRule(view: View): Promise<string> {
  await view.call('removeAlert', { params: { project_id: projectOf(view).id, alert_id: view.params.alert_id! } })
  return view.href('/alerts', { done: 'rule-removed' })
}

export async function putDestination(view: View, form: URLSearchParams): Promise<string> {
  const params = { project_id: projectOf(view).id, destination_id: form.get('destination_id') ?? '' }
  const { receives, ...fields } = given(form, 'kind', 'address', 'receives')
  const body = { ...fields, receives: receives === undefined ? [] : [receives] }
  await view.call('putAlertDestination', { params, body })
  return view.href('/alerts', { done: 'saved' })
}

export async function removeDestination(view: View): Promise<string> {
  const { destination_id } = view.params as { destination_id: string }
  await view.call('removeAlertDestination', { params: { project_id: projectOf(view).id, destination_id } })
  return view.href('/alerts', { done: 'destination-removed' })
}

export async function saveHours(view: View, form: URLSearchParams): Promise<string> {
  const params = { project_id: projectOf(view).id }
  const now = await view.call('getAlertSettings', { params })
  // One end of the quiet hours without the other is refused, or is a time that was never chosen.
  for (const names of [['digest_hour'], ['quiet_from', 'quiet_to']] as const)
    if (!isChanged(form, ...names)) for (const name of names) form.set(name, hour(now[name]))
  const body = hoursIn(given(form, 'digest_hour', 'quiet_from', 'quiet_to'))
  await view.call('putAlertSettings', { params, body })
  return view.href('/alerts', { done: 'saved' })
}

export async function sendNow(view: View, form: URLSearchParams): Promise<string> {
  await view.call('sendAlertNow', { params: { project_id: projectOf(view).id }, body: given(form, 'destination_id') })
  return view.href('/alerts', { done: 'alerted' })
}
