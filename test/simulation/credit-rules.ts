// An independent model of the ledger of credits: it adds up the entries from the first, and compares everything else with them.
import { chargeKey } from '../../src/payments/billing/charge/row.ts'
import { type Broken, first } from './rules.ts'

/** Amounts are whole. */
export interface CreditState {
  organization: string
  accounts: Account[]
  /** In the order of their stamps. */
  entries: Entry[]
  lots: Lot[]
  holds: { customer: string; amount: number; status: string; is_past: boolean }[]
  keys: { customer: string; key: string; entry_id: string | null; hold_id: string | null }[]
  orders: GrantingOrder[]
  top_ups: { customer: string; status: string; turn: number; below: number; grants: number; is_full: boolean }[]
}

interface Account {
  customer: string
  balance: number
  held: number
  granted: number
  spent: number
  expired: number
  revoked: number
  adjusted: number
}

interface Entry {
  customer: string
  entry_id: string
  account: 'granted' | 'spent' | 'expired' | 'revoked' | 'adjusted'
  amount: number
  balance: number
  grant_id: string | null
  order_id: string | null
  key: string | null
}

interface Lot {
  customer: string
  grant_id: string
  amount: number
  remaining: number
  expired: number
  revoked: number
  order_id: string | null
  can_expire: boolean
  is_past: boolean
}

interface GrantingOrder {
  customer: string
  order_id: string
  key: string
  status: string
  minor: number
  asked: number
  refunded_hard: number
  /** Whether a dispute has taken its money. */
  is_taken: boolean
  /** What its request grants; null if it does not say so. */
  grants: number | null
}

/** The rules that hold at every instant, and `isAtRest` those that hold when everything has come to rest. */
export function creditRules(state: CreditState, told: readonly string[], isAtRest: boolean): (() => Broken)[] {
  return [
    ...state.accounts.map((account) => () => ledgerOf(account, state)),
    ...state.lots.map((lot) => () => lotOf(lot, state)),
    ...state.orders.map((order) => () => grantedBy(order, state)),
    () => keysOf(state),
    () => promisesOf(state, told),
    () => topUpsOf(state, isAtRest),
    () => isAtRest && restOf(state),
  ]
}

// More than a seed has.
const MOST_TURNS = 12

/**
 * The provider's keys of top-ups that may have been charged and that a restored backup has lost: they are found, and not charged again,
 * when their turn comes. Until then reconcile reports them to an operator.
 */
export function keysOfLostTopUps({ organization, top_ups }: CreditState): string[] {
  return top_ups.flatMap(({ customer, turn }) =>
    Array.from({ length: MOST_TURNS }, (_, n) => chargeKey(organization, customer, `top-up:tokens:${turn + n}`)),
  )
}

const sumOf = (numbers: number[]) => numbers.reduce((sum, one) => sum + one, 0)

/** Every balance is the sum of the entries before it, and only a revocation takes it below zero. */
function ledgerOf({ customer, balance, held, ...sums }: Account, { entries, lots, holds }: CreditState): Broken {
  const mine = entries.filter((entry) => entry.customer === customer)
  let running = 0
  for (const { account, amount, balance: after, entry_id } of mine) {
    running += amount
    if (running !== after)
      return `the entry ${entry_id} of ${customer} says ${after}, and the entries sum to ${running}`
    if (amount < 0 && running < 0 && account !== 'revoked')
      return `${account} took ${customer} below zero, to ${running}`
    const isWrongWay = account === 'granted' ? amount < 0 : (account === 'spent' || account === 'expired') && amount > 0
    if (isWrongWay || amount === 0) return `an entry of ${customer} moved ${amount} to ${account}`
  }
  if (running !== balance) return `${customer} has ${balance}, and the entries sum to ${running}`
  for (const [name, sum] of Object.entries(sums)) {
    const sign = name === 'granted' || name === 'adjusted' ? 1 : -1
    const moved = sign * sumOf(mine.filter(({ account }) => account === name).map(({ amount }) => amount))
    if (moved !== sum) return `${customer} has ${sum} ${name}, and the entries say ${moved}`
  }
  if (sums.spent > sums.granted + sums.adjusted) return `${customer} spent ${sums.spent} of ${sums.granted} granted`
  const left = sumOf(lots.filter((lot) => lot.customer === customer).map(({ remaining }) => remaining))
  if (left !== Math.max(balance, 0)) return `${customer} has ${balance}, and ${left} is left of the grants`
  const reserved = holds.filter((hold) => hold.customer === customer && hold.status === 'open')
  return sumOf(reserved.map(({ amount }) => amount)) !== held && `${customer} holds ${held}, not what open holds say`
}

