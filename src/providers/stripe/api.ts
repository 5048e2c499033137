// Calls of Stripe's API: form bodies, the pinned version, idempotency keys, and pages of lists.
import { encodeForm, type FormValue } from '../../lib/http/form.ts'
import { ProviderTrouble } from '../provider.ts'
import { fieldsOf, NotSent, Transport } from '../transport.ts'

export type Fields = Record<string, unknown>
export type Params = { readonly [name: string]: FormValue | undefined }

/** Answers have the form of this version whatever the account's own default is. */
const STRIPE_VERSION = '2026-10-28.endive'
export const STRIPE_API_URL = 'https://api.stripe.com'

/** Stripe's own limit for a page. */
export const PAGE = 100
// A hundred payments with their charges are some 700 KB.
const MAX_PAGE_BYTES = 8 * 1024 * 1024

export interface StripeAnswer {
  status: number
  /** The object, or {} where the answer is an error. */
  body: Fields
  /** The `error` object, or {}. */
  error: Fields
}

export interface Page {
  items: Fields[]
  hasMore: boolean
}

export class StripeApi {
  readonly #secretKey: string
  readonly #transport: Transport

  constructor(secretKey: string, apiUrl: string | (() => string), maxSockets: number) {
    this.#secretKey = secretKey
    this.#transport = new Transport(typeof apiUrl === 'string' ? () => apiUrl : apiUrl, maxSockets)
  }

  get(path: string, params: Params, signal: AbortSignal): Promise<StripeAnswer> {
    return this.#ask('GET', path, params, signal)
  }

  /** @param key the idempotency key: a second call with it does nothing and is answered like the first */
  post(path: string, params: Params, key: string | undefined, signal: AbortSignal): Promise<StripeAnswer> {
    return this.#ask('POST', path, params, signal, key)
  }

  delete(path: string, signal: AbortSignal): Promise<StripeAnswer> {
    return this.#ask('DELETE', path, {}, signal)
  }

  /** One page of a list and whether there are more. Throws `ProviderTrouble` for any other answer. */
  async page(path: string, params: Params, signal: AbortSignal): Promise<Page> {
    const { status, body, error } = await this.get(path, { limit: PAGE, ...params }, signal)
    if (status !== 200 || !Array.isArray(body['data'])) throw trouble(status, error)
    return { items: body['data'].map(fieldsOf), hasMore: body['has_more'] === true }
  }

  /** Every object of a list, newest first. */
  all(path: string, params: Params, signal: AbortSignal): AsyncGenerator<Fields> {
    return eachItem((starting_after) => this.page(path, { ...params, starting_after }, signal))
  }

  close(): void {
    this.#transport.close()
  }

  async #ask(
    method: 'GET' | 'POST' | 'DELETE',
    path: string,
    params: Params,
    signal: AbortSignal,
    key?: string,
  ): Promise<StripeAnswer> {
    const form = encodeForm(params)
    const isPost = method === 'POST'
    const { status, body } = await this.#transport.ask(
      {
        method,
        path: form === '' || isPost ? path : `${path}?${form}`,
        ...(isPost && { form }),
        headers: {
          authorization: `Bearer ${this.#secretKey}`,
          'stripe-version': STRIPE_VERSION,
          ...(key !== undefined && { 'idempotency-key': key }),
        },
        maxAnswerBytes: MAX_PAGE_BYTES,
      },
      signal,
    )
    const fields = fieldsOf(body)
    return { status, body: status === 200 ? fields : {}, error: fieldsOf(fields['error']) }
  }
}

/** The items of all pages; `page` reads the one after the object with this id. */
export async function* eachItem(page: (after: string | undefined) => Promise<Page>): AsyncGenerator<Fields> {
  let after: string | undefined
  do {
    const { items, hasMore } = await page(after)
    yield* items
    const last = items.at(-1)?.['id']
    after = hasMore && typeof last === 'string' ? last : undefined
  } while (after !== undefined)
}

/** What could not be made use of, by status and Stripe's own code: its sentences may hold ids of customers. */
export function trouble(status: number, error: Fields): ProviderTrouble {
  const code = [error['code'], error['type']].find((word) => typeof word === 'string')
  return new ProviderTrouble(`answered ${status}${code ? ` ${code}` : ''}`)
}

/**
 * Runs calls that follow one that Stripe has answered. When these meet no connection, the first was sent all the same, so
 * that `NotSent` would be wrong.
 */
export async function onceAnswered<T>(calls: () => Promise<T>): Promise<T> {
  try {
    return await calls()
  } catch (error) {
    if (error instanceof NotSent) throw new ProviderTrouble(error.message)
    throw error
  }
}

/** Why nothing was begun, for an answer that came before the call was looked at; undefined for others. */
export function turnedAway(status: number): 'credentials' | 'busy' | undefined {
  if (status === 401 || status === 403) return 'credentials'
  return status === 429 ? 'busy' : undefined
}

/** The path of an object; ids come from elsewhere and may hold anything. */
export function pathOf(collection: string, id: string, verb = ''): string {
  return `/v1/${collection}/${encodeURIComponent(id)}${verb && `/${verb}`}`
}
