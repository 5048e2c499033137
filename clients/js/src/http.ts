// Sends requests with a key, a time limit, and retries where a second request can do no harm.
import { errorOf, TundishConnectionError, TundishError } from './errors.ts'
import { jsonOf } from './exact.ts'

export interface HttpOptions {
  /** The address of the server, such as `https://tundish.example.com`. */
  url: string
  /** How often a request is tried again that may be; 4 by default. */
  retries?: number | undefined
  /** How long an answer, or the next part of a streamed one, may take; 30,000 by default. */
  timeoutMs?: number | undefined
  /** By default the runtime's own. */
  fetch?: typeof fetch | undefined
}

export interface Call {
  path: string
  headers: Record<string, string>
  query?: Record<string, unknown>
  /** A text is sent as it is, anything else as JSON. */
  body?: unknown
  /**
   * When to try again: `safe` after any failure that may pass, `refused` only when the server says that nothing was done.
   */
  retry: 'safe' | 'refused'
  signal?: AbortSignal | undefined
  /** `JSON.parse` by default. */
  parse?: (text: string) => unknown
  /** Called with the headers of a streamed answer, before its first line. */
  onHeaders?: (headers: Headers) => void
}

export interface Http {
  /** The JSON of a successful answer. Throws `TundishError` or `TundishConnectionError`. */
  json<T>(call: Call): Promise<{ body: T; headers: Headers }>
  /** The lines of a streamed answer; throws `TundishConnectionError` where it breaks off. */
  lines(call: Call): AsyncGenerator<string>
  timeoutMs: number
}

const FIRST_WAIT_MS = 500
const LONGEST_WAIT_MS = 30_000
// Of what `Retry-After` asks. A timer of 25 days would end at once.
const LONGEST_ASKED_MS = 3_600_000

export function openHttp(options: HttpOptions): Http {
  const { retries = 4, timeoutMs = 30_000, fetch: send = fetch } = options
  if (!/^https?:\/\//.test(options.url))
    throw new TypeError('Give the client the url of the server, such as https://tundish.example.com.')
  const base = options.url.replace(/\/+$/, '')

  async function attempt(call: Call): Promise<{ response: Response; watch: Watch }> {
    const { path, query = {}, headers, body } = call
    // Before the watch, which would keep the program running when a value cannot be sent.
    const post = body === undefined ? {} : postOf(headers, body)
    const url = `${base}${path}${queryString(query)}`
    const watch = openWatch(timeoutMs, call.signal)
    const init: RequestInit = { headers: { ...headers }, signal: watch.signal, redirect: 'manual', ...post }
    try {
      const response = await send(url, init)
      if (!response.ok) throw await errorOf(response)
      return { response, watch }
    } catch (error) {
      watch.end()
      throw asError(error, call)
    }
  }

  async function retried<T>(call: Call, work: () => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries += 1) {
      try {
        return await work()
      } catch (error) {
        if (tries >= retries || !mayRetry(error, call.retry)) throw error
        await wait(waitMs(error, tries), call.signal)
      }
    }
  }

  return {
    timeoutMs,
    json: <T>(call: Call) =>
      retried(call, async () => {
        const { response, watch } = await attempt(call)
        try {
          return { body: parseOrThrow(await response.text(), call.parse) as T, headers: response.headers }
        } catch (error) {
          throw asError(error, call)
        } finally {
          watch.end()
        }
      }),
    async *lines(call) {
      const { response, watch } = await retried(call, () => attempt(call))
      try {
        call.onHeaders?.(response.headers)
        yield* linesOf(response, watch)
      } catch (error) {
        throw asError(error, call)
      } finally {
        watch.end()
      }
    },
  }
}

const postOf = (headers: Record<string, string>, body: unknown): RequestInit => ({
  method: 'POST',
  body: typeof body === 'string' ? body : jsonOf(body)!,
  headers: { ...headers, 'Content-Type': 'application/json' },
})