/** A grant is what its entries say, and no part of it is gone twice. */
function lotOf(lot: Lot, { entries }: CreditState): Broken {
  const { grant_id, amount, remaining, expired, revoked } = lot
  const moved = (...accounts: string[]) =>
    sumOf(entries.filter((one) => one.grant_id === grant_id && accounts.includes(one.account)).map((one) => one.amount))
  if (moved('granted', 'adjusted') !== amount) return `the grant ${grant_id} of ${amount} was entered otherwise`
  if (-moved('expired') !== expired) return `of the grant ${grant_id} ${expired} has expired, not as entered`
  if (-moved('revoked') !== revoked) return `of the grant ${grant_id} ${revoked} is revoked, not as entered`
  return remaining + expired + revoked > amount && `more than all of the grant ${grant_id} is gone`
}

/** A success grants once what its request says, in proportion to what was charged, and a refund revokes its share. */
function grantedBy(order: GrantingOrder, { lots }: CreditState): Broken {
  const { order_id, status, minor, asked, refunded_hard, is_taken, grants } = order
  const mine = lots.filter((lot) => lot.order_id === order_id)
  const due = status === 'succeeded' && grants !== null ? Math.floor((grants * Math.min(minor, asked)) / asked) : 0
  const granted = mine.map(({ amount }) => amount)
  if (granted.length > 1 || sumOf(granted) !== due) return `a ${status} order that grants ${due} granted ${granted}`
  const [lot] = mine
  if (!lot) return undefined
  const share = refunded_hard >= minor || is_taken ? due : Math.floor((due * refunded_hard) / minor)
  const isRight = lot.can_expire ? lot.revoked <= share : lot.revoked === share
  return (
    !isRight &&
    `${lot.revoked} of ${due} is revoked after refunds of ${refunded_hard} of ${minor}${is_taken ? ' and a dispute' : ''}`
  )
}

/** Each key made one entry, and each entry with a key belongs to it. */
function keysOf({ keys, entries }: CreditState): Broken {
  const nameOf = ({ customer, key }: { customer: string; key: string | null }) => `${customer} ${key}`
  const made = new Map(keys.filter(({ entry_id }) => entry_id !== null).map((one) => [nameOf(one), one.entry_id]))
  const entered = entries.filter(({ key }) => key !== null)
  if (new Set(entered.map(nameOf)).size < entered.length) return 'a key of a customer made two entries'
  const stray = entered.find((entry) => made.get(nameOf(entry)) !== entry.entry_id)
  if (stray) return `the entry ${stray.entry_id} is not that of its key`
  return made.size !== entered.length && 'a key has an entry that is not there'
}

/** What a client was told of is there. */
function promisesOf({ keys }: CreditState, told: readonly string[]): Broken {
  const made = new Set(keys.map(({ entry_id, hold_id }) => entry_id ?? hold_id))
  const lost = told.find((id) => !made.has(id))
  return lost && `${lost} had a response and is not there`
}

