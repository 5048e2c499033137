// Compares the movements that a merchant account lists with those here, settles those in progress, and adopts what is missing.
import { minorUnits } from '../../../lib/money.ts'
import { isAccepted, storeLost } from '../../providers/lost-movements.ts'
import type { Movement, Provider } from '../../providers/provider.ts'
import { minorFromDatabase } from '../amount.ts'
import type { BillingContext } from '../context.ts'
import { KINDS } from '../kinds.ts'
import type { AtProvider } from '../ledger/orders.ts'
import { checkStatus, orUnsettled } from '../movement/check-status.ts'
import type { InProgress } from '../movement/in-progress.ts'
import type { Kind } from '../movement/kind-of-movement.ts'
import { leaseMs } from '../movement/lease.ts'
import { endLate, isLate } from './late.ts'

export type Difference = 'mismatch' | 'missing_here' | 'missing_there' | 'duplicate'

export interface Finding {
  difference: Difference
  psp: string
  type: Movement['type']
  /** Our id of the order or refund, as the provider has it; its own id for what was not made by us. */
  reference: string
  what: string
}

/** A merchant account, or a part of it, that could not be compared. */
export interface NotCompared {
  psp: string
  psp_merchant_id: string | null
  organization_id: string | null
  what: 'charges and refunds' | 'disputes' | 'fees'
  /** The permission that the account's key lacks, by the provider's name of it; null if there is another reason. */
  missing_permission: string | null
  /** Why the provider could not be read; missing if it could. */
  unreachable?: string
}

export interface Reconciliation {
  match: number
  /** In progress here until now, settled by this. */
  settled: number
  /** Refunds and disputes of orders that are here, which were missing and were written by this. */
  adopted: number
  /** Held by a process that is making or settling it at this moment. */
  in_progress: number
  not_compared: NotCompared[]
  findings: Finding[]
}

/** One merchant account while it is compared. */
export interface Pass {
  context: BillingContext
  provider: Provider
  at: AtProvider
  /** Type and key of the movements so far. */
  seen: Set<string>
  /** The provider's ids of the charges that were in progress here, or whose id was not known here. */
  inProgress: Set<string>
  /** Movements of charges that no order here had, or none that was settled. */
  withoutOrder: { kind: Kind<InProgress>; movement: Movement }[]
  result: Reconciliation
}

/** Compares movements with their rows; `compareWithoutOrders` follows after the last of them. */
export async function compareMovements(pass: Pass, movements: readonly Movement[]): Promise<void> {
  for (const kind of KINDS) await compareBatch(pass, kind, movements)
}

async function compareBatch(pass: Pass, kind: Kind<InProgress>, batch: readonly Movement[]): Promise<void> {
  const { context, seen } = pass
  const movements = batch.filter(({ type }) => type === kind.type)
  const keys = movements.flatMap(({ key }) => key ?? [])
  const found = await kind.rows.findByProviderKeys(context.db.query, keys)
  const rows = new Map(found.map((row) => [row.provider_key, row]))
  if (kind.keepsLost)
    await keepLost(
      pass,
      movements.filter(({ key }) => key !== null && !rows.has(key)),
    )
  for (const movement of movements) {
    const { type, key, transactionId } = movement
    const row = key === null ? undefined : rows.get(key)
    const place = `${type} ${key ?? transactionId}`
    if (movement.hasFailed) continue
    if (row?.status === 'processing') await kind.rememberHandle?.(context.db.query, row, transactionId)
    if (movement.isPending) {
      await comparePending(pass, kind, movement, row)
      continue
    }
    if (seen.has(place)) report(pass, movement, 'duplicate', 'moved twice under one key')
    else if (row) await compareOne(pass, kind, row, movement)
    else await compareMissing(pass, kind, movement)
    seen.add(place)
  }
}

/** Stores movements that have no row here, so that their keys move no money again. An account of all organizations forgets no key. */
async function keepLost(
  { context, at: { psp, merchantId, organizationId } }: Pass,
  movements: Movement[],
): Promise<void> {
  if (organizationId !== null) await storeLost(context.db.query, { organizationId, psp, merchantId }, movements)
}

/**
 * Handles a movement that the provider decides later. A refund is recorded, for its key may be forgotten when the caller sends it
 * again. A payment whose order has ended is cancelled. One without an order would never be captured, so it is reported.
 */
async function comparePending(
  pass: Pass,
  kind: Kind<InProgress>,
  movement: Movement,
  row: InProgress | undefined,
): Promise<void> {
  if (kind.ofCharge) {
    if (!row && !(await adopt(pass, kind, movement))) pass.withoutOrder.push({ kind, movement })
  } else if (!row) await reportMissing(pass, movement)
  else if (isLate(kind, row, movement.transactionId)) {
    const open = await endLate(pass.context, pass.provider, kind, row, movement.transactionId)
    if (open !== undefined) report(pass, movement, 'mismatch', `${worth(movement)} ${open} there, ${row.status} here`)
  }
}

