// Calls Airwallex's API: a token for each half hour, JSON bodies, and lists by page number.
import { ProviderError } from '../provider.ts'
import { fieldsOf, requireOwnError, Transport } from '../transport.ts'

export type Fields = Record<string, unknown>

export const AIRWALLEX_API_URL = { live: 'https://api.airwallex.com', sandbox: 'https://api-demo.airwallex.com' }

const PAGE = 100
// A token lives for 30 minutes; a new one is fetched before it ends.
const TOKEN_MS = 25 * 60_000

export interface AirwallexResponse {
  status: number
  /** The object, or {} if the response is an error. */
  body: Fields
  /** `code` and `message` of an error, or {}. */
  error: Fields
}

export class AirwallexApi {
  readonly #clientId: string
  readonly #apiKey: string
  readonly #transport: Transport
  #token: { text: string; untilMs: number } | undefined

  /** @param secretKey the client id and the API key, with a colon between them */
  constructor(secretKey: string, apiUrl: string | (() => string), maxSockets: number) {
    const [clientId = '', apiKey = ''] = secretKey.split(':')
    this.#clientId = clientId
    this.#apiKey = apiKey
    this.#transport = new Transport(typeof apiUrl === 'string' ? () => apiUrl : apiUrl, maxSockets)
  }

  get(path: string, params: Record<string, string>, signal: AbortSignal): Promise<AirwallexResponse> {
    return this.#send('GET', `${path}?${new URLSearchParams(params)}`, undefined, signal)
  }

  post(path: string, body: object, signal: AbortSignal): Promise<AirwallexResponse> {
    return this.#send('POST', path, body, signal)
  }

  /** The items of a list. Throws a `ProviderError` for a response that is no list. */
  async *all(path: string, params: Record<string, string>, signal: AbortSignal): AsyncGenerator<Fields> {
    for (let page = 0, hasMore = true; hasMore; page += 1) {
      const paging = { page_num: String(page), page_size: String(PAGE) }
      const { status, body, error } = await this.get(path, { ...params, ...paging }, signal)
      const { items, has_more } = body
      if (status !== 200) throw responseError(status, error)
      // A list that ends too early would look complete.
      if (!Array.isArray(items) || typeof has_more !== 'boolean')
        throw new ProviderError('returned something else than a page of a list')
      yield* items.map(fieldsOf)
      hasMore = has_more && items.length > 0
    }
  }

  close(): void {
    this.#transport.close()
  }

  async #send(method: 'GET' | 'POST', path: string, body: object | undefined, signal: AbortSignal) {
    const token = await this.#login(signal)
    if (typeof token !== 'string') return token
    const headers = { authorization: `Bearer ${token}`, accept: 'application/json' }
    const call = { method, path: `/api/v1/pa${path}`, headers, ...(body && { body }), maxResponseBytes: MAX_BYTES }
    const response = readResponse(await this.#transport.send(call, signal))
    // The key may have been rotated; the next call fetches another token.
    if (response.status === 401) this.#token = undefined
    return response
  }

  /** The token, or the response that says why there is none. */
  async #login(signal: AbortSignal): Promise<string | AirwallexResponse> {
    if (this.#token && performance.now() < this.#token.untilMs) return this.#token.text
    const headers = { 'x-client-id': this.#clientId, 'x-api-key': this.#apiKey }
    const call = { method: 'POST' as const, path: '/api/v1/authentication/login', body: {}, headers }
    const response = readResponse(await this.#transport.send(call, signal))
    const { token } = response.body
    if (typeof token !== 'string') return response
    this.#token = { text: token, untilMs: performance.now() + TOKEN_MS }
    return token
  }
}

const MAX_BYTES = 4 * 1024 * 1024

function readResponse({ status, body }: { status: number; body: unknown }): AirwallexResponse {
  requireOwnError(status, fieldsOf(body)['code'])
  const isGood = status === 200 || status === 201
  return { status: isGood ? 200 : status, body: isGood ? fieldsOf(body) : {}, error: isGood ? {} : fieldsOf(body) }
}

/** The error for an unusable response: its status and code, but not the message, which may name people. */
export function responseError(status: number, { code }: Fields): ProviderError {
  return new ProviderError(`returned status ${status}${typeof code === 'string' ? ` ${code.slice(0, 100)}` : ''}`)
}

/** Whether the `request_id` was used before. How long it is remembered is not published. */
export const isRepeated = ({ status, error }: AirwallexResponse) =>
  (status === 400 || status === 409) && error['code'] === 'duplicate_request'
