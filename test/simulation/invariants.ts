// The invariants of an organization after every transaction of a simulation, and at its end.
import type { Cards } from './cards.ts'
import { creditRules } from './credit-rules.ts'
import type { Database } from './database.ts'
import { disputeRules } from './disputes.ts'
import type { Ledger, Movement } from './ledger.ts'
import { moneyRules } from './money-rules.ts'
import { type Broken, first } from './rules.ts'
import type { Shop } from './shops.ts'
import { type OrderState, type Picture, type Promised, type RefundState, readStamped, type State } from './state.ts'

/** A horizon of a project that a reader received, and the rows with earlier stamps at that time. */
interface Told extends Promised {
  rows: Set<string>
}

export class Invariants {
  readonly #database: Database
  readonly #shop: Shop
  readonly #ledger: Ledger
  readonly #cards: Cards
  readonly #final = new Map<string, string>()
  readonly #promised = new Map<string, Told>()
  readonly #gone = new Set<string>()
  #lastStamp = ''
  #rows = 0

  /** The entries of credits that clients were told of. */
  #told: () => readonly string[] = () => []

  constructor(database: Database, shop: Shop, ledger: Ledger, cards: Cards) {
    this.#database = database
    this.#shop = shop
    this.#ledger = ledger
    this.#cards = cards
  }

  /** Must be called before the first check. */
  credits(told: () => readonly string[]): void {
    this.#told = told
  }

  /** The sentence about the first broken rule. */
  check(state: State, { stamped }: Picture, isAtRest: boolean): string | undefined {
    return this.#findViolation(state, isAtRest) ?? this.#sync(stamped)
  }

  /** A reader that knew the horizon `before` received this one: from now on, the rows stamped before it must not change. */
  async promise(nowMs: number, project: string, horizon: string, before: string): Promise<string | undefined> {
    if (before > horizon) return `the horizon of ${project} went back from ${before} to ${horizon}`
    if (this.promised(project) > horizon) return undefined
    const promised = { project, horizon }
    this.#promised.set(project, { ...promised, rows: await readStamped(this.#database, nowMs, promised) })
    return undefined
  }

