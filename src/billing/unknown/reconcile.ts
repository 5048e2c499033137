// Compares our orders and refunds with what the providers did since an instant, both ways, settles and adopts what it can.
import { minorUnits } from '../../lib/money.ts'
import { storeFees } from '../../providers/fees.ts'
import { type Movement, type Provider, ProviderError } from '../../providers/provider.ts'
import { recordDisputes } from '../adopt/disputes.ts'
import { adoptRefundsOfCharge } from '../adopt/refunds.ts'
import { minorFromDatabase } from '../amount.ts'
import { type AtProvider, findSucceededSince as findCharges, type Order } from '../charge/orders.ts'
import type { BillingContext } from '../context.ts'
import { findSucceededSince as findRefunds, type Refund } from '../refund/refunds.ts'
import { leaseMs } from './lease.ts'
import { CHARGE, type Kind, look, orUnsettled, REFUND } from './look.ts'

export type Difference = 'mismatch' | 'missing_here' | 'missing_there' | 'duplicate'

export interface Finding {
  difference: Difference
  psp: string
  type: Movement['type']
  /** Our id of the order or refund, as the provider has it; its own id for what was not made by us. */
  reference: string
  what: string
}

export interface Reconciliation {
  match: number
  /** In progress here until now, settled by this. */
  settled: number
  /** Refunds and disputes of orders that are here, which were missing and were written by this. */
  adopted: number
  /** Held by a process that is making or settling it at this moment. */
  in_progress: number
  findings: Finding[]
}

/** One merchant account while it is compared. */
interface Pass {
  context: BillingContext
  provider: Provider
  at: AtProvider
  /** Type and key of the movements so far. */
  seen: Set<string>
  /** The organizations of charges that are in progress here and have succeeded there, by the provider's id of the charge. */
  unsettled: Map<string, string>
  /** Refunds of charges that no settled order here has. */
  withoutOrder: Movement[]
  /** Organizations that the provider has more of than is here: a later reconciliation has to find it. */
  incomplete: Set<string>
  result: Reconciliation
}

// How many movements are looked up at once.
const BATCH = 500

/** Throws `ProviderError` when a provider cannot tell. */
export async function reconcile(context: BillingContext, since: string): Promise<Reconciliation> {
  const result: Reconciliation = { match: 0, settled: 0, adopted: 0, in_progress: 0, findings: [] }
  const incomplete = new Set<string>()
  const compared = new Set<string | null>()
  for (const { organizationId, provider } of await context.providers.all()) {
    const at: AtProvider = [provider.name, provider.merchantId, organizationId]
    const before = result.findings.length
    const empty = { seen: new Set<string>(), unsettled: new Map<string, string>(), withoutOrder: [] }
    await compareAccount({ context, provider, at, ...empty, incomplete, result }, since)
    compared.add(organizationId)
    if (organizationId !== null && result.findings.slice(before).some(isForgottenCharge)) incomplete.add(organizationId)
  }
  await context.db.query(CLEAR_RESTORED, [
    since,
    [...incomplete],
    compared.has(null),
    [...compared].filter((id) => id !== null),
  ])
  return result
}

const isForgottenCharge = ({ difference, type }: Finding) => difference === 'missing_here' && type === 'charge'

// Until then a charge asks the provider for its key before it is made. A forgotten charge of a provider that serves all
// organizations does not count: that one remembers keys for ever. Where no account was compared the mark stays: the backup may be
// older than the connection of the account, which then has charges that nothing here tells of.
const CLEAR_RESTORED = `
  update organizations set restored_from = null
  where restored_from >= $1::timestamptz and not (id = any($2::text[])) and ($3 or id = any($4::text[]))`

async function compareAccount(pass: Pass, since: string): Promise<void> {
  const { context, provider, at, result } = pass
  for await (const batch of batches(provider.list(since))) {
    await compareBatch(pass, CHARGE, batch)
    await compareBatch(pass, REFUND, batch)
  }
  for (const refund of pass.withoutOrder) await compareWithoutOrder(pass, refund)
  if (provider.listDisputes) result.adopted += await recordDisputes(context, at, provider.listDisputes(since))
  await storeFeesSince(pass, since)
  await findMissingThere(pass, CHARGE, await findCharges(context.db.query, at, since))
  await findMissingThere(pass, REFUND, await findRefunds(context.db.query, at, since))
}

/** Fees that no notification told, and those of what was adopted. */
async function storeFeesSince({ context, provider, at }: Pass, since: string): Promise<void> {
  const [psp, merchantId, organizationId] = at
  if (!provider.feesSince || organizationId === null) return
  const account = { organizationId, psp, merchantId }
  for await (const fees of provider.feesSince(since)) {
    if (Array.isArray(fees)) await storeFees(context.db.query, account, fees)
    else context.log.warn({ ...account, why: fees.why }, 'Fees cannot be read with the credentials of the account.')
  }
}

/** Movements there against rows here. */
async function compareBatch<Row extends Order | Refund>(
  pass: Pass,
  kind: Kind<Row>,
  batch: readonly Movement[],
): Promise<void> {
  const { context, seen } = pass
  const movements = batch.filter(({ type }) => type === kind.type)
  const keys = movements.flatMap(({ key }) => key ?? [])
  const found = await kind.rows.findByProviderKeys(context.db.query, keys)
  const rows = new Map(found.map((row) => [row.provider_key, row]))
  for (const movement of movements) {
    const { type, key, transactionId } = movement
    const row = key === null ? undefined : rows.get(key)
    const place = `${type} ${key ?? transactionId}`
    if (seen.has(place)) report(pass, movement, 'duplicate', 'moved twice under one key')
    else if (row) await compareOne(pass, kind, row, movement)
    else await compareMissing(pass, movement)
    seen.add(place)
  }
}

