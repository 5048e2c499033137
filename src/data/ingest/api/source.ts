// Reads another service with this API: at a limited rate, with retries, and never more of a body than memory allows.
import type { Clock } from '../../../lib/clock.ts'
import { Refusal } from '../../../lib/errors.ts'
import { hideSecrets } from '../../../lib/hide-secrets.ts'
import { printable, shorten } from '../../../lib/text.ts'
import { bodyOf, notJson, openWatch, piecesOf, TIMEOUT_MS } from './body.ts'

export interface Response {
  status: number
  /** The JSON of the body; undefined if it is none. */
  body: unknown
  headers: Headers
}

export interface SourceOptions {
  /** The address of the API, without a slash at its end. */
  url: string
  /** The header with the key. */
  headers: Record<string, string>
  clock: Clock
  signal: AbortSignal
  callsPerSecond?: number
  /** Receives a sentence before each longer pause, so that a wait of minutes is not taken for work. */
  onPause?: (sentence: string) => void
}

// Gentle to a service that others use; single records are read one by one.
const CALLS_PER_SECOND = 20
const TRIES = 8
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 60_000
// Shorter pauses are not worth a line.
const SAID_PAUSE_MS = 2000
// A service that asks for more is asked again after this time.
const LONGEST_ASKED_MS = 600_000
const OUTAGE_STATUSES = new Set([429, 502, 503, 504])
/** The most bytes of a body, and of a line of a streamed one: a page of 500 records is far smaller. */
const MAX_BODY_BYTES = 64 << 20

/** A failure that may pass. The message completes the sentence "ADDRESS …". */
class Trouble extends Error {
  readonly status: number
  readonly retryAfterMs: number

  constructor(message: string, status: number, retryAfterMs = 0) {
    super(message)
    this.status = status
    this.retryAfterMs = retryAfterMs
  }
}

/** The service sent nothing that can be used, for some minutes. */
export class Unreachable extends Refusal {
  /** Whether the service is away or overloaded. False where this path alone fails: an error page, or a 500. */
  readonly isOutage: boolean

  constructor(message: string, cause: unknown) {
    super(message)
    this.isOutage = !(cause instanceof Trouble) || OUTAGE_STATUSES.has(cause.status)
  }
}

export class ApiSource {
  readonly url: string
  readonly #options: SourceOptions
  #nextCallMs = 0

  constructor(options: SourceOptions) {
    this.url = options.url
    this.#options = options
  }

  get(path: string, query: Record<string, string> = {}): Promise<Response> {
    return this.#retried(path, (signal) => this.#once(path, query, undefined, signal))
  }

  post(path: string, body: object): Promise<Response> {
    return this.#retried(path, (signal) => this.#once(path, {}, body, signal))
  }

  /** The lines of a streamed body. Ends early, with `Broken`, where the stream breaks off. */
  async *lines(
    path: string,
    query: Record<string, string>,
    onHeaders: (headers: Headers) => void,
  ): AsyncGenerator<string> {
    const { response, watch } = await this.#retried(path, async () => this.#open(path, query, undefined))
    try {
      if (!response.ok)
        throw this.refusal(path, {
          status: response.status,
          body: bodyOf(Buffer.from(await response.arrayBuffer())),
          headers: response.headers,
        })
      onHeaders(response.headers)
      let held: Buffer[] = []
      let heldBytes = 0
      for await (const piece of piecesOf(response, watch)) {
        let start = 0
        for (let end = piece.indexOf(LINE_FEED); end >= 0; end = piece.indexOf(LINE_FEED, start)) {
          const line = Buffer.concat([...held, piece.subarray(start, end)]).toString('utf8')
          held = []
          heldBytes = 0
          start = end + 1
          // The reader of the lines may take its time; only the service is watched.
          watch.pause()
          if (line !== '') yield line
          watch.restart()
        }
        held.push(piece.subarray(start))
        heldBytes += piece.length - start
        if (heldBytes > MAX_BODY_BYTES) throw this.tooLong(path, 'sends a line of')
      }
      if (heldBytes > 0) throw new Broken('it broke off within a line')
    } catch (error) {
      this.#options.signal.throwIfAborted()
      throw error instanceof Refusal ? error : new Broken(reasonOf(error))
    } finally {
      watch.end()
    }
  }

  /** The sentence about a response that cannot be used. */
  refusal(path: string, { status, body }: Response): Refusal {
    const message = (body as { message?: unknown } | undefined)?.message
    const said = typeof message === 'string' ? ` It says: ${shorten(hideSecrets(printable(message)), 200)}` : ''
    const place = `${this.url}${path}`
    if (status === 401 || status === 403) return new Refusal(`${place} rejects the key (${status}).${said}`)
    return new Refusal(`${place} returned status ${status}.${said}`)
  }

