// Where a project's alerts and digests are sent: webhooks, chat services, e-mail addresses.
import type { App } from '../../app.ts'
import {
  checkAddress,
  DESTINATION_KINDS,
  type DestinationKind,
  sealAddress,
  shownAddress,
} from '../../core/events/alert-addresses.ts'
import { withoutQuery } from '../../core/events/endpoints.ts'
import { ApiError } from '../../lib/errors.ts'
import type { NamedRow, Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { instant, json, shape, text } from '../../lib/shape/shape.ts'
import { ALERTS_TAG, checkAlertId, ensureAlertSettings, refuseTooMany } from './alert-settings.ts'
import { notFound } from './exist.ts'
import { list, ofProject } from './list.ts'
import { change, type ParamsOf } from './operation.ts'

const PATH = '/projects/:project_id/alert-destinations'
const ONE = `${PATH}/:destination_id` as const
const RECEIVES = ['alert', 'digest'] as const
const MAX_DESTINATIONS = 20

const destination = shape('AlertDestination', 'd', {
  id: text('Name of the destination, unique in the project.', { example: 'team' }),
  kind: text('A signed `webhook`, the URL of a chat service with the format of `slack`, or `email`.', {
    enum: DESTINATION_KINDS,
  }),
  address: text('Where messages are sent; the URL of a chat service is a secret, of which only the end is shown.', {
    sql: 'd.shown',
    example: 'https://hooks.slack.com/…Xq3f',
  }),
  receives: json('What is sent to it; everything if the list is empty.', {
    schema: Type.Array(Type.String({ enum: RECEIVES })),
    example: ['digest'],
  }),
  last_sent_at: instant('When a message last arrived.', { nullable: true }),
  last_error: text('Why the last attempt failed.', { nullable: true, example: 'The connection was refused.' }),
  failing_since: instant('The first failure since the last success.', { nullable: true }),
  created_at: instant('When it was created.'),
  updated_at: instant('When it was last changed.'),
})

interface Given {
  kind: DestinationKind
  address: string
}

const addressOf = ({ kind, address }: Given, { config }: App): string => {
  if (kind === 'email' && !config.mail)
    throw new ApiError(409, 'operation_refused', 'E-mails need a mail server: set SMTP_URL and SMTP_FROM.')
  return checkAddress(kind, address, { allowPrivate: config.webhookAllowPrivate })
}

const target = (params: ParamsOf<typeof ONE>) =>
  `alert destination ${params.destination_id} of project ${params.project_id}`

/** The fields that the audit log keeps: no secret, and no address of a person. */
const entryOf = ({ kind, shown, receives }: NamedRow) => ({
  kind,
  address: kind === 'email' ? `…@${shown!.split('@')[1]}` : withoutQuery(shown!),
  receives: JSON.parse(receives!) as string[],
})

async function find(query: Query, { project_id, destination_id }: ParamsOf<typeof ONE>): Promise<NamedRow | undefined> {
  const [row] = await query(
    'select kind, shown, receives from alert_destinations where project_id = $1 and id = $2 for update',
    [project_id, destination_id],
  )
  return row
}

const put = change({
  id: 'putAlertDestination',
  right: 'webhooks',
  command: 'alert destination set',
  method: 'PUT',
  path: ONE,
  tag: ALERTS_TAG,
  summary: 'Set a destination of alerts',
  description:
    'Creates the destination, or replaces it. Every message of the project is sent to each of its destinations.',
  body: Type.Named('AlertDestinationSettings', {
    kind: Type.String({
      enum: DESTINATION_KINDS,
      description: 'A signed webhook, the URL of a chat service with the format of Slack, or e-mail.',
    }),
    address: Type.String({
      description: 'The URL, or the e-mail address.',
      minLength: 1,
      maxLength: 2048,
      examples: ['https://hooks.slack.com/services/T000/B000/abcdef'],
    }),
    receives: Type.Optional(
      Type.Array(Type.String({ enum: RECEIVES }), {
        description: 'What is sent to it: alert, digest; everything if the list is empty.',
        maxItems: 2,
      }),
    ),
  }),
  response: destination.schema,
  checkInput({ params, body }, app) {
    checkAlertId('destination_id', params.destination_id)
    addressOf(body, app)
  },
  async change(query, { params, body }, app) {
    const [projectId, id] = [params.project_id, params.destination_id]
    const { kind, receives = [] } = body
    const address = addressOf(body, app)
    await ensureAlertSettings(query, projectId)
    const before = await find(query, params)
    if (!before) await refuseTooMany(query, projectId, 'alert_destinations', MAX_DESTINATIONS, 'destinations of alerts')
    const sealed = sealAddress(app.seal, projectId, id, address)
    const shown = shownAddress(kind, address)
    await query(PUT, [projectId, id, kind, sealed, shown, JSON.stringify([...new Set(receives)])])
    if (before && (before.kind !== kind || before.shown !== shown)) await query(HURRY, [projectId, id])
    const [row] = await query(
      `select ${destination.namedColumns}, kind, shown, receives from alert_destinations d where d.project_id = $1 and d.id = $2`,
      [projectId, id],
    )
    const entry = { action: 'alert_destination.set', target: target(params), after: entryOf(row!) }
    return {
      entry: { ...entry, ...(before && { before: entryOf(before) }) },
      result: destination.readNamed(row!),
    }
  },
})

const PUT = `
  insert into alert_destinations (project_id, id, kind, address, shown, receives, created_at, updated_at)
  select $1, $2, $3, $4, $5, $6::jsonb, at, at from (select db_clock() as at) now
  on conflict (project_id, id) do update set kind = excluded.kind, address = excluded.address, shown = excluded.shown,
    receives = excluded.receives, updated_at = excluded.updated_at, last_error = null, failing_since = null`

// What failed at the address before may wait for hours. An attempt in progress is one at that address, whose outcome is ignored.
const HURRY = `
  update alert_messages set next_attempt_at = db_clock(), scheduled_at = db_clock()
  where project_id = $1 and destination_id = $2 and status = 'pending'`

const remove = change({
  id: 'removeAlertDestination',
  right: 'webhooks',
  command: 'alert destination remove',
  method: 'DELETE',
  path: ONE,
  tag: ALERTS_TAG,
  summary: 'Remove a destination of alerts with its messages',
  response: Type.Object({ id: Type.String({ description: 'The destination.' }) }, { title: 'AlertDestinationRemoved' }),
  async change(query, { params }) {
    const key = [params.project_id, params.destination_id]
    const before = await find(query, params)
    if (!before) throw notFound('destination of alerts', key[1]!)
    await query('delete from alert_messages where project_id = $1 and destination_id = $2', key)
    await query('delete from alert_destinations where project_id = $1 and id = $2', key)
    const entry = { action: 'alert_destination.removed', target: target(params), before: entryOf(before) }
    return { entry, result: { id: key[1]! } }
  },
})

export const alertDestinations = [
  list({
    id: 'listAlertDestinations',
    right: 'setup',
    command: 'alert destination list',
    columns: ['id', 'kind', 'address', 'receives', 'last_sent_at', 'last_error'],
    path: PATH,
    tag: ALERTS_TAG,
    summary: 'List destinations of alerts',
    shape: destination,
    from: 'alert_destinations d',
    at: 'd.created_at',
    key: 'd.id',
    ...ofProject('d'),
  }),
  put,
  remove,
] as const
