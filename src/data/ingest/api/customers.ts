// Says whose a payment is: the transaction report names no customer, only a session or a subscription.
import type { App } from '../../../app.ts'
import { Refusal } from '../../../lib/errors.ts'
import { isJsonObject, JsonError, readJson } from '../../../lib/json/read.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { shorten } from '../../../lib/text.ts'
import type { Line } from '../line-import.ts'
import { isObject, type Json, textOf, unwrapped } from './convert.ts'
import type { ApiSource } from './source.ts'

/** A line of the file of customers. */
export interface Customer {
  external_id: string
  profile_id?: string
  /** An order of the customer, where the service shows neither session nor subscription. */
  order_id?: string
  /** The saved card: the token of the payment provider, and the customer that it is attached to there. */
  payment_method_token?: string
  psp_customer_id?: string
  /** The provider and the account that have this card, for a customer with cards at several. */
  psp?: string
  psp_merchant_id?: string
}

export interface Customers {
  byOrder: Map<string, Customer>
  byProfile: Map<string, Customer>
  byId: Map<string, Customer>
  /** The lines with a token, by external_id. */
  cards: Map<string, Customer[]>
}

const FIELDS = [
  ...['external_id', 'profile_id', 'order_id', 'payment_method_token', 'psp_customer_id'],
  ...['psp', 'psp_merchant_id'],
]

export const noCustomers = (): Customers => ({
  byOrder: new Map(),
  byProfile: new Map(),
  byId: new Map(),
  cards: new Map(),
})

/** Reads the file of customers: a JSON object a line. Throws a `Refusal` that names the line. */
export function readCustomers(name: string, text: string): Customers {
  const customers = noCustomers()
  text.split('\n').forEach((line, n) => {
    if (line.trim() === '') return
    const customer = readCustomer(line, `${name}:${n + 1}`)
    const { external_id, payment_method_token } = customer
    customers.byId.set(external_id, { ...customers.byId.get(external_id), ...customer })
    if (payment_method_token !== undefined)
      customers.cards.set(external_id, [...(customers.cards.get(external_id) ?? []), customer])
    if (customer.profile_id !== undefined) customers.byProfile.set(customer.profile_id, customer)
    if (customer.order_id !== undefined) customers.byOrder.set(customer.order_id.toLowerCase(), customer)
  })
  return customers
}

function readCustomer(line: string, place: string): Customer {
  let value: unknown
  try {
    value = readJson(line)
  } catch (error) {
    if (error instanceof JsonError) throw new Refusal(`${place}: not JSON: ${error.message}.`)
    throw error
  }
  if (!isJsonObject(value as never)) throw new Refusal(`${place}: a line must be an object with external_id.`)
  for (const [field, given] of Object.entries(value as Json)) {
    if (!FIELDS.includes(field)) throw new Refusal(`${place}: the fields of a customer are ${FIELDS.join(', ')}.`)
    if (typeof given !== 'string' || given === '') throw new Refusal(`${place}: ${field} must be a text.`)
  }
  const customer = value as unknown as Customer
  if (customer.external_id === undefined) throw new Refusal(`${place}: external_id is missing.`)
  return customer
}

/** Asks the service for the assets of each customer of the file: their orders are then known to be the customer's. */
export async function addOrders(source: ApiSource, customers: Customers): Promise<void> {
  for (const customer of customers.byId.values()) {
    const { status, body } = await source.post('/v1/my_assets', { external_id: customer.external_id })
    // A service without it shows no orders.
    if (status === 404) return
    const assets = unwrapped(body)
    if (!isObject(assets)) continue
    for (const group of Object.values(assets)) {
      for (const asset of Array.isArray(group) ? group.filter(isObject) : []) {
        const order = textOf(asset.order_id)?.toLowerCase()
        if (order !== undefined && !customers.byOrder.has(order)) customers.byOrder.set(order, customer)
      }
    }
  }
}

interface Target {
  organizationId: string
  projectId: string
}

/**
 * Gives each payment its customer: by the order, by the profile of its session or subscription, else its own for the
 * order. Returns lines that link new customers to their profiles. Payments keep the customer and the card with which they were stored.
 * `owners` has profiles of sessions and subscriptions that are not stored, because the import is a dry run.
 */
