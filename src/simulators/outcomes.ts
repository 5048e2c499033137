// Decides charges and refunds by the scenario of their token. Each key has one outcome, and none after it was refused.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClosedEntry, Entry, Kind, Ledger, Order } from './ledger.ts'
import { type Decline, readToken, refundRefusal, type Scenario } from './tokens.ts'

/** The response to a caller: an entry, a plain status, or a broken connection (`dropped`). */
export type Reply = ClosedEntry | { state: 'refused' | 'not_found' | 'conflict' | 'error' | 'dropped' }

export class Outcomes {
  readonly #ledger: Ledger
  readonly #onTrouble: (error: Error) => void
  readonly #closing = new AbortController()

  /** @param onTrouble called when a late charge cannot be written to the ledger */
  constructor(ledger: Ledger, onTrouble: (error: Error) => void) {
    this.#ledger = ledger
    this.#onTrouble = onTrouble
    for (const entry of ledger.pending()) this.#settleWhenDue(entry)
  }

  async take(kind: Kind, key: string, asked: Order): Promise<Reply> {
    const charge = this.#ledger.findCharge(asked.charge_transaction_id)
    const order = { ...asked, token: charge?.order.token ?? asked.token }
    const known = this.#ledger.find(kind, key)
    if (known && 'order' in known && !isSamePurpose(known.order, order)) return { state: 'conflict' }
    if (known && isFinal(known)) return this.#durably(known)
    return this.#play(readToken(order.token)[kind], kind, key, order, known)
  }

  async look(kind: Kind, key: string): Promise<Reply> {
    const known = this.#ledger.find(kind, key)
    return known && isFinal(known) ? this.#durably(known) : { state: 'not_found' }
  }

  /** Refuses the key for good; a key that has an outcome keeps it, and that is returned. */
  async refuse(kind: Kind, key: string): Promise<Reply> {
    const known = this.#ledger.find(kind, key)
    if (!known || !isFinal(known)) this.#ledger.write({ kind, key, state: 'refused', at: stamp() })
    return this.#durably(this.#ledger.find(kind, key) as FinalEntry)
  }

  /** Late charges stay in the ledger and are settled after the next start. */
  close(): void {
    this.#closing.abort()
  }

  async #play(scenario: Scenario, kind: Kind, key: string, order: Order, known?: Entry): Promise<Reply> {
    if (scenario.plan === 'never') return { state: 'dropped' }
    if (scenario.plan === 'late') return this.#playLate(scenario.afterMs, kind, key, order, known)
    if (scenario.plan === 'second_time' && !known) {
      this.#ledger.write({ kind, key, state: 'tried', order, at: stamp() })
      await this.#ledger.durable()
      return { state: 'error' }
    }
    this.#settle(kind, key, order)
    await this.#ledger.durable()
    if (scenario.plan === 'second_time') return this.look(kind, key)
    if (scenario.ending === 'error') return { state: 'error' }
    const isOpen = await this.#sleep(scenario.afterMs)
    return isOpen && scenario.ending === 'response' ? this.look(kind, key) : { state: 'dropped' }
  }

  async #playLate(afterMs: number, kind: Kind, key: string, order: Order, known?: Entry): Promise<Reply> {
    if (!known) {
      const due_at = stamp(afterMs)
      const entry: Entry = { kind, key, state: 'pending', order, due_at, at: stamp() }
      this.#ledger.write(entry)
      this.#settleWhenDue(entry)
    }
    await this.#ledger.durable()
    return { state: 'dropped' }
  }

  async #settleWhenDue(entry: Entry): Promise<void> {
    if (entry.state !== 'pending') return
    if (!(await this.#sleep(Math.max(0, Date.parse(entry.due_at) - Date.now())))) return
    if (this.#ledger.find(entry.kind, entry.key)?.state !== 'pending') return
    this.#settle(entry.kind, entry.key, entry.order)
    await this.#ledger.durable().catch(this.#onTrouble)
  }

  /** Decides the outcome and writes it without awaiting anything between, so that two requests cannot both pass. */
  #settle(kind: Kind, key: string, order: Order): void {
    const scenario = readToken(order.token)[kind]
    const rule = kind === 'refund' ? this.#refundRule(order) : null
    const decline = rule ?? (scenario.plan === 'settle' && scenario.decline) ?? null
    const transaction_id = `sim_${kind}_${randomUUID().replaceAll('-', '')}`
    const state = decline ? 'failed' : 'succeeded'
    this.#ledger.write({ kind, key, state, order, transaction_id, decline: decline || null, at: stamp() })
  }

  #refundRule(order: Order): Decline | null {
    const charge = this.#ledger.findCharge(order.charge_transaction_id)
    if (!charge) return refundRefusal('charge_unknown', 'There is no such charge to refund.')
    if (charge.order.currency_code !== order.currency_code) {
      return refundRefusal('currency_mismatch', 'The charge was made in another currency.')
    }
    const left = BigInt(charge.order.amount_minor) - this.#ledger.refunded(charge.transaction_id)
    if (BigInt(order.amount_minor) <= left) return null
    return refundRefusal('amount_too_large', 'The amount is above what is left of the charge.')
  }

  /** @returns false when the simulator closes first */
  async #sleep(ms: number): Promise<boolean> {
    if (ms === 0) return true
    return sleep(ms, true, { signal: this.#closing.signal }).catch(() => false)
  }

  async #durably(entry: FinalEntry): Promise<Reply> {
    await this.#ledger.durable()
    return entry.state === 'refused' ? { state: 'refused' } : entry
  }
}

type FinalEntry = Exclude<Entry, { state: 'tried' | 'pending' }>

function isFinal(entry: Entry): entry is FinalEntry {
  return entry.state !== 'tried' && entry.state !== 'pending'
}

/**
 * Whether a request with a known key means the same movement of money. The reference may differ: a client's retry after
 * a restored backup comes with a new order id; so may the card, because the key is for one purchase, not for one card.
 */
function isSamePurpose(one: Order, other: Order): boolean {
  return (
    one.amount_minor === other.amount_minor &&
    one.currency_code === other.currency_code &&
    one.charge_transaction_id === other.charge_transaction_id
  )
}

function stamp(afterMs = 0): string {
  return new Date(Date.now() + afterMs).toISOString().replace('Z', '000Z')
}