  tooLong(path: string, what: string): Refusal {
    return new Refusal(`${this.url}${path} ${what} more than ${MAX_BODY_BYTES >> 20} MiB: that is no page of records.`)
  }

  async #once(path: string, query: Record<string, string>, sent: object | undefined, outer: AbortSignal) {
    const { response, watch } = await this.#open(path, query, sent)
    try {
      const pieces: Buffer[] = []
      let bytes = 0
      for await (const piece of piecesOf(response, watch)) {
        pieces.push(piece)
        bytes += piece.length
        if (bytes > MAX_BODY_BYTES) throw this.tooLong(path, 'sends')
        if (outer.aborted) throw new Trouble(`did not finish its response within ${TIMEOUT_MS / 1000} s`, 504)
      }
      const body = bodyOf(Buffer.concat(pieces))
      if (body === undefined && response.ok) throw new Trouble(notJson(response.headers), response.status)
      return { status: response.status, body, headers: response.headers }
    } finally {
      watch.end()
    }
  }

  /** Sends the request once, at its turn. Throws `Trouble` for what may pass. */
  async #open(path: string, query: Record<string, string>, sent: object | undefined) {
    await this.#takeTurn()
    const given = new URLSearchParams(query)
    const watch = openWatch(this.#options.signal)
    const headers = { ...this.#options.headers, ...(sent && { 'Content-Type': 'application/json' }) }
    try {
      const response = await fetch(`${this.url}${path}${given.size > 0 ? `?${given}` : ''}`, {
        method: sent ? 'POST' : 'GET',
        headers,
        ...(sent && { body: JSON.stringify(sent) }),
        // The key must not follow to another host.
        redirect: 'manual',
        signal: watch.signal,
      })
      const { status } = response
      if (status === 429 || status >= 500) {
        await response.body?.cancel()
        throw new Trouble(`returned status ${status}`, status, retryAfterMs(response.headers.get('retry-after')))
      }
      if (status >= 300 && status < 400) {
        await response.body?.cancel()
        throw new Refusal(`${this.url}${path} redirects to another address: give that one with --from.`)
      }
      return { response, watch }
    } catch (error) {
      watch.end()
      throw error
    }
  }

  async #retried<T>(path: string, work: (deadline: AbortSignal) => Promise<T>): Promise<T> {
    const { clock, signal, onPause } = this.#options
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work(AbortSignal.timeout(TIMEOUT_MS))
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof Refusal) throw error
        if (attempt === TRIES)
          throw new Unreachable(
            `${this.url}${path} could not be read, ${TRIES} times in a row (it ${reasonOf(error)}). Run the command again: it continues where it stopped.`,
            error,
          )
        const asked = error instanceof Trouble ? error.retryAfterMs : 0
        const pauseMs = Math.max(asked, Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS))
        if (pauseMs >= SAID_PAUSE_MS)
          onPause?.(
            `${this.url}${path} could not be read (it ${reasonOf(error)}): attempt ${attempt + 1} of ${TRIES} follows in ${Math.ceil(pauseMs / 1000)} s.`,
          )
        await clock.sleep(pauseMs, signal)
        signal.throwIfAborted()
      }
    }
  }

  /** Waits as long as the rate requires. */
  async #takeTurn(): Promise<void> {
    const { clock, signal, callsPerSecond = CALLS_PER_SECOND } = this.#options
    const nowMs = clock.monotonicMs()
    const atMs = Math.max(nowMs, this.#nextCallMs)
    this.#nextCallMs = atMs + 1000 / callsPerSecond
    if (atMs > nowMs) await clock.sleep(atMs - nowMs, signal)
    signal.throwIfAborted()
  }
}

/** A streamed body ended before its last line: the reader continues from its last place. */
export class Broken extends Error {}

const LINE_FEED = 0x0a

/** Seconds, or a date. */
function retryAfterMs(header: string | null): number {
  if (header === null) return 0
  const ms = /^[0-9]{1,9}$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now()
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), LONGEST_ASKED_MS) : 0
}

function reasonOf(error: unknown): string {
  if (error instanceof Trouble || error instanceof Broken) return error.message
  const { message, name, cause } = error as Error & { cause?: { message?: string; code?: string } }
  if (name === 'TimeoutError' || name === 'AbortError') return `sent nothing for ${TIMEOUT_MS / 1000} s`
  return `failed: ${cause?.message || cause?.code || message}`
}
