// Compares our movements since an instant with those at the providers, in both directions. Settles rows in progress, adopts
// refunds that are missing here, stores charges that are missing here as lost movements, and reports differences.
import { aroundCalls, type Call } from '../../providers/around-calls.ts'
import { storeFees } from '../../providers/fees.ts'
import { type Movement, NotPermitted, type Provider, ProviderError } from '../../providers/provider.ts'
import { repeatUnknown } from '../../providers/repeat.ts'
import type { BillingContext } from '../context.ts'
import { KINDS } from '../kinds.ts'
import { recordDisputes } from '../ledger/disputes.ts'
import { type AtProvider, isAt } from '../ledger/orders.ts'
import type { InProgress } from '../movement/in-progress.ts'
import type { Kind } from '../movement/kind-of-movement.ts'
import { leaseMs } from '../movement/lease.ts'
import { msUntilListable, noteListed, postponeList, type Unlisted } from '../movement/unlisted.ts'
import { compareMovements, compareWithoutOrders, type NotCompared, type Pass, type Reconciliation } from './compare.ts'

// How many movements are looked up at once.
const BATCH = 500

const LOOK_UPS = new Set<Call>(['look_up', 'look_up_refund', 'refunds_of', 'disputes_of'])

/**
 * An account whose provider, asked several times, does not respond or does not know the outcome of a movement is named in the result, and
 * so is what the key of an account may not read; the rest is compared. Throws `ProviderError` if no account could be read.
 */
export async function reconcile(context: BillingContext, since: string): Promise<Reconciliation> {
  const result = nothing()
  const accounts: AtProvider[] = []
  const failures: ProviderError[] = []
  for (const { organizationId, provider } of await context.providers.all()) {
    const pass = beginPass(context, provider, organizationId, result)
    await waitUntilComplete(pass)
    // The other accounts may belong to other organizations, which wait for their comparison after a restore.
    failures.push(...(await compareAccount(pass, since)))
    accounts.push(pass.at)
  }
  if (failures.length > 0 && failures.length === accounts.length) throw failures[0]!
  result.not_compared.push(...(await findNotConnected(context, accounts, since)))
  return result
}

function beginPass(
  context: BillingContext,
  provider: Provider,
  organizationId: string | null,
  result: Reconciliation,
): Pass {
  const at = { psp: provider.name, merchantId: provider.merchantId, organizationId }
  const patient = aroundCalls(provider, (call, run) => (LOOK_UPS.has(call) ? repeatUnknown(context.clock, run) : run()))
  return { context, provider: patient, at, seen: new Set(), inProgress: new Set(), withoutOrder: [], result }
}

const nothing = (): Reconciliation => ({
  match: 0,
  settled: 0,
  adopted: 0,
  in_progress: 0,
  not_compared: [],
  findings: [],
})

/** Lists an account whose commits a failover has lost, so that its organization can charge again. */
export async function listAccount(context: BillingContext, unlisted: Unlisted): Promise<void> {
  const { organizationId, psp, merchantId, since } = unlisted
  const provider = await context.providers.of(organizationId, psp, merchantId)
  if (!provider) return
  const pass = beginPass(context, provider, organizationId, nothing())
  const waitMs = await msUntilComplete(pass)
  if (waitMs > 0) return postponeList(context.db.query, unlisted, waitMs)
  await compareMoney(pass, since)
}

/** Milliseconds until the list of an account has the calls that were under way when commits were lost, or a backup was restored. */
async function msUntilComplete({ context, provider, at }: Pass): Promise<number> {
  const { lookUpLagMs } = provider.traits
  if (lookUpLagMs === undefined) return 0
  return msUntilListable(context.db.query, at, leaseMs(context.providerTimeoutMs, 1) + lookUpLagMs)
}

async function waitUntilComplete(pass: Pass): Promise<void> {
  const waitMs = await msUntilComplete(pass)
  if (waitMs === 0) return
  const { clock, log } = pass.context
  const account = { psp: pass.at.psp, psp_merchant_id: pass.at.merchantId, wait_s: Math.ceil(waitMs / 1000) }
  log.warn(account, 'A merchant account is listed later, when its list has the calls that were under way.')
  await clock.sleep(waitMs)
}

/** The accounts with charges or refunds since then, or to be listed, that are not connected, or whose provider is not set up here. */
async function findNotConnected(
  { db }: BillingContext,
  connected: readonly AtProvider[],
  since: string,
): Promise<NotCompared[]> {
  const rows = await db.query(NOT_CONNECTED, [
    since,
    connected.map(({ psp }) => psp),
    connected.map(({ merchantId }) => merchantId),
    connected.map(({ organizationId }) => organizationId),
  ])
  return rows.map(({ psp, psp_merchant_id, organization_id }) => ({
    psp: psp!,
    psp_merchant_id: psp_merchant_id!,
    organization_id: organization_id!,
    what: 'charges and refunds',
    missing_permission: null,
  }))
}

