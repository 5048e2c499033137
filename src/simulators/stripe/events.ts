// Events, webhook endpoints and the signature of what is sent to them.
import { createHmac } from 'node:crypto'
import type { Stripe } from 'stripe'
import type { Notice } from '../deliveries.ts'
import { type Call, type Dialect, existing, inPath, metadata, required, route, text } from './call.ts'
import { invalid } from './errors.ts'
import { LIST_PARAMS, list, readRoutes } from './lists.ts'
import type { EventType, Objects, State } from './state.ts'

export const API_VERSION = '2026-10-28.endive'

const FIELDS = ['api_version', 'description', 'disabled', 'enabled_events', 'metadata', 'url']

export const eventRoutes = [
  ...readRoutes('/v1/events', 'event', ['type']),
  route('POST', '/v1/webhook_endpoints', FIELDS, createEndpoint),
  route('GET', '/v1/webhook_endpoints', LIST_PARAMS, (dialect, call) =>
    list(call, dialect.state.all('webhook_endpoint').filter(isOn).map(withoutSecret)),
  ),
  route('GET', '/v1/webhook_endpoints/:id', [], (dialect, call) =>
    withoutSecret(inPath(dialect, call, 'webhook_endpoint')),
  ),
  route('DELETE', '/v1/webhook_endpoints/:id', [], (dialect, call) => {
    const before = inPath(dialect, call, 'webhook_endpoint')
    dialect.state.put({ ...before, status: 'disabled' })
    return { id: before.id, object: 'webhook_endpoint', deleted: true }
  }),
]

function createEndpoint({ state, livemode }: Dialect, call: Call): object {
  const events = call.params['enabled_events']
  if (!Array.isArray(events)) throw invalid('Missing required param: enabled_events.', { param: 'enabled_events' })
  const made: Stripe.WebhookEndpoint = {
    id: state.newId('we'),
    object: 'webhook_endpoint',
    api_version: API_VERSION,
    application: null,
    created: state.now(),
    description: text(call, 'description') ?? null,
    enabled_events: events.map(String),
    livemode,
    metadata: metadata(call),
    secret: newSecret(state),
    status: 'enabled',
    url: required(call, 'url'),
  }
  return state.put(made)
}

function isOn({ status }: Stripe.WebhookEndpoint): boolean {
  return status === 'enabled'
}

/** Stripe shows the secret once, when the endpoint is made. */
function withoutSecret({ secret: _secret, rolled: _rolled, ...endpoint }: Endpoint): Stripe.WebhookEndpoint {
  return endpoint
}

type Endpoint = Objects['webhook_endpoint']

const newSecret = (state: Dialect['state']) => `whsec_${state.newId('s').slice(2)}`

/** Gives an endpoint a new secret, as the dashboard does; the one before signs too for `keepMs`. */
export function rollSecret(dialect: Dialect, id: string, keepMs: number): Endpoint {
  const before = existing(dialect, 'webhook_endpoint', id, 'id', 404)
  const { state } = dialect
  const rolled = { secret: before.secret!, until_s: state.now() + keepMs / 1000 }
  return state.put({ ...before, secret: newSecret(state), rolled })
}

/** The secrets that sign what is sent to an endpoint now. */
function secretsOf({ secret = '', rolled }: Endpoint, nowS: number): string[] {
  return rolled && nowS < rolled.until_s ? [secret, rolled.secret] : [secret]
}

/** Writes an event that holds the object as it is now; returns it with the endpoints that want it. */
export function recordEvent(
  { state, livemode }: Pick<Dialect, 'state' | 'livemode'>,
  type: EventType,
  object: object,
  previous_attributes?: object,
) {
  const endpoints = state
    .all('webhook_endpoint')
    .filter(isOn)
    .filter(({ enabled_events }) => enabled_events.includes('*') || enabled_events.includes(type))
  const event = {
    id: state.newId('evt'),
    object: 'event',
    api_version: API_VERSION,
    created: state.now(),
    data: { object, ...(previous_attributes && { previous_attributes }) },
    livemode,
    pending_webhooks: endpoints.length,
    request: { id: null, idempotency_key: null },
    type,
  } as unknown as Stripe.Event
  return { event: state.put(event), endpoints }
}

/** The header `Stripe-Signature`: `t` in seconds, and a `v1` for each secret. */
export function signature(body: string, secrets: readonly string[], seconds: number): string {
  const signed = secrets.map((secret) => createHmac('sha256', secret).update(`${seconds}.${body}`).digest('hex'))
  return [`t=${seconds}`, ...signed.map((v1) => `v1=${v1}`)].join(',')
}

export interface Delivery {
  event: Stripe.Event
  endpoint: Endpoint
}

/** What is sent to an endpoint. @param wallClockMs the receiver's time, not the dialect's */
export async function formEvent(state: State, { event, endpoint }: Delivery, wallClockMs: number): Promise<Notice> {
  // The receiver may read the object at once, so it must be on disk before the event is sent.
  await state.durable()
  const body = JSON.stringify(event, null, 2)
  // Its secret may have been rolled since the event was made.
  const secrets = secretsOf(state.find('webhook_endpoint', endpoint.id)!, state.now())
  const headers = {
    'content-type': 'application/json; charset=utf-8',
    'stripe-signature': signature(body, secrets, Math.floor(wallClockMs / 1000)),
  }
  return { url: endpoint.url, headers, body }
}