function report({ provider, result }: Pass, movement: Movement, difference: Difference, what: string): void {
  const reference = movement.reference ?? movement.transactionId
  result.findings.push({ difference, psp: provider.name, type: movement.type, reference, what })
}

/** Adopts a refund if its order is here. Other movements without our key were made by other programs. */
async function compareMissing(pass: Pass, kind: Kind<InProgress>, movement: Movement): Promise<void> {
  if (await adopt(pass, kind, movement)) return
  if (kind.ofCharge) pass.withoutOrder.push({ kind, movement })
  else if (movement.key !== null) await reportMissing(pass, movement)
}

/**
 * Compares the refunds again whose orders were not here, or not settled: they may be by now. The others are stored, so that nothing is
 * paid back for their charges before they are adopted.
 */
export async function compareWithoutOrders(pass: Pass): Promise<void> {
  for (const { kind, movement } of pass.withoutOrder) {
    const mayBeOurs = movement.key !== null || pass.inProgress.has(movement.chargeTransactionId ?? '')
    if (mayBeOurs && (await adopt(pass, kind, movement))) continue
    await keepLost(pass, [movement])
    if (movement.key !== null && !movement.isPending) await reportMissing(pass, movement)
  }
}

/** False: it belongs to no charge, or no settled order here has its charge. */
async function adopt(pass: Pass, { ofCharge }: Kind<InProgress>, movement: Movement): Promise<boolean> {
  if (!ofCharge || movement.chargeTransactionId === undefined) return false
  const adoptions = await ofCharge.adopt(pass.context, pass.provider, pass.at, movement.chargeTransactionId)
  if (!adoptions) return false
  if (adoptions.includes('mismatch'))
    report(pass, movement, 'mismatch', `${worth(movement)} there, which cannot be settled here`)
  if (adoptions.includes('may_be_ours')) {
    pass.result.in_progress++
    await keepLost(pass, [movement])
  }
  pass.result.adopted += adoptions.filter((one) => one === 'adopted' || one === 'failed_later').length
  return true
}

/** Reports it, unless an operator has accepted that another installation made it. */
async function reportMissing(pass: Pass, movement: Movement): Promise<void> {
  const { psp, merchantId, organizationId } = pass.at
  const account = organizationId !== null && { organizationId, psp, merchantId }
  if (account && (await isAccepted(pass.context.db.query, account, movement))) return
  const pending = movement.isPending ? ', pending there,' : ''
  report(pass, movement, 'missing_here', `${worth(movement)}${pending} without a row here`)
}

async function compareOne(pass: Pass, kind: Kind<InProgress>, row: InProgress, movement: Movement): Promise<void> {
  const { result } = pass
  const isForgotten = row.status === 'processing'
  if (isForgotten) pass.inProgress.add(movement.transactionId)
  const now = isForgotten ? await settleForgotten(pass.context, kind, row) : row
  const differs = (what: string) => report(pass, movement, 'mismatch', `${worth(movement)} there, ${what}`)
  if (now === 'unsettled') differs('which cannot be settled here')
  else if (!now) result.in_progress++
  else if (now.status === 'processing') differs('whose outcome the provider does not know')
  else if (now.status !== 'succeeded') {
    const succeededDespiteOurFailure = now.status === 'failed' && (await adopt(pass, kind, movement))
    if (!succeededDespiteOurFailure) differs(`${now.status} here`)
  } else if (!isSameMoney(now, movement)) differs(`${now.amount} ${now.currency_code} here`)
  else {
    if (kind.handleOf(now) === null) await rememberLate(pass, kind, now, movement)
    if (isForgotten) result.settled++
    else result.match++
  }
}

/** An operator said that it succeeded, and the provider has its id by now: its refunds and disputes are found by that. */
async function rememberLate(pass: Pass, kind: Kind<InProgress>, row: InProgress, movement: Movement): Promise<void> {
  await kind.rememberHandle?.(pass.context.db.query, row, movement.transactionId)
  pass.inProgress.add(movement.transactionId)
}

async function settleForgotten(
  context: BillingContext,
  kind: Kind<InProgress>,
  row: InProgress,
): Promise<InProgress | 'unsettled' | undefined> {
  const taken = await kind.rows.take(context.db, row, leaseMs(context.providerTimeoutMs, 2))
  return taken && orUnsettled(context, kind, taken, () => checkStatus(context, kind, taken))
}

function isSameMoney(row: InProgress, { amountMinor, currencyCode }: Movement): boolean {
  if (row.currency_code !== currencyCode || minorUnits(currencyCode) === undefined) return false
  return minorFromDatabase(row.amount, currencyCode) === amountMinor
}

const worth = ({ amountMinor, currencyCode }: Movement) => `${amountMinor} minor units of ${currencyCode}`
