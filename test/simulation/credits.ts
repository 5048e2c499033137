// Customers who spend, hold and are granted credits, each request with a key that is sent again until its response has come.
import { ApiError } from '../../src/lib/errors.ts'
import type { JsonObject } from '../../src/lib/json/read.ts'
import { call, type Reply } from '../../src/payments/billing/credits/calls.ts'
import { askOf, type Operation } from '../../src/payments/billing/credits/requests.ts'
import { ask } from './ask.ts'
import type { Server } from './clients.ts'
import type { Random } from './random.ts'
import type { Scheduler } from './scheduler.ts'
import { instantOf } from './virtual-clock.ts'

export const UNIT = 'tokens'

interface Request {
  customer: string
  operation: Operation
  body: JsonObject & { idempotency_key: string }
}

const MAX_TRIES = 6
const LONGEST_PAUSE_MS = 60_000

export class CreditClients {
  readonly #scheduler: Scheduler
  readonly #random: Random
  readonly #organization: string
  readonly #running: () => ReadonlySet<Server>
  readonly #violated: (text: string) => void
  readonly #sent: Request[] = []
  /** The entry or hold of each key that had a response, since the last restore. */
  #known = new Map<string, string>()

  constructor(
    scheduler: Scheduler,
    organization: string,
    running: () => ReadonlySet<Server>,
    violated: (text: string) => void,
  ) {
    this.#scheduler = scheduler
    this.#random = scheduler.random
    this.#organization = organization
    this.#running = running
    this.#violated = violated
  }

  /** The entries that clients were told of: they must be there. */
  get told(): readonly string[] {
    return [...this.#known.values()]
  }

  /** A restored backup may lack what clients received; the clients send all of it again. */
  restored(): void {
    this.#known = new Map()
    for (const request of this.#sent)
      void this.#scheduler.sleep(this.#random.between(1, LONGEST_PAUSE_MS)).then(() => this.#send(request))
  }

  /** One customer, request after request; some are sent to two processes at once. */
  async use(customer: string, session: string): Promise<void> {
    for (let n = this.#random.between(2, 6); n > 0; n--) {
      await this.#scheduler.sleep(this.#random.between(1, 8_000))
      const request = this.#request(customer, `${session}-${n}`)
      const [reply] = await Promise.all([
        this.#send(request),
        this.#random.chance(0.3) ? this.#send(request) : undefined,
      ])
      if (request.operation === 'hold' && reply?.holdId) await this.#end(customer, reply.holdId, request)
    }
  }

  #request(customer: string, key: string): Request {
    const chance = this.#random.next()
    const operation = chance < 0.3 ? 'grant' : chance < 0.7 ? 'spend' : chance < 0.9 ? 'hold' : 'adjust'
    const sign = operation === 'adjust' && this.#random.chance(0.5) ? '-' : ''
    const soon = instantOf(this.#scheduler.nowMs + this.#random.between(500, 60_000))
    const more: JsonObject = {
      ...(operation === 'grant' && this.#random.chance(0.6) && { expires_at: soon }),
      ...(operation === 'hold' && { expires_in: this.#random.between(1, 40) }),
      ...(operation === 'adjust' && { reason: 'asked' }),
      ...(operation === 'spend' && this.#random.chance(0.3) && { metadata: { n: 1 } }),
    }
    const amount = `${sign}${this.#random.between(1, 9)}`
    return this.#note({
      customer,
      operation,
      body: { external_id: customer, unit: UNIT, amount, idempotency_key: key, ...more },
    })
  }

  async #end(customer: string, holdId: string, { body }: Request): Promise<void> {
    if (this.#random.chance(0.2)) return
    await this.#scheduler.sleep(this.#random.between(1, 50_000))
    const isCapture = this.#random.chance(0.6)
    await this.#send(
      this.#note({
        customer,
        operation: isCapture ? 'capture' : 'release',
        body: {
          hold_id: holdId,
          idempotency_key: `${body.idempotency_key}-end`,
          ...(isCapture && { amount: '1' }),
        },
      }),
    )
  }

  #note(request: Request): Request {
    this.#sent.push(request)
    return request
  }

  async #send({ customer, operation, body }: Request): Promise<Reply | undefined> {
    const owner = { externalId: customer, unit: UNIT }
    for (let tries = 0; tries < MAX_TRIES; tries++) {
      const known = this.#known
      const reply = await this.#ask(`${operation} ${customer} ${body.idempotency_key}`, ({ context }) =>
        call(context.db, askOf(operation, this.#organization, body, owner)),
      )
      if (reply === 'refused') return undefined
      if (reply) {
        if (known === this.#known) this.#check(`${customer} ${body.idempotency_key}`, reply)
        return reply
      }
      await this.#scheduler.sleep(this.#random.between(1, 5_000))
    }
    return undefined
  }

  /** A key that had a response has the same again, until a backup is restored. */
  #check(key: string, { entryId, holdId }: Reply): void {
    const made = entryId ?? holdId!
    const before = this.#known.get(key)
    if (before !== undefined && before !== made) this.#violated(`the key ${key} made ${before} and ${made}`)
    this.#known.set(key, made)
  }

  async #ask(what: string, work: (server: Server) => Promise<Reply>): Promise<Reply | 'refused' | undefined> {
    const asking = { scheduler: this.#scheduler, running: this.#running, violated: this.#violated }
    const reply = await ask(
      asking,
      what,
      work,
      ({ entryId, holdId, balance }) => `${entryId ?? holdId}, balance ${balance / 1_000_000n}`,
    )
    if (!(reply instanceof ApiError)) return reply
    return reply.status === 400 ? 'refused' : undefined
  }
}
