// Numbers every border that a request crosses (key look-up, statement, commit, provider call) and kills or freezes its process at one of them.

import type { KeyCache } from '../../src/core/tenants/key-cache.ts'
import type { Db } from '../../src/lib/pg/db.ts'
import type { Query, Statement } from '../../src/lib/pg/types.ts'
import { aroundCalls } from '../../src/payments/providers/around-calls.ts'
import type { Provider, Providers } from '../../src/payments/providers/provider.ts'

// Long enough for the provider to receive the call.
const MIDDLE_MS = 60

export class Points {
  readonly names: string[] = []
  readonly #signal: NodeJS.Signals
  #last = 0

  /** SIGKILL ends the process; SIGSTOP freezes it until SIGCONT. */
  constructor(signal: NodeJS.Signals = 'SIGKILL') {
    this.#signal = signal
  }

  /** Restarts the count, and sends the signal at this point, from 1. */
  arm(last: number): void {
    this.names.length = 0
    this.#last = last
  }

  #cross(name: string): void {
    if (this.names.push(name) === this.#last) process.kill(process.pid, this.#signal)
  }

  async #around<T>(name: string, work: () => Promise<T>): Promise<T> {
    this.#cross(`before ${name}`)
    const result = await work()
    this.#cross(`after ${name}`)
    return result
  }

  keys(keys: KeyCache): KeyCache {
    return { ...keys, lookUp: (key) => this.#around('key look-up', () => keys.lookUp(key)) }
  }

  db(db: Db): Db {
    const around =
      (query: Query): Query =>
      (statement, params) =>
        this.#around(nameOf(statement), () => query(statement, params)) as never
    return {
      ...db,
      query: around(db.query),
      read: (statement, params) => this.#around(nameOf(statement), () => db.read(statement, params)),
      // `after` the work is directly before the commit, unless the commit was sent with the last statements.
      tx: (work) =>
        this.#around('transaction', () =>
          db.tx((query, commit) =>
            this.#around('work', () =>
              work(around(query), () => {
                this.#cross('before commit')
                commit()
              }),
            ),
          ),
        ),
    }
  }

  /** Providers of connected accounts are opened at their first use. */
  providers(providers: Providers): Providers {
    const known = new Map<Provider, Provider>()
    const wrap = (provider: Provider) => {
      const wrapped = known.get(provider) ?? this.#provider(provider)
      known.set(provider, wrapped)
      return wrapped
    }
    return {
      async of(...name) {
        const provider = await providers.of(...name)
        return provider && wrap(provider)
      },
      opened: (organizationId) => [...providers.opened(organizationId)].map(wrap),
      all: async () => (await providers.all()).map((one) => ({ ...one, provider: wrap(one.provider) })),
    }
  }

  /** A call also has a point in its middle: sent, and without a response yet. */
  #provider(provider: Provider): Provider {
    return aroundCalls(provider, (call, run) =>
      this.#around(call, async () => {
        const calling = run()
        await new Promise((resolve) => setTimeout(resolve, MIDDLE_MS))
        this.#cross(`amid ${call}`)
        return calling
      }),
    )
  }
}

const nameOf = (statement: string | Statement) => (typeof statement === 'string' ? statement : (statement.name ?? ''))
