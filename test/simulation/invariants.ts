// What must hold after every step of a simulation, and what must hold when all has come to rest.
import type { Database } from './database.ts'
import type { Ledger, Movement } from './provider.ts'

/** An order as the database has it, with all that was written because of it. */
interface OrderState {
  order_id: string
  external_id: string
  idempotency_key: string
  provider_key: string
  status: string
  minor: number
  refunded: number
  refunded_hard: number
  consumables: number
  active: number
  sales: number
  transactions_due: number
  events: number
}

interface RefundState {
  refund_id: string
  order_id: string
  provider_key: string
  status: string
  minor: number
  soft: boolean
  rows: number
  events: number
}

interface State {
  orders: OrderState[]
  refunds: RefundState[]
  transactions: number
  counted: number
  stamps: string[]
  /** Milliseconds until something in progress is due; null when nothing is in progress. */
  wait_ms: number | null
}

export interface Finding {
  /** The first rule that is broken, in words. */
  violation: string | undefined
  waitMs: number | null
}

export class Invariants {
  readonly #database: Database
  readonly #organization: string
  readonly #project: string
  readonly #ledger: Ledger
  readonly #final = new Map<string, string>()
  #lastStamp = ''
  #rows = 0

  constructor(database: Database, organization: string, project: string, ledger: Ledger) {
    this.#database = database
    this.#organization = organization
    this.#project = project
    this.#ledger = ledger
  }

  async check(nowMs: number, isAtRest: boolean): Promise<Finding> {
    const state = await this.#read(nowMs)
    return { violation: this.#findViolation(state, isAtRest), waitMs: state.wait_ms }
  }

  #findViolation(state: State, isAtRest: boolean): string | undefined {
    return first([
      ...state.orders.map((order) => () => this.#order(order, state, isAtRest)),
      ...state.refunds.map((refund) => () => this.#refund(refund, isAtRest)),
      () => this.#customers(state),
      () => this.#money(state),
      () => this.#report(state),
      () => state.transactions !== state.counted && `${state.transactions} transactions, but ${state.counted} counted`,
      () => {
        const due = state.orders.reduce((sum, { transactions_due }) => sum + transactions_due, 0)
        return (
          state.transactions !== due && `${state.transactions} transactions for ${due} successes of linked customers`
        )
      },
    ])
  }

  #order(order: OrderState, { refunds }: State, isAtRest: boolean): Broken {
    const { order_id, status, consumables, active, sales, events, minor } = order
    const isSuccess = status === 'succeeded'
    const isReported = isSuccess || status === 'failed'
    const isRevoked = order.refunded_hard === minor
    const mine = refunds.filter((refund) => refund.order_id === order_id)
    const open = sum(mine.filter((refund) => refund.status !== 'failed'))
    const done = mine.filter((refund) => refund.status === 'succeeded')
    return first([
      () => this.#stays(order_id, status),
      () => consumables !== Number(isSuccess) && `${status} order with ${consumables} consumables`,
      () =>
        active !== Number(isSuccess && !isRevoked) &&
        `an order with ${order.refunded_hard} of ${minor} refunded has ${active} active consumables`,
      () => sales !== Number(isReported) && `${status} order with ${sales} sales in the report`,
      () => events !== Number(status !== 'processing') && `${status} order with ${events} events`,
      () => order.refunded !== sum(done) && `${order.refunded} refunded, but refunds of ${sum(done)} succeeded`,
      () => order.refunded_hard !== sum(done.filter(({ soft }) => !soft)) && 'the sum of hard refunds is wrong',
      () => open > minor && `refunds of ${open} for a charge of ${minor}`,
      () => this.#agrees('charge', order.provider_key, status, isAtRest),
    ])
  }

  #refund(refund: RefundState, isAtRest: boolean): Broken {
    const isSettled = refund.status !== 'processing'
    return first([
      () => this.#stays(refund.refund_id, refund.status),
      () => refund.rows < Number(isSettled) && `${refund.status} refund without a row in the report`,
      () => refund.events !== Number(isSettled) && `${refund.status} refund with ${refund.events} events`,
      () =>
        refund.soft
          ? this.#ledger.find('refund', refund.provider_key) !== undefined && 'a soft refund moved money'
          : this.#agrees('refund', refund.provider_key, refund.status, isAtRest),
    ])
  }

