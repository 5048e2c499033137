// Calls Primer's API: JSON bodies, a pinned API version, idempotency keys, and paginated lists.
import { ProviderError } from '../provider.ts'
import { fieldsOf, requireOwnError, Transport } from '../transport.ts'

export type Fields = Record<string, unknown>

/** Sent with each call. Without it Primer responds in the form of its oldest version. */
const PRIMER_VERSION = '2.4'
export const PRIMER_API_URL = { live: 'https://api.primer.io', sandbox: 'https://api.sandbox.primer.io' }

/** The largest page that Primer serves. */
const PAGE = 100
// A hundred summaries with metadata are some 100 KB, and a payment with many attempts some 20 KB.
const MAX_BYTES = 4 * 1024 * 1024

export interface PrimerResponse {
  status: number
  /** The object, or {} if the response is an error. */
  body: Fields
  /** The `error` object, or {}. */
  error: Fields
}

export class PrimerApi {
  readonly #apiKey: string
  readonly #transport: Transport

  constructor(apiKey: string, apiUrl: string | (() => string), maxSockets: number) {
    this.#apiKey = apiKey
    this.#transport = new Transport(typeof apiUrl === 'string' ? () => apiUrl : apiUrl, maxSockets)
  }

  get(path: string, params: Record<string, string | undefined>, signal: AbortSignal): Promise<PrimerResponse> {
    const given = Object.entries(params).filter((one): one is [string, string] => one[1] !== undefined)
    const query = new URLSearchParams(given).toString()
    return this.#send('GET', query === '' ? path : `${path}?${query}`, undefined, signal)
  }

  /** @param key the idempotency key: Primer processes a request once for each, and returns 409 for later ones, without the result */
  post(path: string, body: object, key: string | undefined, signal: AbortSignal): Promise<PrimerResponse> {
    return this.#send('POST', path, body, signal, key)
  }

  delete(path: string, signal: AbortSignal): Promise<PrimerResponse> {
    return this.#send('DELETE', path, undefined, signal)
  }

  /** Reads one page of the list of payments. Throws a `ProviderError` for any other response. */
  async page(
    params: Record<string, string | undefined>,
    signal: AbortSignal,
  ): Promise<{ items: Fields[]; next: string | undefined }> {
    const { status, body, error } = await this.get('/payments', { limit: String(PAGE), ...params }, signal)
    const { data, nextCursor } = body
    if (status !== 200) throw responseError(status, error)
    // A list that ends too early would look complete: a restore would take the account for compared.
    if (!Array.isArray(data) || (nextCursor && typeof nextCursor !== 'string'))
      throw new ProviderError('returned something else than a page of a list')
    const next = typeof nextCursor === 'string' && nextCursor !== '' ? nextCursor : undefined
    if (next !== undefined && next === params['cursor']) throw new ProviderError('listed the same page again')
    return { items: data.map(fieldsOf), next }
  }

  close(): void {
    this.#transport.close()
  }

  async #send(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    body: object | undefined,
    signal: AbortSignal,
    key?: string,
  ): Promise<PrimerResponse> {
    const response = await this.#transport.send(
      {
        method,
        path,
        ...(body !== undefined && { body }),
        headers: {
          'x-api-key': this.#apiKey,
          'x-api-version': PRIMER_VERSION,
          accept: 'application/json',
          ...(key !== undefined && { 'x-idempotency-key': key }),
        },
        maxResponseBytes: MAX_BYTES,
      },
      signal,
    )
    const { status } = response
    const fields = fieldsOf(response.body)
    const error = fieldsOf(fields['error'])
    requireOwnError(status, error['errorId'])
    return { status, body: status === 200 ? fields : {}, error }
  }
}

/** The error for an unusable response: its status and Primer's id of the error, but not the description, which may name people. */
export function responseError(status: number, error: Fields): ProviderError {
  const { errorId } = error
  return new ProviderError(`returned status ${status}${typeof errorId === 'string' ? ` ${errorId.slice(0, 100)}` : ''}`)
}

/**
 * Whether Primer says that it has processed the key before. By its guide that is 409 `IdempotencyKeyAlreadyExists`, the reference of
 * "Create a payment" 400 `TransactionRequestIdempotencyKeyAlreadyExists`.
 */
export const isKeyKnown = ({ status, error }: PrimerResponse): boolean =>
  (status === 409 || status === 400) && /IdempotencyKey/i.test(String(error['errorId']))

/** The path of a payment. The id is encoded, because it comes from imports and may contain any characters. */
export const paymentPath = (id: string, verb = '') => `/payments/${encodeURIComponent(id)}${verb && `/${verb}`}`
