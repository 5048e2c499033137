// The rules of the ledger, without a database: what each operation does to one customer's account of one unit.
import { makeUuid } from '../../../lib/ids.ts'
import { type Credits, shareOf } from './amount.ts'
import {
  type About,
  byExpiry,
  type Cause,
  type CounterAccount,
  type Entry,
  earlier,
  expiryOfReturned,
  type Hold,
  isDue,
  type Lot,
} from './parts.ts'

type Sums = Record<CounterAccount, Credits>

export interface AccountState {
  sums: Sums
  lots: Lot[]
  holds: Hold[]
  /** The present, by the database. */
  now: string
  decimals: number
}

/** An account that its transaction has locked. Everything due is booked before and after each operation. */
export class Account {
  readonly entries: Entry[] = []
  readonly lots: Lot[]
  readonly holds: Hold[]
  readonly #sums: Sums
  /** The present, by the database. */
  readonly now: string
  readonly #decimals: number

  constructor({ sums, lots, holds, now, decimals }: AccountState) {
    this.#sums = { ...sums }
    this.lots = lots.sort(byExpiry)
    this.holds = holds
    this.now = now
    this.#decimals = decimals
    this.#checkLots()
    this.bookDue()
  }

  get sums(): Readonly<Sums> {
    return this.#sums
  }

  get balance(): Credits {
    const { granted, adjusted, spent, expired, revoked } = this.#sums
    return granted + adjusted - spent - expired - revoked
  }

  get held(): Credits {
    return this.#openHolds().reduce((sum, { amount }) => sum + amount, 0n)
  }

  /** What can be spent or held. Below zero when a refund has taken what is held. */
  get available(): Credits {
    return this.balance - this.held
  }

  /** When the next of its grants or holds expires; null: never. What a hold keeps from expiring waits for the end of the hold. */
  get dueAt(): string | null {
    const times = [
      ...this.lots.filter(({ remaining }) => remaining > 0n).map(({ expiresAt }) => expiresAt),
      ...this.#openHolds().map(({ expiresAt }) => expiresAt),
    ]
    return times.reduce((first, at) => (isDue(at, this.now) ? first : earlier(first, at)), null)
  }

  /** Books a use. Undefined: there is not enough. */
  spend(amount: Credits, about: About): Entry | undefined {
    if (amount > this.available) return undefined
    return this.#use('spent', 'spend', amount, about)
  }

  hold(amount: Credits, expiresAt: string): Hold | undefined {
    if (amount > this.available) return undefined
    const hold: Hold = { holdId: makeUuid(), amount, captured: null, status: 'open', expiresAt, change: 'new' }
    this.holds.push(hold)
    return hold
  }

  /** Spends a part of an open hold or all of it, and releases the rest. Undefined: a refund has taken the credits. */
  capture(hold: Hold, amount: Credits, about: About): Entry | undefined {
    if (amount > this.balance) return undefined
    hold.captured = amount
    this.#end(hold, 'captured')
    const entry = this.#use('spent', 'capture', amount, { ...about, holdId: hold.holdId })
    this.bookDue()
    return entry
  }

  release(hold: Hold): void {
    this.#end(hold, 'released')
    this.bookDue()
  }

  /** A new grant, which pays a debt first. */
  grant(amount: Credits, expiresAt: string | null, cause: 'charge' | 'grant', about: About): Entry {
    return this.#add('granted', cause, amount, expiresAt, about)
  }

  /** A correction. Undefined: it would take more than is available. */
  adjust(amount: Credits, about: About): Entry | undefined {
    if (amount > 0n) return this.#add('adjusted', 'adjustment', amount, null, about)
    return -amount > this.available ? undefined : this.#use('adjusted', 'adjustment', -amount, about)
  }

