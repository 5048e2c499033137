// Judges what is left after the kills: nothing lost, charged twice, missed or repeated.
import type { Clients } from './clients.ts'

interface Movement {
  reference: string
  type: string
}

interface Evidence {
  clients: Clients
  /** Rows of a statement, as texts. */
  query: (text: string) => Promise<Record<string, string | null>[]>
  simulatorUrl: string
}

export interface Verdict {
  keys: number
  succeeded: number
  movements: number
  /** One line for each rule that does not hold. */
  broken: string[]
  /** Orders that callers received and that are lost. */
  lostOrders: string[]
}

export async function judge({ clients, query, simulatorUrl }: Evidence): Promise<Verdict> {
  const movements = (await (await fetch(`${simulatorUrl}/ledger`)).json()) as Movement[]
  const charged = movements.filter(({ type }) => type === 'charge').map(({ reference }) => reference)
  const orders = await query(`
    select order_id::text as id, external_id as customer, status, idempotency_key as key, created_at, settled_at from orders`)
  const paid = orders.filter(({ status }) => status === 'succeeded').map(({ id }) => id!)
  const told = clients.charges.filter(({ outcome }) => outcome === 'succeeded').map(({ orderId }) => orderId!)
  const ids = async (text: string) => (await query(text)).map(({ id }) => id!)
  const report = await ids('select order_id::text as id from report_transactions where not imported')
  const consumables = await ids('select order_id::text as id from consumables')
  const stored = await query(`
    select id || ' ' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as id from transactions`)
  const transactions = stored.map(({ id }) => id!)
  const copied = clients.copy.transactions
  const newest = newestOf(copied)

  const rules: [string, string[]][] = [
    ['charged twice', repeated(charged)],
    ['an order made twice for a key', repeated(orders.map(({ key }) => key!))],
    ['told as paid, without an order that is', missing(told, paid)],
    ['paid by the ledger, without an order that is', missing(charged, paid)],
    ['an order paid, not in the ledger', missing(paid, charged)],
    ['an order paid, not in the report', missing(paid, report)],
    ['twice in the report', repeated(report)],
    ['an order paid, without its consumable', missing(paid, consumables)],
    ['two consumables of an order', repeated(consumables)],
    ['missed by the copy', missing(transactions, newest)],
    ['in the copy, and nowhere else', missing(newest, transactions)],
    ['repeated in the copy', repeated(copied)],
    ['refused because of a charge in progress that was not', groundless(clients, orders)],
    ['undecided at the end', orders.filter(({ status }) => status === 'processing').map(({ id }) => id!)],
  ]
  if (transactions.length !== paid.length) {
    rules.push(['transactions and paid orders differ in number', [`${transactions.length} and ${paid.length}`]])
  }
  const broken = rules.filter(([, found]) => found.length > 0).map(([rule, found]) => `${rule}: ${some(found)}`)
  const lostOrders = missing(
    told,
    orders.map(({ id }) => id!),
  )
  return { keys: clients.charges.length, succeeded: paid.length, movements: charged.length, broken, lostOrders }
}

/** Refusals without another order of the customer that was in progress at that time, as the database has it in the end. */
function groundless({ inProgress }: Clients, orders: Record<string, string | Date | null>[]): string[] {
  const reason = ({ customer, key, sentAt, receivedAt }: Clients['inProgress'][number]) =>
    orders.some(
      (order) =>
        order['customer'] === customer &&
        order['key'] !== key &&
        new Date(order['created_at']!) <= receivedAt &&
        (order['settled_at'] === null || new Date(order['settled_at']!) >= sentAt),
    )
  return inProgress.filter((one) => !reason(one)).map(({ key }) => key)
}

/** Of each record its last version. */
function newestOf(copied: string[]): string[] {
  const newest = new Map<string, string>()
  for (const one of copied) newest.set(one.split(' ')[0]!, one)
  return [...newest.values()]
}

const missing = (these: string[], among: string[]) => {
  const known = new Set(among)
  return [...new Set(these)].filter((one) => !known.has(one))
}

function repeated(all: string[]): string[] {
  const known = new Set<string>()
  return [...new Set(all.filter((one) => known.size === known.add(one).size))]
}

const some = (found: string[]) => `${found.length} (${found.slice(0, 3).join(', ')}${found.length > 3 ? ', …' : ''})`
