// Reads single records of a service: what lists show less of, and the replies of a session.
import { type Item, type ItemKind, isObject, type Json, unwrapped, withDetail } from './convert.ts'
import type { ListName } from './pages.ts'
import type { ApiSource } from './source.ts'

/** A field that some services show in details only: an item without it is read once more. */
const IN_DETAIL: Partial<Record<ItemKind, string>> = {
  funnel: 'environment',
  product: 'prices',
  profile: 'integrations',
  session: 'query_params',
}

/** An item with what only its detail shows, and a session with its replies. */
export async function detailed(source: ApiSource, { kind, path }: ListName, item: Json): Promise<Item[]> {
  const id = String(item.id)
  const mark = IN_DETAIL[kind]
  // The specification shows session, experiment, trial and cancellation of a subscription in its detail.
  const isShort = kind === 'subscription' || (mark !== undefined && !(mark in item))
  const whole = { kind, data: withDetail(item, isShort ? await findOne(source, path, id) : undefined) }
  if (kind !== 'session' || hasNoReplies(whole.data)) return [whole]
  return [whole, { kind: 'replies', data: await readReplies(source, id) }]
}

/** Whether the detail of a session says that it has no replies. */
export const hasNoReplies = ({ replies }: Json): boolean => Array.isArray(replies) && replies.length === 0

/** The replies of a session, with the session's id. */
export async function readReplies(source: ApiSource, session_id: string): Promise<Json> {
  const path = `/sessions/${encodeURIComponent(session_id)}/replies`
  const response = await source.get(path)
  if (response.status !== 200 && response.status !== 404) throw source.refusal(path, response)
  const replies = unwrapped(response.body)
  return { session_id, replies: isObject(replies) ? replies.data : replies }
}

/** One record by its id; undefined if the service does not have it. */
export async function findOne(source: ApiSource, path: string, id: string): Promise<Json | undefined> {
  const response = await source.get(`${path}/${encodeURIComponent(id)}`)
  if (response.status === 404 || response.status === 400) return undefined
  if (response.status !== 200) throw source.refusal(path, response)
  const body = unwrapped(response.body)
  return isObject(body) && body.id === id ? body : undefined
}
