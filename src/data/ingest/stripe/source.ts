// Reads a Stripe account: pages of lists and single objects, at a limited rate, with retries.
import type { Clock } from '../../../lib/clock.ts'
import { Refusal } from '../../../lib/errors.ts'
import { ProviderError } from '../../../payments/providers/provider.ts'
import {
  type Fields,
  isPage,
  type Params,
  pathOf,
  STRIPE_API_URL,
  StripeApi,
  type StripeResponse,
} from '../../../payments/providers/stripe/api.ts'
import { notPermitted, permissionIn } from '../../../payments/providers/stripe/permissions.ts'
import { troubleOf } from './trouble.ts'

/** The objects at which a list could continue were deleted at Stripe. */
export class CursorGone extends Error {}

/** The secret key has no permission to read a list. */
export class NotPermitted extends Refusal {
  /** By Stripe's name of it. */
  readonly permission: string

  constructor(path: string, error: StripeResponse['error']) {
    // It may be that of an object within: a coupon in a subscription.
    const word = permissionIn(error)
    const permission = `the read permission at Stripe${word === undefined ? '' : ` (${word})`}`
    super(`The secret key may not read ${path.replace('/v1/', '')}: give it ${permission}.`)
    this.permission = notPermitted(path, error).permission
  }
}

/** Stripe did not respond for some minutes. */
export class Unreachable extends Refusal {
  readonly why: string
  readonly path: string
  /** The path with its parameters. */
  readonly call: string

  constructor(why: string, path: string, call: string) {
    super(`Stripe could not be read for some minutes (it ${why}). Import again: the import continues where it stopped.`)
    this.why = why
    this.path = path
    this.call = call
  }
}

export interface Page<T> {
  data: T[]
  hasMore: boolean
}

export interface SourceOptions {
  secretKey: string
  /** The key that replaces it while the account is read; rejects if the account has none any longer. Left out: none replaces it. */
  presentKey?: (() => Promise<string>) | undefined
  apiUrl?: string | (() => string) | undefined
  clock: Clock
  /** The most calls a second. Stripe allows an account about 100, and charges need theirs. */
  callsPerSecond?: number
  signal: AbortSignal
  /** How often a call is made that Stripe does not serve. */
  tries?: number | undefined
  /** Waits for a turn in the rate that the account's calls share in this process. */
  takeTurn?: ((signal: AbortSignal) => Promise<void>) | undefined
}

const CALLS_PER_SECOND = 25
const CALL_TIMEOUT_MS = 60_000
// Retries for some minutes: after half a second at first, then twice as long each time.
const TRIES = 10
const FIRST_PAUSE_MS = 500
const LONGEST_PAUSE_MS = 60_000
// For the calls after one that failed for some minutes: a few tries show whether Stripe serves others.
const TRIES_AFTER = 3
// Lists may take hours, in which the key may be replaced or removed.
const KEY_AGE_MS = 1000
const PAGE = 100
const CURSOR = 'starting_after'

export class StripeSource {
  readonly #options: SourceOptions
  #api: StripeApi
  #secretKey: string
  #keyReadMs: number
  #nextCallMs = 0
  #firstMs: number | undefined
  #latestMs: number | undefined
  /** The calls that failed at every try, and whether none has succeeded since the latest of them. */
  readonly #unserved = new Set<string>()
  #isDown = false

  constructor(options: SourceOptions) {
    this.#options = options
    this.#secretKey = options.secretKey
    this.#keyReadMs = options.clock.monotonicMs()
    this.#api = this.#open()
  }

  #open(): StripeApi {
    return new StripeApi(this.#secretKey, this.#options.apiUrl ?? STRIPE_API_URL, 2)
  }

  /** One page of a list, newest first, behind the object with the id `after`; an empty one if the list is of an object that is gone. */
  async page<T>(path: string, params: Params, after?: string): Promise<Page<T>> {
    const asked = { limit: PAGE, ...params, [CURSOR]: after }
    const { status, body, error } = await this.#get(path, asked, (given) => isPage(given, after))
    if (error['code'] === 'resource_missing') {
      if (after !== undefined && (error['param'] ?? CURSOR) === CURSOR) throw new CursorGone()
      return { data: [], hasMore: false }
    }
    if (status !== 200) throw refusal(path, status, error)
    return { data: body['data'] as T[], hasMore: body['has_more'] === true }
  }

  /** All pages of a list. */
  async *pages<T extends { id: string }>(path: string, params: Params, from?: string): AsyncGenerator<T[]> {
    let before = from === undefined ? [] : [from]
    for (;;) {
      const { data, hasMore } = await this.#pageBehind<T>(path, params, before)
      if (data.length > 0) yield data
      if (!hasMore || data.length === 0) return
      before = data.map(({ id }) => id)
    }
  }

