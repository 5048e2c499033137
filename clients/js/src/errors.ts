// What a call can fail with: an answer that is a refusal, or no answer at all.

/** The server refused the request, or could not carry it out. */
export class TundishError extends Error {
  override name = 'TundishError'
  readonly status: number
  /** The stable word of `X-Error-Code`, such as `charge_in_progress`; empty when a proxy answered. */
  readonly code: string
  /** Leads to the request in the server's log. */
  readonly requestId: string
  /** How long the server asks to wait, if it does. */
  readonly retryAfterMs: number | undefined
  /** The body of the answer. */
  readonly body: unknown

  constructor(message: string, answer: Pick<TundishError, 'status' | 'code' | 'requestId' | 'retryAfterMs' | 'body'>) {
    super(message)
    this.status = answer.status
    this.code = answer.code
    this.requestId = answer.requestId
    this.retryAfterMs = answer.retryAfterMs
    this.body = answer.body
  }
}

/**
 * No answer of the server arrived: the connection failed, the time ran out, or a proxy sent something else. The request may have
 * been carried out.
 */
export class TundishConnectionError extends Error {
  override name = 'TundishConnectionError'
}

export const notFromTundish = () => new TundishConnectionError('The response is not from Tundish: check the url.')

/** The error of an answer whose status is not 2xx. */
export async function errorOf(response: Response): Promise<TundishError> {
  const text = await response.text().catch(() => '')
  const body = parseOrUndefined(text)
  const { message } = (body ?? {}) as { message?: unknown }
  const { status, headers } = response
  return new TundishError(typeof message === 'string' ? message : sentenceOf(response), {
    status,
    code: headers.get('x-error-code') ?? '',
    requestId: headers.get('x-request-id') ?? '',
    retryAfterMs: retryAfterOf(headers),
    body: body ?? text,
  })
}

/** Seconds, or an instant by the server's clock: ours may be wrong. */
function retryAfterOf(headers: Headers): number | undefined {
  const given = headers.get('retry-after') ?? ''
  const now = Date.parse(headers.get('date') ?? '') || Date.now()
  const ms = /^\d+$/.test(given) ? Number(given) * 1000 : Date.parse(given) - now
  return ms >= 0 ? ms : undefined
}

/** A redirect is not followed: the key would go to another address. Some runtimes hide its status. */
function sentenceOf({ status, type }: Response): string {
  const isRedirect = type === 'opaqueredirect' || (status >= 300 && status < 400)
  return isRedirect ? 'The server redirects: give the client its final address.' : `The server answered ${status}.`
}

function parseOrUndefined(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