  /**
   * Revokes the share of what a charge granted that has been paid back, or gives back what was revoked beyond it: afterwards the
   * share is revoked, however often this is called. What was spent becomes a debt, unless `makesDebt` is false; what had
   * expired is not taken again. `takenAt`: when it was last revoked, needed to give it back.
   */
  setRevoked(
    orderId: string,
    { part, whole }: { part: bigint; whole: bigint },
    { makesDebt, cause, takenAt }: { makesDebt: boolean; cause: Cause; takenAt: string | null },
  ): void {
    for (const lot of this.lots.filter((one) => one.orderId === orderId)) {
      const share = part >= whole ? lot.amount : shareOf(lot.amount, part, whole, this.#decimals)
      if (share > lot.revoked) this.#revoke(lot, share - lot.revoked, makesDebt, cause)
      else if (share < lot.revoked) this.#giveBack(lot, lot.revoked - share, { cause, takenAt })
    }
    this.lots.sort(byExpiry)
    this.bookDue()
  }

  /** Books what has expired. Holds keep from expiring what they reserve, which is what expires first; only captures use it. */
  bookDue(): void {
    for (const hold of this.#openHolds()) if (isDue(hold.expiresAt, this.now)) this.#end(hold, 'expired')
    let protectedByHolds = this.held
    for (const lot of this.lots.filter(({ expiresAt }) => isDue(expiresAt, this.now))) {
      const kept = least(protectedByHolds, lot.remaining)
      protectedByHolds -= kept
      const amount = lot.remaining - kept
      if (amount === 0n) continue
      lot.expired += amount
      this.#take(lot, amount)
      this.#book('expired', 'expiry', -amount, { grantId: lot.grantId, orderId: lot.orderId })
    }
  }

  #use(account: 'spent' | 'adjusted', cause: Cause, amount: Credits, about: About): Entry {
    const isFree = ({ expiresAt }: Lot) => cause === 'capture' || !isDue(expiresAt, this.now)
    this.#takeFirst(amount, this.lots.filter(isFree))
    return this.#book(account, cause, -amount, about)
  }

  #add(account: 'granted' | 'adjusted', cause: Cause, amount: Credits, expiresAt: string | null, about: About): Entry {
    const lot: Lot = {
      grantId: makeUuid(),
      amount,
      remaining: amount - this.#paysDebt(amount),
      expired: 0n,
      revoked: 0n,
      expiresAt,
      orderId: about.orderId ?? null,
      change: 'new',
    }
    this.lots.push(lot)
    this.lots.sort(byExpiry)
    const entry = this.#book(account, cause, amount, { ...about, grantId: lot.grantId })
    this.bookDue()
    return entry
  }

  #revoke(lot: Lot, wanted: Credits, makesDebt: boolean, cause: Cause): void {
    const most = makesDebt ? lot.amount - lot.expired - lot.revoked : lot.remaining
    const amount = least(wanted, most)
    if (amount <= 0n) return
    lot.revoked += amount
    const left = least(amount, lot.remaining)
    this.#take(lot, left)
    // The rest was spent: it is taken from other grants, and what these do not have is a debt.
    this.#takeFirst(amount - left)
    this.#book('revoked', cause, -amount, { grantId: lot.grantId, orderId: lot.orderId })
  }

  #giveBack(lot: Lot, amount: Credits, { cause, takenAt }: { cause: Cause; takenAt: string | null }): void {
    const paid = this.#paysDebt(amount)
    lot.revoked -= amount
    lot.expiresAt = expiryOfReturned(lot.expiresAt, takenAt, this.now)
    this.#take(lot, paid - amount)
    this.#book('revoked', cause, amount, { grantId: lot.grantId, orderId: lot.orderId })
  }

  #paysDebt(amount: Credits): Credits {
    return this.balance < 0n ? least(amount, -this.balance) : 0n
  }

  /** Takes from the grants that expire first, as far as they have it. */
  #takeFirst(amount: Credits, lots: readonly Lot[] = this.lots): void {
    let missing = amount
    for (const lot of lots) {
      const part = least(missing, lot.remaining)
      if (part === 0n) continue
      this.#take(lot, part)
      missing -= part
    }
  }

  #take(lot: Lot, amount: Credits): void {
    lot.remaining -= amount
    if (lot.change === 'none') lot.change = 'changed'
  }

  #end(hold: Hold, status: Hold['status']): void {
    hold.status = status
    if (hold.change === 'none') hold.change = 'changed'
  }

  #openHolds(): Hold[] {
    return this.holds.filter(({ status }) => status === 'open')
  }

  #book(account: CounterAccount, cause: Cause, amount: Credits, about: About & { grantId?: string | null }): Entry {
    // A sum grows by what the customer loses, but those of what the customer was given by what they gain.
    this.#sums[account] += account === 'granted' || account === 'adjusted' ? amount : -amount
    const entry: Entry = {
      entryId: makeUuid(),
      account,
      amount,
      balance: this.balance,
      cause,
      grantId: null,
      holdId: null,
      orderId: null,
      key: null,
      reason: null,
      metadata: null,
      ...about,
    }
    this.entries.push(entry)
    this.#checkLots()
    return entry
  }

  /** What is left of all grants is the balance, or nothing while that is a debt. */
  #checkLots(): void {
    const left = this.lots.reduce((sum, { remaining }) => sum + remaining, 0n)
    if (left !== (this.balance < 0n ? 0n : this.balance)) throw new Error('Bug: grants and balance of credits differ')
  }
}

const least = (one: Credits, other: Credits): Credits => (one < other ? one : other)
