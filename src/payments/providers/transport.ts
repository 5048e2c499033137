// Sends HTTP requests to one provider over keep-alive connections and parses JSON responses. Every failure is a `ProviderError`.
import http from 'node:http'
import https from 'node:https'
import { isAborted } from './deadline.ts'
import { ProviderError } from './provider.ts'

export interface HttpResponse {
  status: number
  body: unknown
  /** The time of the provider when it responded, if it sent that: to the second, in milliseconds since 1970. */
  dateMs?: number | undefined
}

export interface HttpCall {
  method: 'GET' | 'POST' | 'DELETE'
  path: string
  body?: object
  /** A form-encoded body, instead of `body`. */
  form?: string
  headers?: Record<string, string>
  /** A longer response is an error. A response about one charge is some 2 KB. */
  maxResponseBytes?: number
}

const defaultMaxResponseBytes = 256 * 1024

/** The response was longer than the caller allows. */
export class TooLong extends ProviderError {}

/** No connection was made, so the provider has not received the request. */
class NotSent extends ProviderError {}

// Errors of name resolution, of connecting and of the TLS handshake, all before the first byte of the request.
const NOT_SENT =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|EADDRNOTAVAIL|ERR_TLS_CERT_ALTNAME_INVALID|CERT_\w+|UNABLE_TO_\w+|SELF_SIGNED_\w+|DEPTH_ZERO_\w+)$/

export class Transport {
  readonly #address: () => string
  readonly #agents: { 'http:': http.Agent; 'https:': https.Agent }

  /** @param address called before each request, because the address may change */
  constructor(address: () => string, maxSockets: number) {
    this.#address = address
    const kept = { keepAlive: true, maxSockets, maxFreeSockets: maxSockets }
    this.#agents = { 'http:': new http.Agent(kept), 'https:': new https.Agent(kept) }
  }

  async send(call: HttpCall, signal: AbortSignal): Promise<HttpResponse> {
    const response = await this.#send(call, signal)
    const text = await readText(response, call.maxResponseBytes ?? defaultMaxResponseBytes, signal)
    const status = response.statusCode ?? 0
    const dateMs = Date.parse(response.headers.date ?? '') || undefined
    try {
      return { status, body: parse(text), dateMs }
    } catch {
      // A proxy in front of the provider, such as one that limits the rate, rejects calls with a page or a line of text.
      if (causeOfRejection(status)) return { status, body: undefined }
      throw new ProviderError(`returned status ${status} with a body that is not JSON`)
    }
  }

  /** The lines of a long response, as they arrive. */
  async *lines(path: string, signal: AbortSignal): AsyncGenerator<string> {
    const response = await this.#send({ method: 'GET', path }, signal)
    try {
      if (response.statusCode !== 200) throw new ProviderError(`returned status ${response.statusCode}`)
      let rest = ''
      for await (const text of response.setEncoding('utf8') as AsyncIterable<string>) {
        const lines = (rest + text).split('\n')
        rest = lines.pop() ?? ''
        yield* lines
      }
      yield rest
    } catch (error) {
      throw isErrno(error) ? broken(error, signal) : error
    } finally {
      response.destroy()
    }
  }

  close(): void {
    this.#agents['http:'].destroy()
    this.#agents['https:'].destroy()
  }

  #send(call: HttpCall, signal: AbortSignal): Promise<http.IncomingMessage> {
    const payload = call.form ?? (call.body && JSON.stringify(call.body))
    return new Promise((resolve, reject) => {
      const request = this.#open(call, payload)
      const stop = () => request.destroy()
      if (isAborted(signal)) stop()
      signal.addEventListener('abort', stop, { once: true })
      let hasResponse = false
      request.on('response', (response) => {
        hasResponse = true
        resolve(response)
      })
      request.on('error', (error) => reject(broken(error, signal)))
      request.on('close', () => {
        signal.removeEventListener('abort', stop)
        // Neither `response` nor `error` was emitted: the response switched to another protocol. (The error is created only
        // if it is needed: its stack trace costs as much as a hundredth of a charge.)
        if (!hasResponse) reject(new ProviderError('the connection ended without a response'))
      })
      request.end(payload)
    })
  }

  #open({ method, path, form, headers }: HttpCall, payload: string | undefined): http.ClientRequest {
    const url = new URL(path, this.#address())
    const type = form === undefined ? 'application/json' : 'application/x-www-form-urlencoded'
    const isSecure = url.protocol === 'https:'
    return (isSecure ? https : http).request(url, {
      method,
      agent: this.#agents[isSecure ? 'https:' : 'http:'],
      headers: {
        ...headers,
        ...(payload !== undefined && { 'content-type': type, 'content-length': Buffer.byteLength(payload) }),
      },
    })
  }
}

/** The cause for the outcome `not_begun`, if no connection was made; else undefined. */
export const causeOfError = (error: ProviderError) => (error instanceof NotSent ? 'unreachable' : undefined)

/** The cause for the outcome `not_begun`, if the provider rejected the call before processing it; else undefined. */
export function causeOfRejection(status: number): 'credentials' | 'busy' | undefined {
  if (status === 401 || status === 403) return 'credentials'
  return status === 429 ? 'busy' : undefined
}

/**
 * Throws for an error without the name that all errors of the provider have: it is that of a proxy in between, and says nothing about the
 * object or the request. A rejection of the call itself may be that of a proxy, too.
 */
export function requireOwnError(status: number, name: unknown): void {
  if (status < 400 || causeOfRejection(status) || typeof name === 'string') return
  throw new ProviderError(`returned status ${status} with a body of another form`)
}

/**
 * Runs calls that follow a call to which the provider has responded. If they cannot connect, the outcome must not be `not_begun`,
 * because the first call was sent.
 */
export async function afterFirstResponse<T>(calls: () => Promise<T>): Promise<T> {
  try {
    return await calls()
  } catch (error) {
    if (error instanceof NotSent) throw new ProviderError(error.message)
    throw error
  }
}

/** The fields of a value that should be an object; {} for any other value. */
export function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? { ...value } : {}
}

/** A text of a response; null for any other value, and for an empty text. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null
}

/** A text of exactly so many digits; null for a text of another form: a payment is stored without it. */
export function digitsOf(value: unknown, count: number): string | null {
  const text = textOf(value)
  return text !== null && text.length === count && /^[0-9]+$/.test(text) ? text : null
}

/** JSON without what PostgreSQL stores in no text: NUL, and halves of surrogate pairs. An order whose id has one could not be settled. */
function parse(text: string): unknown {
  return /\\u(0000|d[89a-f])/i.test(text) ? JSON.parse(text, (_, value) => storable(value)) : JSON.parse(text)
}

function storable(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll('\0', '\ufffd').toWellFormed()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [storable(name), one]))
}

async function readText(
  response: http.IncomingMessage,
  maxResponseBytes: number,
  signal: AbortSignal,
): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxResponseBytes) throw new TooLong(`response exceeds ${maxResponseBytes} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    throw isErrno(error) ? broken(error, signal) : error
  }
  return Buffer.concat(chunks).toString('utf8')
}

function broken(error: NodeJS.ErrnoException, signal: AbortSignal): ProviderError {
  if (signal.reason instanceof ProviderError) return signal.reason
  if (error.code !== undefined && NOT_SENT.test(error.code))
    return new NotSent(`no connection was made (${error.code})`)
  return new ProviderError(`the connection broke${error.code ? ` (${error.code})` : ''}`)
}

/** Whether the error has a code, as errors of sockets and of the HTTP parser do; errors of bugs usually have none. */
function isErrno(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && 'code' in error
}