  /** The last horizons that readers received. */
  promises(): Promised[] {
    return [...this.#promised.values()].map(({ project, horizon }) => ({ project, horizon }))
  }

  /** The last horizon that a reader received. */
  promised(project: string): string {
    return this.#promised.get(project)?.horizon ?? ''
  }

  /**
   * A backup was restored: it may lack final outcomes, and have older versions of rows that readers have seen. Later stamps are
   * after every horizon and every row of the report that was served.
   */
  restored({ stamps }: State, { stamped }: Picture): void {
    this.#final.clear()
    this.#rows = stamps.length
    for (const told of this.#promised.values()) told.rows = stamped.get(told.project)!
  }

  #findViolation(state: State, isAtRest: boolean): string | undefined {
    return first([
      ...state.orders.map((order) => () => this.#order(order, state, isAtRest)),
      ...state.refunds.map((refund) => () => this.#refund(refund, isAtRest)),
      () => customers(state),
      () => this.#cards.rule(state.orders),
      ...moneyRules(state, this.#ledger),
      ...disputeRules(state, this.#ledger, isAtRest),
      ...creditRules(state.credits, this.#told(), isAtRest),
      () => this.#report(state),
      () => this.#transactions(state),
      () => this.#erased(state),
    ])
  }

  /** Erased profiles stay erased, also after a restored backup. */
  #erased({ erased }: State): Broken {
    const now = new Set(erased)
    const back = [...this.#gone].find((person) => !now.has(person))
    for (const person of erased) this.#gone.add(person)
    return back && `the erased ${back} is back`
  }

  #order(order: OrderState, { refunds }: State, isAtRest: boolean): Broken {
    const { order_id, status, consumables, active, minor } = order
    const isSuccess = status === 'succeeded'
    const isTaken = order.disputes.some((one) => one.is_withdrawn && (!one.is_reinstated || one.status === 'lost'))
    const isRevoked = order.refunded_hard === minor || isTaken
    const mine = refunds.filter((refund) => refund.order_id === order_id)
    const open = mine.filter((refund) => refund.status !== 'failed')
    const done = mine.filter((refund) => refund.status === 'succeeded')
    const hard = (refunds: RefundState[]) => sum(refunds.filter(({ soft }) => !soft))
    // The provider may have refunded the amount of a soft refund, or of one that the backup has in progress and that failed since, in a
    // period that a restored backup has lost. The one in progress fails when it is looked up.
    const claimed = open.some(({ adopted }) => adopted) ? hard(isAtRest ? open : done) : sum(open)
    return first([
      () => this.#stays(order_id, status),
      () =>
        differs(consumables, isSuccess ? [minor] : []) &&
        `${status} order of ${minor} with consumables of ${consumables}`,
      () =>
        active !== Number(isSuccess && !isRevoked) &&
        `an order with ${order.refunded_hard} of ${minor} refunded has ${active} active consumables`,
      () => reportOf(order, mine),
      () => eventsOf(order),
      () =>
        order.refunded !== Math.min(sum(done), minor) &&
        `${order.refunded} of ${minor} refunded, but refunds of ${sum(done)} succeeded`,
      () => order.refunded_hard !== hard(done) && 'the sum of hard refunds is wrong',
      () => claimed > minor && `refunds of ${claimed} for a charge of ${minor}`,
      () => order.is_erased && order.has_metadata && isAtRest && 'an erased customer has metadata in an order',
      () => this.#agrees('charge', order.provider_key, status, isAtRest, order.merchant !== 'm1'),
    ])
  }

  #refund(refund: RefundState, isAtRest: boolean): Broken {
    const { status, events } = refund
    const due = status === 'processing' ? [] : [`refund.${status}`]
    return first([
      () => this.#stays(refund.refund_id, status),
      () => differs(events, due) && `${status} refund with the events ${events}`,
      () => {
        if (!refund.soft) return this.#agrees('refund', refund.provider_key, status, isAtRest)
        // A full refund that a restored backup forgot may have had its key, and the provider may have refused that one.
        const there = this.#ledger.find('refund', refund.provider_key)
        return there?.state === 'settled' && there.verdict.outcome === 'succeeded' && 'a soft refund moved money'
      },
    ])
  }

  /** Final outcomes do not change. */
  #stays(id: string, status: string): Broken {
    const before = this.#final.get(id)
    if (status !== 'processing') this.#final.set(id, status)
    return before !== undefined && before !== status && `${id} was ${before} and became ${status}`
  }

  /** Our outcomes agree with the provider's. */
  #agrees(type: Movement['type'], key: string, status: string, isAtRest: boolean, isInTwoSteps = true): Broken {
    const known = this.#ledger.find(type, key)
    const truth = known === undefined ? 'nothing' : known.state === 'settled' ? known.verdict.outcome : known.state
    const isTrue =
      status === 'processing' ||
      status === truth ||
      (truth === 'refused' && status === (type === 'charge' ? 'cancelled' : 'failed')) ||
      // At most prepared, and its handle was never stored, so no process can confirm it.
      (truth === 'prepared' && status === 'cancelled') ||
      (truth === 'nothing' && status === 'cancelled' && isInTwoSteps) ||
      // A refund that the provider never received, at a provider that cannot refuse one.
      (truth === 'nothing' && type === 'refund' && status === 'failed')
    if (!isTrue) return `a ${type} is ${status} here and ${truth} at the provider`
    return isAtRest && status === 'processing' && `a ${type} is still processing`
  }

  /** New rows have later stamps than all earlier rows. */
  #report({ stamps }: State): Broken {
    const fresh = stamps.slice(this.#rows)
    const isBehind = fresh.some((stamp) => stamp <= this.#lastStamp)
    this.#rows = stamps.length
    this.#lastStamp = fresh.at(-1) ?? this.#lastStamp
    return isBehind && 'a row of the report appeared behind one already served'
  }

  /** Each success of a linked customer has one transaction with its amount; the totals count all of them. */
  #transactions({ totals, orders }: State): Broken {
    const linked = new Set(this.#shop.customers.filter(({ profile }) => profile !== null).map((one) => one.externalId))
    return first(
      totals.map(({ project, transactions, counted, prices }) => () => {
        if (transactions !== counted) return `${transactions} transactions of ${project}, but ${counted} counted`
        const due = orders
          .filter((order) => order.project === project && order.status === 'succeeded' && linked.has(order.external_id))
          .map(({ minor }) => minor)
          .sort((one, other) => one - other)
        return differs(prices, due) && `transactions of ${prices} for successes of ${due}`
      }),
    )
  }

  /** No row appears before a horizon that a reader received. */
  #sync(stamped: Picture['stamped']): string | undefined {
    for (const [project, { horizon, rows }] of this.#promised) {
      // A horizon that was received since the last commit has the current rows.
      for (const stamp of stamped.get(project) ?? [])
        if (!rows.has(stamp)) return `${stamp} appeared before the horizon ${horizon} of ${project}`
    }
    return undefined
  }
}

/** One row for the charge and one for each settled refund that moved money, with the exact amounts. */
function reportOf({ status, minor, rows }: OrderState, refunds: RefundState[]): Broken {
  const isReported = status === 'succeeded' || status === 'failed'
  const due = [
    ...(isReported ? [`sale ${status} ${minor}`] : []),
    ...refunds
      .filter(({ status }) => status !== 'processing')
      .map(
        ({ soft, status, minor }) =>
          `${soft ? 'soft_refund' : 'refund'} ${status === 'succeeded' ? 'refunded' : 'failed'} ${minor}`,
      ),
  ].sort()
  const found = rows
    .filter(({ type }) => !type.startsWith('chargeback'))
    .map((row) => `${row.type} ${row.status} ${row.minor}`)
    .sort()
  return differs(found, due) && `the report says ${found.join(', ')} instead of ${due.join(', ')}`
}

function eventsOf({ status, events }: OrderState): Broken {
  const due = status === 'processing' ? [] : [`charge.${status}`]
  const found = events.filter((type) => !type.startsWith('charge.dispute'))
  return differs(found, due) && `${status} order with the events ${events}`
}

function customers({ orders }: State): Broken {
  const inProgress = orders.filter(({ status }) => status === 'processing').map(({ external_id }) => external_id)
  const keys = orders.map((order) => `${order.external_id} ${order.idempotency_key}`)
  if (new Set(inProgress).size < inProgress.length) return 'two charges of a customer are in progress'
  return new Set(keys).size < keys.length && 'two orders for one key of a customer'
}

const differs = (one: unknown[], other: unknown[]) => JSON.stringify(one) !== JSON.stringify(other)

const sum = (refunds: { minor: number }[]) => refunds.reduce((total, { minor }) => total + minor, 0)
