// The client: the data API of a project and the billing API of an organization.
import { type Billing, openBilling } from './billing.ts'
import {
  type Change,
  type ChangePage,
  type ChangePagesOptions,
  type ChangesOptions,
  changePages,
  changes,
  type End,
  type Void,
} from './changes.ts'
import { type Http, type HttpOptions, openHttp } from './http.ts'
import { Ingest, type IngestOptions } from './ingest.ts'
import { type List, list } from './lists.ts'
import type {
  Experiment,
  Funnel,
  ListOptions,
  Product,
  Profile,
  ProfileToWrite,
  RecordToWrite,
  ReplyDetail,
  ReplyToWrite,
  Session,
  SessionDetail,
  SessionReplies,
  SessionToWrite,
  Subscription,
  SubscriptionDetail,
  Transaction,
} from './records.ts'
import type { operations } from './schema.ts'

export interface TundishOptions extends HttpOptions {
  /** The secret key of a project, for the data API. */
  projectKey?: string | undefined
  /** An organization and its secret key, for the billing API. */
  organization?: { id: string; key: string } | undefined
  /** How records are written in the background. */
  ingest?: IngestOptions | undefined
}

interface Gettable<Item> {
  get(id: string, options?: { signal?: AbortSignal | undefined }): Promise<Item>
}

interface Listable<Item, Name extends keyof operations> {
  list(options?: ListOptions<Name>): List<Item>
}

export class Tundish {
  readonly #http: Http
  readonly #options: TundishOptions
  #queue: Ingest | undefined

  constructor(options: TundishOptions) {
    // All who open a page can read the keys in it.
    if (isPage()) throw new Error('A secret key must not reach a browser: use the client on your server.')
    checkKey('projectKey', options.projectKey)
    checkKey('organization.key', options.organization?.key)
    this.#options = options
    this.#http = openHttp(options)
  }

  get funnels(): Listable<Funnel, 'listFunnels'> & Gettable<Funnel> {
    return { ...this.#list('/funnels', 100), ...this.#get('/funnels') }
  }

  get experiments(): Listable<Experiment, 'listExperiments'> {
    return this.#list('/experiments', 100)
  }

  get products(): Listable<Product, 'listProducts'> & Gettable<Product> {
    return { ...this.#list('/products', 100), ...this.#get('/products') }
  }

  get profiles(): Listable<Profile, 'listProfiles'> &
    Gettable<Profile> & {
      /** Removes the personal data of these profiles, all or nothing. Returns the server's sentence. */
      anonymize(ids: string[], options?: { signal?: AbortSignal | undefined }): Promise<string>
    } {
    const anonymize = async (ids: string[], { signal }: { signal?: AbortSignal | undefined } = {}) => {
      const call = { path: '/public/v1/profiles/anonymize', headers: this.#headers(), retry: 'safe', signal } as const
      return (await this.#http.json<{ message: string }>({ ...call, body: { profile_ids: ids } })).body.message
    }
    return { ...this.#list('/profiles', 500), ...this.#get('/profiles'), anonymize }
  }

  get sessions(): Listable<Session, 'listSessions'> &
    Gettable<SessionDetail> & {
      /** The session's replies in screen order. */
      replies(id: string, options?: { signal?: AbortSignal | undefined }): Promise<ReplyDetail[]>
    } {
    const replies = (id: string, options = {}) => this.#read<ReplyDetail[]>(`/sessions/${segment(id)}/replies`, options)
    return { ...this.#list('/sessions', 500), ...this.#get('/sessions'), replies }
  }

  /** The replies of all sessions, an item for each session. */
  get replies(): Listable<SessionReplies, 'listReplies'> {
    return this.#list('/replies', 100)
  }

  get subscriptions(): Listable<Subscription, 'listSubscriptions'> & Gettable<SubscriptionDetail> {
    return { ...this.#list('/subscriptions', 500), ...this.#get('/subscriptions') }
  }

  get transactions(): Listable<Transaction, 'listTransactions'> {
    return this.#list('/transactions', 500)
  }

  /** Everything that changed since a horizon, each record once, and at the end `{ horizon }`, the next `since`. */
  changes(options?: ChangesOptions): AsyncGenerator<Change | End | Void> {
    return changes(this.#http, () => this.#headers(), options)
  }

  /** The same page by page, with a cursor to store with each page. */
  changePages(options?: ChangePagesOptions): AsyncGenerator<ChangePage> {
    return changePages(this.#http, () => this.#headers(), options)
  }

  /** Queues a record to be written; it is sent within 200 ms, after those before it. Throws when the queue is full. */
  ingest(record: RecordToWrite): void {
    // A wrong configuration is an error here, not in the background.
    this.#headers()
    this.#records.add(record)
  }

  identify(profile: ProfileToWrite): void {
    this.ingest({ record: 'profile', data: { ...profile } })
  }

  session(session: SessionToWrite): void {
    this.ingest({ record: 'session', data: { ...session } })
  }

  reply(reply: ReplyToWrite): void {
    this.ingest({ record: 'reply', data: { ...reply } })
  }

  /** Resolves when every queued record has its response. Rejects when the key is refused, or after `timeoutMs`. */
  flush(options?: { timeoutMs?: number | undefined }): Promise<void> {
    return this.#records.flush(options)
  }

  /** Sends what is queued, and returns the records that could not be sent within `timeoutMs` (10,000 by default). */
  close(options?: { timeoutMs?: number | undefined }): Promise<RecordToWrite[]> {
    return this.#records.close(options)
  }

  get billing(): Billing {
    const { organization } = this.#options
    if (!organization) throw new TypeError('Give the client an organization to use the billing API.')
    return openBilling(this.#http, organization.id, organization.key)
  }

  get #records(): Ingest {
    this.#queue ??= new Ingest(openHttp({ ...this.#options, retries: 0 }), () => this.#headers(), this.#options.ingest)
    return this.#queue
  }

  #headers(): Record<string, string> {
    const { projectKey } = this.#options
    if (!projectKey) throw new TypeError('Give the client a projectKey to use the data API.')
    // In this case: the server looks at it.
    return { 'Service-Secret': projectKey }
  }

  #list<Item, Name extends keyof operations>(path: string, largest: number): Listable<Item, Name> {
    return {
      list: (options) => list<Item>(this.#http, `/public/v1${path}`, () => this.#headers(), options ?? {}, largest),
    }
  }

  #get<Item>(path: string): Gettable<Item> {
    return { get: (id, options) => this.#read<Item>(`${path}/${segment(id)}`, options) }
  }

  async #read<T>(path: string, { signal }: { signal?: AbortSignal | undefined } = {}): Promise<T> {
    const call = { path: `/public/v1${path}`, headers: this.#headers(), retry: 'safe', signal } as const
    return (await this.#http.json<T>(call)).body
  }
}

/** A key with `…` was shortened where it was copied from. A line break at its end, as in a file, is not sent. */
function checkKey(name: string, key: string | undefined): void {
  if (key !== undefined && !/^[!-~]*\s*$/.test(key))
    throw new TypeError(`${name} has a character that no key has: give the client the whole key, as it was printed.`)
}

/** Tests on a server often have the `document` of jsdom or Happy DOM, which nobody opens. */
function isPage(): boolean {
  if (!('document' in globalThis)) return false
  const { document, process } = globalThis as {
    document?: { defaultView?: { navigator?: { userAgent?: string } } }
    process?: { versions?: { node?: string } }
  }
  return !process?.versions?.node || !/jsdom|HappyDOM/.test(document?.defaultView?.navigator?.userAgent ?? '')
}

const segment = (id: string) => encodeURIComponent(id)
