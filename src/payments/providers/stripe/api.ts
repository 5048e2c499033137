// Calls Stripe's API: form-encoded bodies, a pinned API version, idempotency keys, and paginated lists.
import { encodeForm, type FormValue } from '../../../lib/http/form.ts'
import { NotPermitted, ProviderError } from '../provider.ts'
import { fieldsOf, requireOwnError, TooLong, Transport } from '../transport.ts'
import { notPermitted, permissionIn } from './permissions.ts'

export type Fields = Record<string, unknown>
export type Params = { readonly [name: string]: FormValue | undefined }

/** Sent with each call, so that responses have the form of this version and not of the account's default version. */
const STRIPE_VERSION = '2026-10-28.endive'
export const STRIPE_API_URL = 'https://api.stripe.com'

/** The largest page that Stripe serves. */
const PAGE = 100
// A hundred payments with their charges are some 700 KB.
const MAX_PAGE_BYTES = 8 * 1024 * 1024

export interface StripeResponse {
  status: number
  /** The object, or {} if the response is an error. */
  body: Fields
  /** The `error` object, or {}. */
  error: Fields
  /** Stripe's time when it responded, if it is known. */
  dateMs: number | undefined
}

export interface Page {
  items: Fields[]
  hasMore: boolean
}

export class StripeApi {
  readonly #secretKey: string
  readonly #transport: Transport
  /** Of lists whose pages were too long: how many objects a page may have. */
  readonly #pageSizes = new Map<string, number>()
  /** Null once it is known that the key belongs to this account. */
  #accountId: string | null

  /** @param accountId Stripe's id of the account that the key has to belong to; null: any */
  constructor(secretKey: string, apiUrl: string | (() => string), maxSockets: number, accountId: string | null = null) {
    this.#secretKey = secretKey
    this.#accountId = accountId
    this.#transport = new Transport(typeof apiUrl === 'string' ? () => apiUrl : apiUrl, maxSockets)
  }

  /** Whether the key may lack permissions. */
  get isRestricted(): boolean {
    return this.#secretKey.startsWith('rk_')
  }

  /** A page that is too long is read again with half as many objects, and so are the next ones of its list. */
  async get(path: string, params: Params, signal: AbortSignal): Promise<StripeResponse> {
    const { limit } = params
    if (typeof limit !== 'number') return this.#send('GET', path, params, signal)
    const most = Math.min(limit, this.#pageSizes.get(path) ?? limit)
    try {
      return await this.#send('GET', path, { ...params, limit: most }, signal)
    } catch (error) {
      if (!(error instanceof TooLong) || most === 1) throw error
      this.#pageSizes.set(path, Math.ceil(most / 2))
      return this.get(path, params, signal)
    }
  }

  /** @param key the idempotency key: a second call with it has no effect and returns the first response */
  post(path: string, params: Params, key: string | undefined, signal: AbortSignal): Promise<StripeResponse> {
    return this.#send('POST', path, params, signal, key)
  }

  delete(path: string, signal: AbortSignal): Promise<StripeResponse> {
    return this.#send('DELETE', path, {}, signal)
  }

  /** Reads one page of a list. Throws a `ProviderError` for any other response. */
  async page(path: string, params: Params, signal: AbortSignal): Promise<Page> {
    const { status, body, error } = await this.get(path, { limit: PAGE, ...params }, signal)
    if (status === 403) throw notPermitted(path, error)
    if (status !== 200) throw responseError(status, error)
    if (!isPage(body, params['starting_after']))
      throw new ProviderError('returned something else than a page of a list')
    return { items: body['data'].map(fieldsOf), hasMore: body['has_more'] }
  }

  /** Every object of a list, newest first. */
  all(path: string, params: Params, signal: AbortSignal): AsyncGenerator<Fields> {
    return eachItem((starting_after) => this.page(path, { ...params, starting_after }, signal))
  }

  close(): void {
    this.#transport.close()
  }

  /** With a key of another account every object is missing. Throws `WrongAccount` then: a card that is missing is not a declined one. */
  async #requireAccount(signal: AbortSignal): Promise<void> {
    if (this.#accountId === null) return
    const { status, body, error } = await this.get('/v1/account', {}, signal)
    // Without the permission it cannot be known.
    if (status === 403) return
    if (status !== 200) throw responseError(status, error)
    if (body['id'] !== this.#accountId)
      throw new WrongAccount(`has another account, ${String(body['id'])}, for the secret key than ${this.#accountId}`)
    this.#accountId = null
  }

  async #send(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    params: Params,
    signal: AbortSignal,
    key?: string,
  ): Promise<StripeResponse> {
    const form = encodeForm(params)
    const isPost = method === 'POST'
    const { status, body, dateMs } = await this.#transport.send(
      {
        method,
        path: form === '' || isPost ? path : `${path}?${form}`,
        ...(isPost && { form }),
        headers: {
          authorization: `Bearer ${this.#secretKey}`,
          'stripe-version': STRIPE_VERSION,
          ...(key !== undefined && { 'idempotency-key': key }),
        },
        maxResponseBytes: MAX_PAGE_BYTES,
      },
      signal,
    )
    const fields = fieldsOf(body)
    const error = fieldsOf(fields['error'])
    requireOwnError(status, error['type'])
    if (error['code'] === 'resource_missing') await this.#requireAccount(signal)
    return { status, body: status === 200 ? fields : {}, error, dateMs }
  }
}

/** The key belongs to another account than the merchant account was connected to, so nothing that it lacks is really gone. */
export class WrongAccount extends ProviderError {}

/**
 * Whether the body is a page of a list, which can be continued if it says so. A list that ends too early would look complete: a
 * restore would take the account for compared.
 */
export function isPage(body: Fields, after: unknown): body is { data: unknown[]; has_more: boolean } {
  const { data, has_more } = body
  if (!Array.isArray(data) || typeof has_more !== 'boolean') return false
  const ids = data.map((item) => fieldsOf(item)['id'])
  return ids.every((id) => typeof id === 'string') && (!has_more || (ids.length > 0 && ids.at(-1) !== after))
}

/** The items of all pages. `page` reads the page that follows the object with the id `after`. */
export async function* eachItem(page: (after: string | undefined) => Promise<Page>): AsyncGenerator<Fields> {
  let after: string | undefined
  do {
    const { items, hasMore } = await page(after)
    yield* items
    const last = items.at(-1)?.['id']
    after = hasMore && typeof last === 'string' ? last : undefined
  } while (after !== undefined)
}

/**
 * The error for an unusable response: the permission that the key lacks, or its status and Stripe's code, but not Stripe's message,
 * which may contain customer ids.
 */
export function responseError(status: number, error: Fields): ProviderError {
  const permission = status === 403 ? permissionIn(error) : undefined
  if (permission !== undefined) return new NotPermitted(permission)
  const code = [error['code'], error['type']].find((word) => typeof word === 'string')
  return new ProviderError(`returned status ${status}${code ? ` ${code}` : ''}`)
}

/** The path of an object. The id is encoded, because it comes from imports and may contain any characters. */
export function pathOf(collection: string, id: string, verb = ''): string {
  return `/v1/${collection}/${encodeURIComponent(id)}${verb && `/${verb}`}`
}