const NOT_CONNECTED = `
  select o.psp, o.psp_merchant_id, o.organization_id from (
    select o.psp, o.psp_merchant_id, o.organization_id from (
      select organization_id, order_id from orders where status <> 'failed' and created_at >= $1
      union
      select organization_id, order_id from refunds where not soft_refund and status <> 'failed' and created_at >= $1) moved
    join orders o using (organization_id, order_id)
    union
    select psp, psp_merchant_id, organization_id from unlisted_accounts where psp <> 'simulator') o
  where not exists (
    select from unnest($2::text[], $3::text[], $4::text[]) as a (psp, merchant_id, organization_id)
    where ${isAt('a.psp', 'a.merchant_id', 'a.organization_id')})
  order by 3, 1, 2`

/** Returns the error if the provider could not be read to the end. */
async function compareAccount(pass: Pass, since: string): Promise<ProviderError[]> {
  const { context, provider, at, result } = pass
  let what: NotCompared['what'] = 'charges and refunds'
  try {
    await compareMoney(pass, since)
    what = 'disputes'
    await ifPermitted(pass, what, async () => {
      if (provider.listDisputes) result.adopted += await recordDisputes(context, at, provider.listDisputes(since))
    })
    what = 'fees'
    await ifPermitted(pass, what, () => storeFeesSince(pass, since))
    return []
  } catch (error) {
    if (!(error instanceof ProviderError)) throw error
    noteNotCompared(pass, what, { missing_permission: null, unreachable: error.message })
    return [error]
  }
}

/** Compares charges and refunds. What has no row here is stored, and then the account counts as listed. */
async function compareMoney(pass: Pass, since: string): Promise<void> {
  const { context, provider, at } = pass
  await ifPermitted(pass, 'charges and refunds', async () => {
    for await (const batch of batches(provider.list(since))) {
      await compareMovements(pass, batch)
    }
    await compareWithoutOrders(pass)
    await noteListed(context.db.query, at, since)
    for (const kind of KINDS) await findMissingThere(pass, kind, since)
  })
}

/** Compares a part of an account, unless its key may not read it. */
async function ifPermitted(pass: Pass, what: NotCompared['what'], compare: () => Promise<void>): Promise<void> {
  try {
    await compare()
  } catch (error) {
    if (!(error instanceof NotPermitted)) throw error
    noteNotCompared(pass, what, { missing_permission: error.permission })
  }
}

function noteNotCompared(
  { at: { psp, merchantId: psp_merchant_id, organizationId: organization_id }, result }: Pass,
  what: NotCompared['what'],
  why: Pick<NotCompared, 'missing_permission' | 'unreachable'>,
): void {
  result.not_compared.push({ psp, psp_merchant_id, organization_id, what, ...why })
}

/** Stores fees that no notification contained, and those of adopted refunds. */
async function storeFeesSince({ context, provider, at }: Pass, since: string): Promise<void> {
  const { psp, merchantId, organizationId } = at
  if (!provider.feesSince || organizationId === null) return
  const account = { organizationId, psp, merchantId }
  for await (const fees of provider.feesSince(since)) await storeFees(context.db.query, account, fees)
}

/** Looks up each row here that has no movement in the list: the money may have moved before `since`. */
async function findMissingThere(pass: Pass, kind: Kind<InProgress>, since: string): Promise<void> {
  const { context, provider, at, seen, result } = pass
  const { name: psp } = provider
  for (const row of await kind.findSucceededSince(context.db.query, at, since)) {
    if (seen.has(`${kind.type} ${row.provider_key}`)) continue
    // If repeating the call is the only look-up, it would move the money of a missing movement.
    const isReplay = provider.traits.lookUp === 'replay'
    const found = isReplay ? NOT_FOUND : await kind.lookUp(provider, row)
    if (found.outcome === 'unknown' || found.outcome === 'pending') throw new ProviderError(found.why)
    if (found.outcome === 'succeeded') result.match++
    else if (found.outcome === 'failed' && (await hasFailedLater(pass, kind, row))) result.adopted++
    else {
      const what = `succeeded here with ${row.amount} ${row.currency_code}, ${found.outcome.replace('_', ' ')} there`
      result.findings.push({ difference: 'missing_there', psp, type: kind.type, reference: kind.idOf(row), what })
    }
  }
}

/** Undoes a refund that had succeeded and failed at the provider later. */
async function hasFailedLater(
  { context, provider, at }: Pass,
  { ofCharge }: Kind<InProgress>,
  row: InProgress,
): Promise<boolean> {
  const charge = ofCharge?.idOf(row) ?? null
  if (!ofCharge || charge === null) return false
  const adoptions = await ofCharge.adopt(context, provider, at, charge)
  return adoptions?.includes('failed_later') ?? false
}

const NOT_FOUND = { outcome: 'not_found' } as const

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