  /** Final is final. */
  #stays(id: string, status: string): Broken {
    const before = this.#final.get(id)
    if (status !== 'processing') this.#final.set(id, status)
    return before !== undefined && before !== status && `${id} was ${before} and became ${status}`
  }

  /** Our word and the provider's. */
  #agrees(type: Movement['type'], key: string, status: string, isAtRest: boolean): Broken {
    const known = this.#ledger.find(type, key)
    const truth = known === undefined ? 'nothing' : known.state === 'refused' ? 'refused' : known.verdict.outcome
    const isRefusal = truth === 'refused'
    const isTrue =
      status === 'processing' ||
      status === truth ||
      (isRefusal && status === (type === 'charge' ? 'cancelled' : 'failed'))
    if (!isTrue) return `a ${type} is ${status} here and ${truth} at the provider`
    return isAtRest && status === 'processing' && `a ${type} is still processing`
  }

  #customers({ orders }: State): Broken {
    const inProgress = orders.filter(({ status }) => status === 'processing').map(({ external_id }) => external_id)
    const keys = orders.map((order) => `${order.external_id} ${order.idempotency_key}`)
    if (new Set(inProgress).size < inProgress.length) return 'two charges of a customer are in progress'
    return new Set(keys).size < keys.length && 'two orders for one key of a customer'
  }

  /** Every movement of money is one of ours, still in progress or succeeded, and none is there twice. */
  #money({ orders, refunds }: State): Broken {
    const { movements } = this.#ledger
    const purchases = new Map(orders.map((order) => [order.provider_key, order]))
    const charges = movements.filter(({ type }) => type === 'charge')
    const intents = charges.map(({ key }) => {
      const order = purchases.get(key)
      return order && `${order.external_id} ${order.idempotency_key}`
    })
    return first([
      () => intents.includes(undefined) && 'money was taken for no order',
      () => new Set(intents).size < intents.length && 'a key of a customer was charged twice',
      ...charges.map((charge) => () => {
        const paidBack = movements.filter((one) => one.charge === `charge-${charge.reference}`)
        const back = paidBack.reduce((total, { amountMinor }) => total + amountMinor, 0n)
        return back > charge.amountMinor && `${back} was paid back of ${charge.amountMinor}`
      }),
      () =>
        movements.some((one) => one.type === 'refund' && !refunds.some((refund) => refund.provider_key === one.key)) &&
        'money was paid back for no refund',
    ])
  }

  /** Rows come later than all that were there before. */
  #report({ stamps }: State): Broken {
    const fresh = stamps.slice(this.#rows)
    const isBehind = fresh.some((stamp) => stamp <= this.#lastStamp)
    this.#rows = stamps.length
    this.#lastStamp = stamps.at(-1) ?? this.#lastStamp
    return isBehind && 'a row of the report appeared behind one already served'
  }

  async #read(nowMs: number): Promise<State> {
    const [row] = await this.#database.ask(nowMs, STATE, [this.#organization, this.#project])
    return JSON.parse(row!.state!) as State
  }
}

type Broken = string | false | undefined

function first(rules: (() => Broken)[]): string | undefined {
  for (const rule of rules) {
    const finding = rule()
    if (finding) return finding
  }
  return undefined
}

const sum = (refunds: { minor: number }[]) => refunds.reduce((total, { minor }) => total + minor, 0)

const STATE = {
  name: 'state of the simulation',
  text: `
    select json_build_object(
      'orders', (select coalesce(json_agg(json_build_object(
          'order_id', o.order_id, 'external_id', o.external_id, 'idempotency_key', o.idempotency_key,
          'provider_key', o.provider_key, 'status', o.status,
          'minor', (o.amount * 100)::int, 'refunded', (o.amount_refunded * 100)::int,
          'refunded_hard', (o.amount_refunded_hard * 100)::int,
          'consumables', (select count(*) from consumables c where c.organization_id = $1 and c.order_id = o.order_id),
          'active', (select count(*) from consumables c
            where c.organization_id = $1 and c.order_id = o.order_id and c.is_active),
          'sales', (select count(*) from report_transactions r where r.organization_id = $1
            and r.order_id = o.order_id and r.psp_transaction_type = 'sale'),
          'transactions_due', case when o.status = 'succeeded' and c.profile_id is not null then 1 else 0 end,
          'events', (select count(*) from events e where e.project_id = $2 and e.object_id = o.order_id::text)
        ) order by o.order_id), '[]')
        from orders o join customers c using (organization_id, external_id) where o.organization_id = $1),
      'refunds', (select coalesce(json_agg(json_build_object(
          'refund_id', r.refund_id, 'order_id', r.order_id, 'provider_key', r.provider_key, 'status', r.status,
          'minor', (r.amount * 100)::int, 'soft', r.soft_refund,
          'rows', (select count(*) from report_transactions t where t.organization_id = $1
            and t.order_id = r.order_id and t.psp_transaction_type in ('refund', 'soft_refund')),
          'events', (select count(*) from events e where e.project_id = $2 and e.object_id = r.refund_id::text)
        ) order by r.refund_id), '[]') from refunds r where r.organization_id = $1),
      'transactions', (select count(*) from transactions where project_id = $2),
      'counted', (select coalesce(sum(n), 0) from counts where project_id = $2 and list = 'transactions'),
      'wait_ms', (select ceil(extract(epoch from min(next_look_at) - db_clock()) * 1000) from (
          select next_look_at from orders where organization_id = $1 and status = 'processing'
          union all
          select next_look_at from refunds where organization_id = $1 and status = 'processing') due),
      'stamps', (select coalesce(json_agg(trx_created_at order by trx_created_at), '[]')
        from report_transactions where organization_id = $1 and not imported)) as state`,
}
