// The messages of a project's alerts with their outcomes; and sending one now.
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { Type } from '../../lib/shape/schema.ts'
import { instant, integer, shape, text } from '../../lib/shape/shape.ts'
import { ALERTS_TAG } from './alert-settings.ts'
import { notFound } from './exist.ts'
import { list, ofProject } from './list.ts'
import { change } from './operation.ts'

const MESSAGES = '/projects/:project_id/alert-messages'

const message = shape('AlertMessage', 'm', {
  id: text('Identifier; the `webhook-id` of a webhook.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  kind: text(
    'About a `rule`, about figures that are not complete (`stale`), a `digest`, or sent by an operator (`test`).',
    {
      enum: ['rule', 'stale', 'digest', 'test'],
    },
  ),
  rule_id: text('The rule.', { nullable: true, sql: `nullif(m.rule_id, '')`, example: 'low-revenue' }),
  destination_id: text('Where it is sent.', { example: 'team' }),
  day: text('The day that it is about.', { sql: `to_char(m.day, 'YYYY-MM-DD')`, example: '2026-10-25' }),
  title: text('Its first line.', { nullable: true, sql: `m.content ->> 'title'`, example: 'Shop: revenue is low' }),
  status: text('`pending`, `sent`, or `failed` after the last attempt.', { enum: ['pending', 'sent', 'failed'] }),
  attempts: integer('Number of attempts.'),
  error: text('Why the last attempt failed.', { nullable: true, example: 'Status 500.' }),
  created_at: instant('When it was made.'),
  next_attempt_at: instant('When it is tried next; quiet hours may delay that.', { nullable: true }),
  finished_at: instant('When it was sent, or given up.', { nullable: true }),
})

const send = change({
  id: 'sendAlertNow',
  right: 'webhooks',
  command: 'alert send',
  method: 'POST',
  path: MESSAGES,
  tag: ALERTS_TAG,
  summary: 'Send a digest now',
  description:
    'To one destination, or to all of them, also in quiet hours. It is sent in the background; the list of messages has the outcome.',
  body: Type.Named('AlertSending', {
    destination_id: Type.Optional(Type.String({ description: 'Only to this destination.', maxLength: 64 })),
  }),
  response: Type.Named('AlertSendingBegun', {
    messages: Type.Array(Type.String(), { description: 'The messages.' }),
  }),
  async change(query, { params, body }) {
    const only = body.destination_id ?? null
    const rows = await query(SEND, [params.project_id, only])
    if (rows.length === 0 && only !== null) throw notFound('destination of alerts', only)
    if (rows.length === 0)
      throw new ApiError(409, 'operation_refused', 'The project has no destination of alerts: set one first.')
    const entry = {
      action: 'alert.sent',
      target: `project ${params.project_id}`,
      after: { destinations: rows.map(({ destination_id }) => destination_id) },
    }
    return { entry, result: { messages: rows.map(({ id }) => id) } }
  },
})

const SEND = `
  insert into alert_messages (project_id, id, destination_id, kind, day, created_at, next_attempt_at, scheduled_at)
  select d.project_id, gen_random_uuid(), d.id, 'test', (at at time zone p.time_zone)::date - 1, at, at, at
  from alert_destinations d join projects p on p.id = d.project_id, (select db_clock() as at) now
  where d.project_id = $1 and ($2::text is null or d.id = $2) returning id, destination_id`

export const alertMessages = [
  send,
  list({
    id: 'listAlertMessages',
    right: 'setup',
    command: 'alert sent',
    columns: ['created_at', 'kind', 'rule_id', 'destination_id', 'day', 'status', 'error'],
    path: MESSAGES,
    tag: ALERTS_TAG,
    summary: 'List messages of alerts',
    shape: message,
    from: 'alert_messages m',
    at: 'm.created_at',
    key: 'm.id',
    isKey: isUuid,
    ...ofProject('m'),
  }),
] as const
