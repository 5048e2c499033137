// Webhook endpoints of a project.
import type { App } from '../../app.ts'
import { eventTypes } from '../../core/events/catalogue.ts'
import {
  checkEndpointUrl,
  createEndpoint,
  endpoint,
  findEndpoint,
  removeEndpoint,
  sendTest,
  setEndpoint,
  withoutQuery,
} from '../../core/events/endpoints.ts'
import { DECLARED_ONLY } from '../../lib/http/rule-phrases.ts'
import { isUuid } from '../../lib/ids.ts'
import type { NamedRow, Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { notFound } from './exist.ts'
import { list, ofProject } from './list.ts'
import { change, type ParamsOf, reading } from './operation.ts'

const TAG = 'Webhooks'
const PATH = '/projects/:project_id/webhooks'
const ONE = `${PATH}/:webhook_id` as const

const settings = {
  url: Type.String({
    description: 'URL to which deliveries are posted.',
    minLength: 1,
    maxLength: 2048,
    [DECLARED_ONLY]: { pattern: '^https?://' },
  }),
  kinds: Type.Array(Type.String({ enum: eventTypes }), {
    description: 'The kinds of events that the endpoint receives; all if the list is empty.',
    maxItems: eventTypes.length,
  }),
  enabled: Type.Boolean({ description: 'Whether events are delivered to the endpoint.' }),
}

const changes = {
  url: Type.Optional(settings.url),
  kinds: Type.Optional(settings.kinds),
  enabled: Type.Optional(settings.enabled),
}

function checkUrl(url: string | undefined, { config }: App): void {
  if (url !== undefined) checkEndpointUrl(url, { allowPrivate: config.webhookAllowPrivate })
}

const target = (params: Record<string, string>, id = params.webhook_id) =>
  `webhook ${id} of project ${params.project_id}`

/** The fields of an endpoint that the audit log keeps. */
const settingsOf = ({ url, kinds, enabled }: NamedRow) => ({
  url: withoutQuery(url!),
  kinds: JSON.parse(kinds!) as string[],
  enabled: enabled === 't',
})

async function readEndpoint(query: Query, { project_id }: ParamsOf<typeof PATH>, id: string) {
  const text = `select ${endpoint.namedColumns} from webhook_endpoints e
    where e.project_id = $1 and e.id = $2 and e.removed_at is null`
  const [row] = isUuid(id) ? await query(text, [project_id, id]) : []
  if (!row) throw notFound('webhook endpoint', id)
  return endpoint.readNamed(row)
}

const create = change({
  id: 'createWebhook',
  right: 'webhooks',
  command: 'webhook create',
  method: 'POST',
  path: PATH,
  tag: TAG,
  summary: 'Create a webhook endpoint',
  body: Type.Named('NewWebhook', { ...changes, url: settings.url }),
  response: endpoint.schema,
  checkInput: ({ body }, app) => checkUrl(body.url, app),
  async change(query, { params, body }, { config }) {
    const given = { kinds: [], enabled: true, ...body }
    const id = await createEndpoint(query, params.project_id, given, { allowPrivate: config.webhookAllowPrivate })
    const after = settingsOf(await findEndpoint(query, params.project_id, id))
    const result = await readEndpoint(query, params, id)
    return { entry: { action: 'webhook.created', target: target(params, id), after }, result }
  },
})

const get = reading({
  id: 'getWebhook',
  right: 'setup',
  command: 'webhook show',
  path: ONE,
  tag: TAG,
  summary: 'Get a webhook endpoint',
  response: endpoint.schema,
  run: ({ db }, { params }) => readEndpoint(db.query, params, params.webhook_id),
})

const set = change({
  id: 'setWebhook',
  right: 'webhooks',
  command: 'webhook set',
  method: 'PATCH',
  path: ONE,
  tag: TAG,
  summary: 'Change a webhook endpoint',
  description:
    'Enabling an endpoint or changing its address resets its failures, and delivers its pending events at once, with a new schedule.',
  body: Type.Named('WebhookSettings', changes),
  response: endpoint.schema,
  checkInput: ({ body }, app) => checkUrl(body.url, app),
  async change(query, { params, body }, { config }) {
    const { project_id, webhook_id } = params
    const before = settingsOf(await findEndpoint(query, project_id, webhook_id))
    const rules = { allowPrivate: config.webhookAllowPrivate }
    await setEndpoint(query, project_id, webhook_id, body, rules)
    const after = settingsOf(await findEndpoint(query, project_id, webhook_id))
    const result = await readEndpoint(query, params, webhook_id)
    return { entry: { action: 'webhook.set', target: target(params), before, after }, result }
  },
})

const remove = change({
  id: 'removeWebhook',
  right: 'webhooks',
  command: 'webhook remove',
  method: 'DELETE',
  path: ONE,
  tag: TAG,
  summary: 'Remove a webhook endpoint with its pending deliveries',
  response: Type.Object({ id: Type.String({ description: 'The endpoint.' }) }, { title: 'WebhookRemoved' }),
  async change(query, { params }) {
    const { project_id, webhook_id } = params
    const before = settingsOf(await findEndpoint(query, project_id, webhook_id))
    await removeEndpoint(query, project_id, webhook_id)
    return { entry: { action: 'webhook.removed', target: target(params), before }, result: { id: webhook_id } }
  },
})

const sendTestEvent = change({
  id: 'testWebhook',
  right: 'webhooks',
  command: 'webhook test',
  method: 'POST',
  path: `${ONE}/test`,
  tag: TAG,
  summary: 'Send a test event to an endpoint',
  description: 'Sends an event of the kind `endpoint.test` to this endpoint only, whatever kinds it receives.',
  response: Type.Object({ event_id: Type.String({ description: 'The event.' }) }, { title: 'TestSent' }),
  async change(query, { params }) {
    const event_id = await sendTest(query, params.project_id, params.webhook_id)
    return { entry: { action: 'webhook.tested', target: target(params), after: { event_id } }, result: { event_id } }
  },
})

export const webhooks = [
  list({
    id: 'listWebhooks',
    right: 'setup',
    command: 'webhook list',
    columns: ['id', 'url', 'kinds', 'enabled', 'disabled_because'],
    path: PATH,
    tag: TAG,
    summary: 'List webhook endpoints',
    shape: endpoint,
    from: 'webhook_endpoints e',
    at: 'e.created_at',
    key: 'e.id',
    isKey: isUuid,
    ...ofProject('e', 'e.removed_at is null'),
  }),
  create,
  get,
  set,
  remove,
  sendTestEvent,
] as const
