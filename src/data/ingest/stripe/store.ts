// Imports lines, and counts the stored records.
import { readDecimal, toMinor } from '../../../lib/money.ts'
import { importLines } from '../line-import.ts'
import type { Importing } from '../load.ts'
import { type Context, type Referred, storedIds } from './context.ts'
import { idIn, type Line } from './convert.ts'
import { addDollars } from './dollars.ts'
import { keepExternalIds } from './external-ids.ts'
import { fitLines } from './fit.ts'
import { linkNames, linkPeople } from './people.ts'
import { add, type Rejecting, reject, type Tally } from './tally.ts'

/** Imports lines; bad ones are left out and named in the tally. `live`: as a feed, each change stamped now. */
export async function storeLines(
  app: Importing,
  context: Pick<Context, 'target'> & Rejecting,
  lines: Line[],
  how: { live: boolean; emitEvents?: boolean; signal: AbortSignal },
): Promise<void> {
  if (lines.length === 0) return
  const { target, tally } = context
  fitLines(context, lines)
  await keepExternalIds(app.db, target, lines)
  await linkPeople(app, target, lines)
  await keepLinks(app, target, lines)
  await addDollars(app, target, lines)
  const unlinked: Line[] = []
  const result = await importLines(app, target, [lines], {
    ...how,
    onRejected: (line, code, reason) => {
      // The money counts also without its subscription, which is named by itself.
      if (code === 'unknown_reference' && isOfSubscription(line)) unlinked.push(withoutSubscription(line))
      else reject(context, idIn(line), reason)
    },
  })
  await rememberCustomers(app, target, customersIn(lines))
  await linkNames(app, target, lines)
  tally.erased += result.erased
  if (unlinked.length > 0) await storeLines(app, context, unlinked, how)
}

const isOfSubscription = ({ record, data }: Line) =>
  record === 'transaction' && typeof data.subscription_id === 'string'
const withoutSubscription = ({ record, data }: Line): Line => ({ record, data: { ...data, subscription_id: null } })

/** Each billing customer with its id at Stripe. */
const customersIn = (lines: Line[]) =>
  lines.flatMap(({ data, customer }) => (customer === undefined ? [] : [[String(data.external_id), customer] as const]))

/** Stores which customers at Stripe a billing customer has, so that an erasure finds those without a payment. */
async function rememberCustomers(
  { db }: Importing,
  target: Context['target'],
  customers: (readonly [string, string])[],
) {
  if (customers.length === 0) return
  await db.query(
    `insert into provider_customers (organization_id, external_id, psp, psp_merchant_id, customer)
     select c.organization_id, c.external_id, 'stripe', $2, given.customer
     from unnest($3::text[], $4::text[]) given (external_id, customer)
     join customers c on c.organization_id = $1 and c.external_id = given.external_id
     on conflict do nothing`,
    [target.organizationId, target.merchantId, customers.map(([id]) => id), customers.map(([, id]) => id)],
  )
}

/**
 * A billing customer that is linked to a profile keeps the link: the organization may have imported its own profiles, and
 * two customers at Stripe may have the same id of the client.
 */
async function keepLinks(
  { db }: Importing,
  { organizationId, projectId }: Context['target'],
  lines: Line[],
): Promise<void> {
  const customers = lines.filter(({ record }) => record === 'customer').map(({ data }) => data)
  const rows = await db.query(
    `select external_id, profile_id from customers
     where organization_id = $1 and external_id = any($2) and project_id = $3 and profile_id is not null`,
    [organizationId, customers.map(({ external_id }) => String(external_id)), projectId],
  )
  const links = new Map(rows.map(({ external_id, profile_id }) => [external_id, profile_id]))
  for (const data of customers) data.profile_id = links.get(String(data.external_id)) ?? data.profile_id
}

/** Adds the stored records of these lines to the tally. References of other kinds are not counted. */
export async function countStored(
  app: Importing,
  { target, tally }: Context,
  step: string,
  lines: Line[],
): Promise<void> {
  const ids = (record: string, field: string) =>
    lines.filter((line) => line.record === record).map(({ data }) => String(data[field]))
  const { projectId, organizationId } = target
  const count = async (kind: string, table: Referred, named: string[]) =>
    add(tally, 'here', { kind }, (await storedIds(app.db, table, projectId, named)).size)
  if (step === 'products') await count(step, 'products', ids('product', 'id'))
  else if (step === 'customers') await count(step, 'profiles', ids('profile', 'id'))
  else if (step === 'subscriptions') await countSubscriptions(app, tally, projectId, ids('subscription', 'id'))
  else await countPayments(app, tally, organizationId, ids('payment', 'trx_id'))
}

async function countSubscriptions({ db }: Importing, tally: Tally, projectId: string, ids: string[]): Promise<void> {
  const rows = await db.query(
    `select to_char(created_at at time zone 'UTC', 'YYYY-MM') as month, currency, count(*) as n
     from subscriptions where project_id = $1 and id = any($2) group by 1, 2`,
    [projectId, ids],
  )
  for (const { month, currency, n } of rows)
    add(tally, 'here', { kind: 'subscriptions', month: month!, currency: currency! }, Number(n))
}

/** What the report calls rows of the payment report, by their type and status. */
export const KINDS: Record<string, string> = {
  'sale succeeded': 'payments',
  'sale failed': 'failed payments',
  'refund refunded': 'refunds',
  'refund failed': 'failed refunds',
  'chargeback refunded': 'chargebacks',
  'chargeback_reversal succeeded': 'reversed chargebacks',
}

export async function countPayments(
  { db }: Pick<Importing, 'db'>,
  tally: Tally,
  organizationId: string,
  ids: string[],
): Promise<void> {
  const rows = await db.query(
    `select psp_transaction_type || ' ' || status as kind, to_char(psp_date at time zone 'UTC', 'YYYY-MM') as month,
       currency_code, count(*) as n, sum(amount) as sum
     from report_transactions where organization_id = $1 and trx_id = any($2::uuid[]) group by 1, 2, 3`,
    [organizationId, ids],
  )
  for (const { kind, month, currency_code, n, sum } of rows) {
    const key = { kind: KINDS[kind!] ?? kind!, month: month!, currency: currency_code! }
    add(tally, 'here', key, Number(n), toMinor(readDecimal(sum!)!, currency_code!)!)
  }
}
