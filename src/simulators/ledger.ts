// The simulator's ledger: the outcome of every key, in memory and in a file that survives a crash.
import { Journal } from './journal.ts'
import type { Decline } from './tokens.ts'

export type Kind = 'charge' | 'refund'

export interface Order {
  reference: string
  /** As a string: minor units may exceed what a double holds. */
  amount_minor: string
  currency_code: string
  merchant_id: string
  region: string | null
  /** Of a refund: the token of its charge. */
  token: string
  /** Of a refund only. */
  charge_transaction_id: string | null
}

/** One line of the file; the last line of a key counts. `tried` and `pending` are not visible to callers. */
export type Entry = { kind: Kind; key: string; at: string } & (
  | { state: 'tried'; order: Order }
  | { state: 'pending'; order: Order; due_at: string }
  | { state: 'refused' }
  | Closed
)

export interface Closed {
  state: 'succeeded' | 'failed'
  order: Order
  transaction_id: string
  decline: Decline | null
}

export type ClosedEntry = Entry & Closed

export class Ledger {
  readonly #entries = new Map<string, Entry>()
  readonly #charges = new Map<string, ClosedEntry>()
  /** Refunds that succeeded, by the id of their charge. */
  readonly #refunds = new Map<string, ClosedEntry[]>()
  readonly #movements: ClosedEntry[] = []
  #journal!: Journal

  private constructor() {}

  static async open(file: string, fsync: boolean): Promise<Ledger> {
    const ledger = new Ledger()
    ledger.#journal = await Journal.open(file, fsync, (line) => ledger.#apply(line as Entry))
    return ledger
  }

  find(kind: Kind, key: string): Entry | undefined {
    return this.#entries.get(`${kind} ${key}`)
  }

  /** A charge that succeeded. */
  findCharge(transactionId: string | null): ClosedEntry | undefined {
    return transactionId === null ? undefined : this.#charges.get(transactionId)
  }

  /** Minor units paid back of a charge so far. */
  refunded(transactionId: string): bigint {
    return this.refundsOf(transactionId).reduce((sum, { order }) => sum + BigInt(order.amount_minor), 0n)
  }

  /** Refunds of a charge that succeeded, in the order they happened. */
  refundsOf(transactionId: string): readonly ClosedEntry[] {
    return this.#refunds.get(transactionId) ?? []
  }

  pending(): Entry[] {
    return [...this.#entries.values()].filter(({ state }) => state === 'pending')
  }

  /** Every movement of money, oldest first; only grows. */
  movements(): readonly ClosedEntry[] {
    return this.#movements
  }

  /** Adds an entry at once; it may be returned to a caller only after `durable()` has resolved. */
  write(entry: Entry): void {
    this.#apply(entry)
    this.#journal.append(entry)
  }

  durable(): Promise<void> {
    return this.#journal.durable()
  }

  close(): Promise<void> {
    return this.#journal.close()
  }

  #apply(entry: Entry): void {
    const id = `${entry.kind} ${entry.key}`
    const before = this.#entries.get(id)?.state
    if (before !== undefined && before !== 'tried' && before !== 'pending') {
      throw new Error(`Bug: ${id} is ${before} and cannot become ${entry.state}.`)
    }
    this.#entries.set(id, entry)
    if (entry.state === 'succeeded') this.#count(entry)
  }

  #count(entry: ClosedEntry): void {
    this.#movements.push(entry)
    const { charge_transaction_id: charge } = entry.order
    if (charge === null) this.#charges.set(entry.transaction_id, entry)
    else this.#refunds.set(charge, [...this.refundsOf(charge), entry])
  }
}