function report({ provider, result }: Pass, movement: Movement, difference: Difference, what: string): void {
  const reference = movement.reference ?? movement.transactionId
  result.findings.push({ difference, psp: provider.name, type: movement.type, reference, what })
}

/** What is not here: a refund is adopted if its order is here. A movement that was not made by us, of no order here, is none of ours. */
async function compareMissing(pass: Pass, movement: Movement): Promise<void> {
  if (movement.type === 'refund' && (await adopt(pass, movement))) return
  if (movement.type === 'refund') pass.withoutOrder.push(movement)
  else if (movement.key !== null) reportMissing(pass, movement)
}

/**
 * A refund once more, after all charges: its order may be settled by now. If another process holds the order still, the
 * refund is adopted by a later reconciliation, and until then nothing may be paid back without asking the provider.
 */
async function compareWithoutOrder(pass: Pass, refund: Movement): Promise<void> {
  if (await adopt(pass, refund)) return
  const organizationId = pass.unsettled.get(refund.chargeTransactionId ?? '')
  if (organizationId !== undefined) pass.incomplete.add(organizationId)
  if (refund.key !== null) reportMissing(pass, refund)
}

/** False: no settled order here has the charge of the refund. */
async function adopt(pass: Pass, refund: Movement): Promise<boolean> {
  if (refund.chargeTransactionId === undefined) return false
  const adoptions = await adoptRefundsOfCharge(pass.context, pass.provider, pass.at, refund.chargeTransactionId)
  if (!adoptions) return false
  if (adoptions.includes('mismatch'))
    report(pass, refund, 'mismatch', `${worth(refund)} there, which cannot be settled here`)
  else pass.result.adopted += adoptions.filter((one) => one === 'adopted' || one === 'failed_later').length
  return true
}

const reportMissing = (pass: Pass, movement: Movement) =>
  report(pass, movement, 'missing_here', `${worth(movement)} that nothing here stands for`)

async function compareOne<Row extends Order | Refund>(
  pass: Pass,
  kind: Kind<Row>,
  row: Row,
  movement: Movement,
): Promise<void> {
  const { result } = pass
  const isForgotten = row.status === 'processing'
  const now = isForgotten ? await settleForgotten(pass.context, kind, row) : row
  const differs = (what: string) => report(pass, movement, 'mismatch', `${worth(movement)} there, ${what}`)
  if (now === 'unsettled' || !now || now.status === 'processing')
    pass.unsettled.set(movement.transactionId, row.organization_id)
  if (now === 'unsettled') differs('which cannot be settled here')
  else if (!now) result.in_progress++
  else if (now.status === 'processing') differs('of which nothing certain can be heard')
  else if (now.status !== 'succeeded') differs(`${now.status} here`)
  else if (!isSameMoney(now, movement)) differs(`${now.amount} ${now.currency_code} here`)
  else if (isForgotten) result.settled++
  else result.match++
}

async function settleForgotten<Row extends Order | Refund>(
  context: BillingContext,
  kind: Kind<Row>,
  row: Row,
): Promise<Row | 'unsettled' | undefined> {
  const taken = await kind.rows.take(context.db, row, leaseMs(context.providerTimeoutMs, 2))
  return taken && orUnsettled(context, taken, () => look(context, kind, taken))
}

/** Rows here without a movement: the provider is asked about each, for it may have moved earlier. */
async function findMissingThere<Row extends Order | Refund>(
  { provider, seen, result }: Pass,
  kind: Kind<Row>,
  rows: readonly Row[],
): Promise<void> {
  const { name: psp } = provider
  for (const row of rows) {
    if (seen.has(`${kind.type} ${row.provider_key}`)) continue
    // Where the same call is the only look-up, it could move the money of what is missing.
    const isReplay = provider.traits.lookUp === 'replay'
    const answer = isReplay ? NOT_FOUND : await kind.lookUp(provider, row)
    if (answer.outcome === 'unknown' || answer.outcome === 'pending') throw new ProviderError(answer.why)
    if (answer.outcome === 'succeeded') result.match++
    else {
      const what = `succeeded here with ${row.amount} ${row.currency_code}, ${answer.outcome.replace('_', ' ')} there`
      result.findings.push({ difference: 'missing_there', psp, type: kind.type, reference: kind.id(row), what })
    }
  }
}

const NOT_FOUND = { outcome: 'not_found' } as const

function isSameMoney(row: Order | Refund, { amountMinor, currencyCode }: Movement): boolean {
  if (row.currency_code !== currencyCode || minorUnits(currencyCode) === undefined) return false
  return minorFromDatabase(row.amount, currencyCode) === amountMinor
}

const worth = ({ amountMinor, currencyCode }: Movement) => `${amountMinor} minor units of ${currencyCode}`

async function* batches(movements: AsyncIterable<Movement>): AsyncGenerator<Movement[]> {
  let batch: Movement[] = []
  for await (const movement of movements) {
    batch.push(movement)
    if (batch.length < BATCH) continue
    yield batch
    batch = []
  }
  yield batch
}