/** A turn has one order, turns have no gap, and nothing follows a decline. */
function topUpsOf({ orders, top_ups, accounts }: CreditState, isAtRest: boolean): Broken {
  return first(
    top_ups.map(({ customer, status, turn, below, is_full }) => () => {
      const mine = orders.filter((order) => order.customer === customer && order.key.startsWith('top-up:'))
      const turns = mine.map(({ key }) => Number(key.split(':')[2])).sort((one, other) => one - other)
      if (turns.some((one, n) => one !== n + 1)) return `the top-ups of ${customer} have the turns ${turns}`
      if (turns.length > turn) return `${customer} was topped up ${turns.length} times in turn ${turn}`
      const declined = mine.filter((order) => order.status === 'failed')
      if (declined.some(({ key }) => key !== `top-up:tokens:${turns.at(-1)}`))
        return `${customer} was topped up after a decline`
      if (!isAtRest || status !== 'on' || is_full) return undefined
      const { balance, held } = accounts.find((account) => account.customer === customer)!
      // A decline that was found when the balance was no longer low is told when the rule is due again.
      if (balance - held >= below) return undefined
      if (declined.length > 0) return `the top-up of ${customer} is on after a decline`
      return `${customer} has ${balance - held}, below ${below}, and is not topped up`
    }),
  )
}

/** What is due is booked. */
function restOf({ lots, holds }: CreditState): Broken {
  if (holds.some(({ status, is_past }) => status === 'open' && is_past)) return 'an open hold has expired'
  const customers = new Set(holds.filter(({ status }) => status === 'open').map(({ customer }) => customer))
  const late = lots.find(({ customer, is_past, remaining }) => is_past && remaining > 0 && !customers.has(customer))
  return late && `${late.remaining} of the grant ${late.grant_id} has expired and is still there`
}

/** SQL: whether a dispute of an order `o` of the organization `t` has taken its money. */
const IS_TAKEN = `exists (select from disputes d where d.organization_id = t.organization and d.order_id = o.order_id
  and d.funds_withdrawn_at is not null and (d.funds_reinstated_at is null or d.status = 'lost'))`

/** SQL: the state of an organization `t`, as JSON. */
export const CREDITS = `json_build_object('organization', t.organization,
  'accounts', (select coalesce(json_agg(json_build_object('customer', external_id, 'balance', balance::int, 'held', held::int,
      'granted', granted::int, 'spent', spent::int, 'expired', expired::int, 'revoked', revoked::int, 'adjusted', adjusted::int)
      order by external_id), '[]') from credit_accounts where organization_id = t.organization),
  'entries', (select coalesce(json_agg(json_build_object('customer', external_id, 'entry_id', entry_id, 'account', account,
      'amount', amount::int, 'balance', balance::int, 'grant_id', grant_id, 'order_id', order_id, 'key', idempotency_key)
      order by created_at), '[]') from credit_entries where organization_id = t.organization),
  'lots', (select coalesce(json_agg(json_build_object('customer', external_id, 'grant_id', grant_id, 'amount', amount::int,
      'remaining', remaining::int, 'expired', expired::int, 'revoked', revoked::int, 'order_id', order_id,
      'can_expire', expires_at is not null, 'is_past', coalesce(expires_at <= db_clock(), false)) order by grant_id), '[]')
    from credit_grants where organization_id = t.organization),
  'holds', (select coalesce(json_agg(json_build_object('customer', external_id, 'amount', amount::int, 'status', status,
      'is_past', expires_at <= db_clock()) order by hold_id), '[]') from credit_holds where organization_id = t.organization),
  'keys', (select coalesce(json_agg(json_build_object('customer', external_id, 'key', idempotency_key, 'entry_id', entry_id,
      'hold_id', hold_id) order by external_id, idempotency_key), '[]') from credit_keys where organization_id = t.organization),
  'orders', (select coalesce(json_agg(json_build_object('customer', external_id, 'order_id', order_id, 'key', idempotency_key,
      'status', status, 'minor', (amount * 100)::int, 'asked', (coalesce(asked_amount, amount) * 100)::int,
      'refunded_hard', (amount_refunded_hard * 100)::int, 'is_taken', ${IS_TAKEN}, 'grants', (grants -> 0 ->> 'amount')::int) order by order_id), '[]')
    from orders o where organization_id = t.organization),
  'top_ups', (select coalesce(json_agg(json_build_object('customer', external_id, 'status', status, 'turn', turn,
      'below', below::int, 'grants', grants::int, 'is_full', used_of_day >= most_per_day or used_of_month >= most_per_month)
      order by external_id), '[]') from credit_top_ups where organization_id = t.organization))`