async function* linesOf(response: Response, watch: Watch): AsyncGenerator<string> {
  const reader = response.body!.getReader()
  const decoder = new TextDecoder()
  let rest = ''
  try {
    // It may end without a line feed, as a line that broke off does.
    if (response.headers.get('content-type')?.startsWith('text/html'))
      throw new TundishConnectionError('The response is an HTML page: check the address.')
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      const parts = (rest + decoder.decode(value, { stream: true })).split('\n')
      rest = parts.pop()!
      // The reader of the lines may take its time; only the server is watched.
      watch.pause()
      yield* parts
      watch.restart()
    }
  } finally {
    await reader.cancel().catch(() => {})
  }
  if (rest !== '') throw new TundishConnectionError('The answer broke off within a line.')
}

/** The value of a text that the server sent; a proxy may have put another in its place. */
export function parseOrThrow(text: string, parse: (text: string) => unknown = JSON.parse): unknown {
  try {
    return parse(text)
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause
    throw new TundishConnectionError('The response is not valid JSON: it broke off, or a proxy sent it.', { cause })
  }
}

/** An empty string, or `?` and the parameters that have a value. */
export function queryString(query: Record<string, unknown>): string {
  const given = new URLSearchParams()
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value))
  return given.size === 0 ? '' : `?${given}`
}

/** Nothing was done: the request did not arrive as a whole, or came too soon. Such a request may always be sent again. */
export const isNotDone = ({ status }: TundishError): boolean => status === 408 || status === 429

/** Such as a wrong key: waiting does not help. */
export const isRefusal = (error: unknown): boolean =>
  error instanceof TundishError && error.status < 500 && !isNotDone(error)

/** Statuses after which nothing was done, or, for `safe`, that may pass. */
function mayRetry(error: unknown, retry: Call['retry']): boolean {
  if (error instanceof TundishConnectionError) return retry === 'safe'
  if (!(error instanceof TundishError)) return false
  return isNotDone(error) || (retry === 'safe' && error.status >= 500)
}

/** How long to wait before the next of so many tries. */
export function waitMs(error: unknown, tries: number): number {
  const asked = error instanceof TundishError ? Math.min(error.retryAfterMs ?? 0, LONGEST_ASKED_MS) : 0
  const backoff = Math.min(FIRST_WAIT_MS * 2 ** tries, LONGEST_WAIT_MS)
  // Up to a quarter more, so that many clients do not come back at once.
  return Math.max(asked, backoff) * (1 + Math.random() / 4)
}

/** Resolves after so many milliseconds; rejects when the signal is aborted. */
export function wait(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer)
      reject(signal!.reason)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    if (signal?.aborted) stop()
    else signal?.addEventListener('abort', stop, { once: true })
  })
}

/** Errors of `fetch` are of many kinds: what is neither a refusal nor the caller's abort is a connection error. */
function asError(error: unknown, { signal }: Call): unknown {
  if (error instanceof TundishError || error instanceof TundishConnectionError) return error
  if (signal?.aborted) return signal.reason
  const { message, cause } = error as { message?: string; cause?: { message?: string } }
  return new TundishConnectionError(cause?.message ?? message ?? String(error), { cause: error })
}

interface Watch {
  signal: AbortSignal
  pause(): void
  restart(): void
  end(): void
}

/** Aborts when nothing arrived for `timeoutMs`, or when the caller's signal is aborted. */
function openWatch(timeoutMs: number, outer: AbortSignal | undefined): Watch {
  const controller = new AbortController()
  const expire = () => controller.abort(new TundishConnectionError(`No answer within ${timeoutMs} ms.`))
  const forward = () => controller.abort(outer!.reason)
  let timer: ReturnType<typeof setTimeout> | undefined
  const watch = {
    signal: controller.signal,
    pause: () => clearTimeout(timer),
    restart() {
      clearTimeout(timer)
      timer = setTimeout(expire, timeoutMs)
    },
    end() {
      clearTimeout(timer)
      outer?.removeEventListener('abort', forward)
    },
  }
  if (outer?.aborted) forward()
  else outer?.addEventListener('abort', forward, { once: true })
  watch.restart()
  return watch
}
