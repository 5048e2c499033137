// One call that writes records: what was rejected, and whether fewer records may pass where the call is refused as a whole.
import { notFromTundish, TundishError } from './errors.ts'
import { type Http, isNotDone, isRefusal } from './http.ts'

export interface Reject {
  index: number
  code: string
  reason: string
}

type Post = (texts: string[]) => Promise<unknown>

export interface RecordsCall {
  headers: Record<string, string>
  query: { events: 'on' | 'off' }
  signal: AbortSignal
}

/** Sends records once, each as JSON. Returns the rejects, or `tooMany`: sent in smaller calls, some of them may be written. */
export async function postRecords(
  http: Http,
  call: RecordsCall,
  texts: string[],
  isSecond = false,
): Promise<Reject[] | 'tooMany'> {
  const whole = {
    ...call,
    path: '/public/v1/records',
    query: { ...call.query, skip_bad: true },
    retry: 'refused',
  } as const
  const post: Post = async (some) => (await http.json({ ...whole, body: `{"records":[${some.join()}]}` })).body
  try {
    const body = await post(texts)
    if (!hasRejects(body)) throw notFromTundish()
    return body.rejects
  } catch (error) {
    if (!(error instanceof TundishError)) throw error
    if (hasRejects(error.body)) return error.body.rejects
    if (!(await isForRecords(error, post))) throw error
    if (texts.length > 1) return 'tooMany'
    // Once more: a firewall that is overloaded refuses now and then what it lets pass a moment later.
    if (error.code === '' && !isSecond) return postRecords(http, call, texts, true)
    return [rejectOf(error)]
  }
}

const hasRejects = (body: unknown): body is { rejects: Reject[] } =>
  Array.isArray((body as { rejects?: unknown } | null)?.rejects)

/** Whether it is the records that are refused. A firewall that refuses everything, or a proxy that alters calls, says nothing of them. */
async function isForRecords(error: TundishError, post: Post): Promise<boolean> {
  if (error.code !== '' && error.status !== 400 && error.status !== 413) return false
  return error.status < 500 && !isNotDone(error) && (await reachesTundish(post))
}

/**
 * A call without records passes each firewall that looks at records; Tundish refuses it after it has checked the key. Throws what may
 * pass: it says nothing of the firewall.
 */
async function reachesTundish(post: Post): Promise<boolean> {
  const error: unknown = await post([]).catch((error) => error)
  if (error instanceof Error && !isRefusal(error)) throw error
  return error instanceof TundishError && error.code === 'invalid_property'
}

function rejectOf({ code, message, status }: TundishError): Reject {
  if (code !== '') return { index: 0, code, reason: message }
  return { index: 0, code: 'refused_by_proxy', reason: `A proxy or firewall refused it with status ${status}.` }
}