export async function nameCustomers(
  { db }: Pick<App, 'db'>,
  target: Target,
  customers: Customers,
  payments: Line[],
  owners: Owners = new Map(),
): Promise<{ lines: Line[]; unknown: number }> {
  const column = (name: string) => payments.map(({ data }) => textOf(data[name]) ?? null)
  const rows = await db.query(
    `select given.place, coalesce(s.profile_id, u.profile_id) as profile_id, r.external_id, r.payment_method_token, r.psp_customer_id,
       (select min(c.external_id) from customers c where c.project_id = $1
         and c.profile_id = coalesce(s.profile_id, u.profile_id)) as of_profile
     from unnest($3::text[], $4::text[], $5::uuid[]) with ordinality given (session_id, subscription_id, trx_id, place)
     left join sessions s on s.project_id = $1 and s.id = given.session_id
     left join subscriptions u on u.project_id = $1 and u.id = given.subscription_id
     left join report_transactions r on r.organization_id = $2 and r.trx_id = given.trx_id`,
    [
      target.projectId,
      target.organizationId,
      column('meta_client_svc_session_id'),
      column('meta_subs_id'),
      column('trx_id').map((id) => (id !== null && UUID.test(id) ? id : null)),
    ],
  )
  const links = new Map<string, string>()
  let unknown = 0
  for (const { place, external_id, of_profile, payment_method_token, psp_customer_id, ...row } of rows) {
    const { data } = payments[Number(place) - 1]!
    const profile_id = row.profile_id ?? ownerOf(owners, data)
    const order = String(data.order_id).toLowerCase()
    const given = customers.byOrder.get(order) ?? (profile_id ? customers.byProfile.get(profile_id) : undefined)
    const id = given?.external_id ?? textOf(data.external_id) ?? external_id ?? of_profile ?? profile_id
    if (!id) unknown += 1
    data.external_id = id ?? `order-${order}`
    const card = customers.cards.get(String(data.external_id))?.findLast((one) => isOfAccount(one, data))
    if (card?.payment_method_token !== undefined && data.status === 'succeeded') {
      data.payment_method_token = card.payment_method_token
      data.psp_customer_id = card.psp_customer_id ?? null
    } else if (payment_method_token != null) Object.assign(data, { payment_method_token, psp_customer_id })
    const profile = given?.profile_id ?? profile_id
    if (profile && (given || !of_profile)) links.set(String(data.external_id), profile)
  }
  return { lines: await newLinks(db, target, links), unknown }
}

/** Profiles by `session ID` and `subscription ID`. */
export type Owners = Map<string, string>

/** Adds the profiles that these lines name. */
export function noteOwners(owners: Owners, lines: Line[]): void {
  for (const { record, data } of lines)
    if (record === 'session' || record === 'subscription') owners.set(`${record} ${data.id}`, String(data.profile_id))
}

const ownerOf = (owners: Owners, { meta_client_svc_session_id: session, meta_subs_id: subscription }: Json) =>
  owners.get(`session ${session}`) ?? owners.get(`subscription ${subscription}`)

/** A card without a provider belongs to every payment of its customer. */
const isOfAccount = ({ psp, psp_merchant_id }: Customer, payment: Json) =>
  (psp === undefined || psp === payment.psp) &&
  (psp_merchant_id === undefined || psp_merchant_id === payment.psp_merchant_id)

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** A sentence about the customers of the file without a payment here, whose ids may be mistyped; undefined if there are none. */
export async function whyUnused(
  query: Query,
  organizationId: string,
  { byId }: Customers,
): Promise<string | undefined> {
  const rows = await query(
    `select id from unnest($2::text[]) with ordinality given (id, place)
     where not exists (select from report_transactions r where r.organization_id = $1 and r.external_id = given.id)
     order by place`,
    [organizationId, [...byId.keys()]],
  )
  if (rows.length === 0) return undefined
  const first = rows.slice(0, 3).map(({ id }) => `"${shorten(id!, 64)}"`)
  const more = rows.length > first.length ? ', …' : ''
  return `${rows.length} of ${byId.size} customers of the file have no payment here (${first.join(', ')}${more}): look at their external_id, profile_id and order_id.`
}

/** A customer that is linked keeps its link, and a profile that is not here links nothing. */
async function newLinks(db: App['db'], target: Target, links: Map<string, string>): Promise<Line[]> {
  if (links.size === 0) return []
  const rows = await db.query(
    `select given.* from unnest($3::text[], $4::text[]) given (external_id, profile_id)
     where exists (select from profiles p where p.project_id = $2 and p.id = given.profile_id)
       and not exists (select from customers c where c.organization_id = $1 and c.external_id = given.external_id
         and (c.profile_id is not null or c.project_id <> $2))`,
    [target.organizationId, target.projectId, [...links.keys()], [...links.values()]],
  )
  return rows.map((data) => ({ record: 'customer', data }))
}