  /** The page behind the last of these objects that was not deleted since it was read. */
  async #pageBehind<T>(path: string, params: Params, before: string[]): Promise<Page<T>> {
    for (const after of before.toReversed()) {
      const page = await this.page<T>(path, params, after).catch(unlessGone)
      if (page) return page
    }
    if (before.length > 0) throw new CursorGone()
    return this.page<T>(path, params)
  }

  /** One object; undefined when Stripe does not have it, or does not show it with these expansions. */
  async one<T>(collection: string, id: string, params: Params = {}): Promise<T | undefined> {
    const { status, body, error } = await this.#get(pathOf(collection, id), params, isObject)
    if (status === 200) return body as T
    // Only wrong credentials and outages end an import.
    if (status === 401 || status === 403) throw refusal(collection, status, error)
    return undefined
  }

  /** The id of the account that the key belongs to. */
  async accountId(): Promise<string> {
    const { status, body, error } = await this.#get('/v1/account', {}, isObject)
    if (status !== 200) throw refusal('/v1/account', status, error)
    return String(body['id'])
  }

  /** Stripe's time at the first response, which its events are compared with: the clocks of this machine and of the database may be wrong. */
  get begunMs(): number {
    return this.#firstMs ?? Date.now()
  }

  /** Stripe's time at the latest response. */
  get nowMs(): number {
    return this.#latestMs ?? Date.now()
  }

  close(): void {
    this.#api.close()
  }

  /** A response whose body is of another form, as a proxy may send it, is repeated like one of an outage. */
  async #get(path: string, params: Params, isWhole: (body: Fields) => boolean): Promise<StripeResponse> {
    const { clock, signal, tries = TRIES } = this.#options
    const call = `${path} ${JSON.stringify(params)}`
    const isKnown = this.#unserved.has(call)
    const most = isKnown ? 1 : this.#isDown ? Math.min(tries, TRIES_AFTER) : tries
    for (let attempt = 1; ; attempt += 1) {
      await this.#takeTurn()
      await this.#readKey(KEY_AGE_MS)
      const api = this.#api
      const response = await this.#try(path, params)
      signal.throwIfAborted()
      if (!(response instanceof ProviderError) && response.status === 401) {
        await this.#readKey(0)
        if (this.#api !== api) continue
      }
      const why = troubleOf(response, isWhole)
      if (!(response instanceof ProviderError) && why === undefined) {
        this.#unserved.delete(call)
        this.#isDown = false
        return response
      }
      if (attempt >= most) {
        this.#isDown ||= !isKnown
        this.#unserved.add(call)
        throw new Unreachable(String(why), path, call)
      }
      await clock.sleep(Math.min(FIRST_PAUSE_MS * 2 ** (attempt - 1), LONGEST_PAUSE_MS), signal)
      signal.throwIfAborted()
    }
  }

  async #try(path: string, params: Params): Promise<StripeResponse | ProviderError> {
    const signal = AbortSignal.any([this.#options.signal, AbortSignal.timeout(CALL_TIMEOUT_MS)])
    try {
      const response = await this.#api.get(path, params, signal)
      this.#latestMs = response.dateMs
      this.#firstMs ??= response.dateMs
      return response
    } catch (error) {
      if (error instanceof ProviderError) return error
      throw error
    }
  }

  /** Reads the present key if that was done so long ago. The next call uses it. */
  async #readKey(maxAgeMs: number): Promise<void> {
    const { presentKey, clock } = this.#options
    const nowMs = clock.monotonicMs()
    if (!presentKey || nowMs - this.#keyReadMs < maxAgeMs) return
    this.#keyReadMs = nowMs
    const key = await presentKey()
    if (key === this.#secretKey) return
    this.#secretKey = key
    this.#api.close()
    this.#api = this.#open()
  }

  /** Waits as long as the rate requires. */
  async #takeTurn(): Promise<void> {
    const { clock, signal, callsPerSecond = CALLS_PER_SECOND } = this.#options
    const nowMs = performance.now()
    const atMs = Math.max(nowMs, this.#nextCallMs)
    this.#nextCallMs = atMs + 1000 / callsPerSecond
    if (atMs > nowMs) await clock.sleep(atMs - nowMs, signal)
    await this.#options.takeTurn?.(signal)
    signal.throwIfAborted()
  }
}

function unlessGone(error: unknown): undefined {
  if (!(error instanceof CursorGone)) throw error
}

const isObject = (body: Fields) => typeof body['id'] === 'string'

function refusal(path: string, status: number, error: StripeResponse['error']): Refusal {
  if (status === 401) return new Refusal('Stripe rejects the secret key: connect the merchant account again.')
  if (status === 403) return new NotPermitted(path, error)
  return new Refusal(
    `Stripe returned status ${status} (${String(error['code'] ?? error['type'] ?? 'no reason')}) for ${path}.`,
  )
}
