// Webhook endpoints of a project: create, change, remove, send a test event; and send an event again.
import { isIP } from 'node:net'
import { ApiError } from '../../lib/errors.ts'
import { isUuid, makeUuid } from '../../lib/ids.ts'
import type { NamedRow, Query } from '../../lib/pg/types.ts'
import { Type } from '../../lib/shape/schema.ts'
import { boolean, instant, json, shape, text } from '../../lib/shape/shape.ts'
import { isPublicAddress } from './address.ts'
import { eventTypes } from './catalogue.ts'
import { write } from './outbox.ts'

export interface EndpointSettings {
  url: string
  /** The kinds it receives; an empty list means all. */
  kinds: string[]
  enabled: boolean
}

/** An endpoint as the operator's API returns it. */
export const endpoint = shape('WebhookEndpoint', 'e', {
  id: text('Identifier.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  url: text('URL to which deliveries are posted.', { example: 'https://example.com/tundish' }),
  kinds: json('The kinds of events that the endpoint receives; all if the list is empty.', {
    schema: Type.Array(Type.String({ enum: eventTypes })),
    example: ['charge.succeeded'],
  }),
  enabled: boolean('Whether events are delivered to the endpoint.'),
  disabled_because: text(
    'Why it is disabled: by an `operator`; it responded 410 (`gone`); it failed for 5 days without a success (`failing`).',
    { nullable: true, enum: ['operator', 'gone', 'failing'] },
  ),
  failing_since: instant('The first failure since the last success.', { nullable: true }),
  created_at: instant('When it was created.'),
  updated_at: instant('When it was last changed.'),
})

const MAX_ENDPOINTS = 1000

/** Creates an endpoint and returns its id. */
export async function createEndpoint(
  query: Query,
  projectId: string,
  settings: EndpointSettings,
  rules: UrlRules,
): Promise<string> {
  const url = checkEndpointUrl(settings.url, rules)
  const kinds = checkKinds(settings.kinds)
  // The lock of the project's row keeps the count exact while two endpoints are created concurrently.
  await query('select 1 from projects where id = $1 for no key update', [projectId])
  const [count] = await query(
    'select count(*) as n from webhook_endpoints where project_id = $1 and removed_at is null',
    [projectId],
  )
  if (Number(count!.n) >= MAX_ENDPOINTS)
    throw new ApiError(409, 'too_many_endpoints', `A project has at most ${MAX_ENDPOINTS} webhook endpoints.`)
  const id = makeUuid()
  await query(
    `insert into webhook_endpoints (project_id, id, url, kinds, enabled, disabled_because, created_at, updated_at)
     select $1, $2, $3, $4, $5, case when not $5 then 'operator' end, at, at from (select db_clock() as at) now`,
    [projectId, id, url, JSON.stringify(kinds), settings.enabled],
  )
  return id
}

/** Changes the given settings. Enabling it, or another address, delivers its pending events at once, with a new schedule. */
export async function setEndpoint(
  query: Query,
  projectId: string,
  id: string,
  change: Partial<EndpointSettings>,
  rules: UrlRules,
): Promise<void> {
  const before = await findEndpoint(query, projectId, id)
  const url = change.url === undefined ? null : checkEndpointUrl(change.url, rules)
  const kinds = change.kinds === undefined ? null : JSON.stringify(checkKinds(change.kinds))
  await query(
    `update webhook_endpoints set url = coalesce($3, url), kinds = coalesce($4::jsonb, kinds),
       enabled = coalesce($5, enabled),
       disabled_because = case when $5 then null when not $5 then coalesce(disabled_because, 'operator')
         else disabled_because end,
       failing_since = case when ($5 and not enabled) or $3 <> url then null else failing_since end,
       updated_at = db_clock()
     where project_id = $1 and id = $2`,
    [projectId, id, url, kinds, change.enabled ?? null],
  )
  const isOpened = change.enabled && before.enabled !== 't'
  const isElsewhere = url !== null && url !== before.url
  if (isOpened || isElsewhere) await query(RESTART, [projectId, id])
}

// What failed before may wait for a day, or be near the end of its schedule. A delivery in progress is sent again, because its
// outcome, of the endpoint as it was, would postpone it for a day or give it up: it is ignored, as that of another `scheduled_at`.
const RESTART = `
  update webhook_deliveries set next_attempt_at = db_clock(), scheduled_at = db_clock(), failures = 0
  where project_id = $1 and endpoint_id = $2 and status = 'pending'`

/**
 * Removes an endpoint: from now on nothing is delivered to it, and nothing of it is shown. Its deliveries, which may be millions,
 * are deleted later by `deleteSome`, and then its row.
 */
export async function removeEndpoint(query: Query, projectId: string, id: string): Promise<void> {
  await findEndpoint(query, projectId, id)
  await query(
    `update webhook_endpoints set removed_at = db_clock(), enabled = false,
       disabled_because = coalesce(disabled_because, 'operator')
     where project_id = $1 and id = $2`,
    [projectId, id],
  )
}

/** Writes an event for this endpoint alone, whatever kinds it receives, and returns the event's id. */
export async function sendTest(query: Query, projectId: string, id: string): Promise<string> {
  await requireEnabled(query, projectId, id)
  await write(query, projectId, [{ type: 'endpoint.test', object_id: id, profile_id: null, data: { id } }])
  const [event] = await query(
    'select id from events where project_id = $1 and object_id = $2 order by sequence desc limit 1',
    [projectId, id],
  )
  return event!.id!
}

/**
 * Delivers an event again, with the same id: to one endpoint, or to every endpoint that receives its kind. The retry
 * schedule restarts. Returns the number of endpoints.
 */
export async function sendAgain(
  query: Query,
  projectId: string,
  eventId: string,
  endpointId?: string,
): Promise<number> {
  const [event] = await query('select type, object_id from events where project_id = $1 and id = $2', [
    projectId,
    eventId,
  ])
  if (!event) throw new ApiError(404, 'object_not_found', `There is no event with the id "${eventId}".`)
  if (endpointId !== undefined) await requireEnabled(query, projectId, endpointId)
  const rows = await query(SEND_AGAIN, [projectId, eventId, event.type!, event.object_id!, endpointId ?? null])
  if (rows.length === 0)
    throw new ApiError(409, 'event_not_wanted', 'No enabled endpoint of the project receives this kind of event.')
  return rows.length
}

// A delivery in progress is sent again; the outcome of the earlier attempt is ignored, as that of another `scheduled_at`.
const SEND_AGAIN = `
  insert into webhook_deliveries (project_id, event_id, endpoint_id, created_at, next_attempt_at)
  select e.project_id, $2, e.id, now.at, now.at from (select db_clock() as at) now, webhook_endpoints e
  where e.project_id = $1 and e.enabled and case
    when $5::uuid is not null then e.id = $5::uuid
    when $3 = 'endpoint.test' then e.id::text = $4
    else e.kinds = '[]' or e.kinds ? $3 end
  on conflict (project_id, event_id, endpoint_id) do update
  set status = 'pending', next_attempt_at = excluded.next_attempt_at, scheduled_at = excluded.created_at, failures = 0,
    finished_at = null
  returning 1`

async function requireEnabled(query: Query, projectId: string, id: string): Promise<void> {
  const { enabled } = await findEndpoint(query, projectId, id)
  if (enabled !== 't') throw new ApiError(409, 'endpoint_disabled', 'The endpoint is disabled: enable it first.')
}

/** The endpoint's row, locked against other changes, or a 404. Deliveries to it can still be made. */
export async function findEndpoint(query: Query, projectId: string, id: string): Promise<NamedRow> {
  const [row] = isUuid(id) ? await query(FIND, [projectId, id]) : []
  if (!row) throw new ApiError(404, 'object_not_found', `There is no webhook endpoint with the id "${id}".`)
  return row
}

const FIND = `
  select * from webhook_endpoints where project_id = $1 and id = $2 and removed_at is null for no key update`

interface UrlRules {
  /** Whether private and loopback addresses, and plain HTTP, are allowed. */
  allowPrivate: boolean
}

const MAX_URL_CHARACTERS = 2048
const LISTEN =
  'For a program on this machine, run "tundish webhook listen --forward-to URL", or set WEBHOOK_ALLOW_PRIVATE=true.'

/**
 * The normalized address, or a 400 for one that is visibly wrong. Its sentence calls the address `name`, and ends with `local` where a
 * program on this machine may be meant. Host names are checked at each delivery.
 */
export function checkEndpointUrl(given: string, { allowPrivate }: UrlRules, name = 'url', local = LISTEN): string {
  const url = URL.canParse(given) ? new URL(given) : undefined
  const rule = allowPrivate ? 'begin with https:// or http://' : 'begin with https://'
  const protocols = allowPrivate ? ['https:', 'http:'] : ['https:']
  if (!url || !protocols.includes(url.protocol)) {
    const hint = url?.protocol === 'http:' ? ` ${local}` : ''
    throw new ApiError(400, 'invalid_endpoint_url', `${name} must be a URL and ${rule}.${hint}`)
  }
  if (url.username || url.password)
    throw new ApiError(400, 'invalid_endpoint_url', `${name} must not contain a user name or password.`)
  if (url.hash) throw new ApiError(400, 'invalid_endpoint_url', `${name} must not contain a fragment (#).`)
  if (url.href.length > MAX_URL_CHARACTERS)
    throw new ApiError(400, 'invalid_endpoint_url', `${name} must have at most ${MAX_URL_CHARACTERS} characters.`)
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const isPublic = isIP(host) ? isPublicAddress(host) : !/(^|\.)localhost\.?$/i.test(host)
  if (!allowPrivate && !isPublic)
    throw new ApiError(400, 'endpoint_address_not_public', `${name} must have a public address. ${local}`)
  return url.href
}

/** The URL without its query, which may have a secret. */
export const withoutQuery = (url: string): string => url.replace(/\?.*/s, '?…')

function checkKinds(kinds: string[]): string[] {
  const unknown = kinds.find((kind) => !(eventTypes as readonly string[]).includes(kind))
  if (unknown !== undefined)
    throw new ApiError(400, 'unknown_event_kind', `kinds must be event kinds, got "${unknown.slice(0, 64)}".`)
  return [...new Set(kinds)]
}
