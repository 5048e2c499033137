// A custom charge, from top to bottom: known key, or refused? Else claim, prepare, confirm (or charge), settle, respond.
import { ApiError, tryLater } from '../../../lib/errors.ts'
import { formatMinor } from '../../../lib/money.ts'
import type { NotBegun } from '../../providers/outcomes.ts'
import { EVERY_MERCHANT, type Provider } from '../../providers/provider.ts'
import { compare, fromDatabase } from '../amount.ts'
import type { BillingContext } from '../context.ts'
import { checkGrants } from '../credits/grants.ts'
import { checkStatus, conclude } from '../movement/check-status.ts'
import { keyReused } from '../movement/keys.ts'
import type { CallResult, Checked } from '../movement/kind-of-movement.ts'
import { leaseMs } from '../movement/lease.ts'
import { keep, type Note, timed } from '../movement/provider-calls.ts'
import { notBegun, providerOf, providerOfClaimed, unreachable } from '../movement/psp.ts'
import { renewLeaseForCall } from '../movement/renew-lease.ts'
import { noteCaps } from './caps.ts'
import { type Account, type Claimed, claim } from './claim.ts'
import type { ChargeRequest } from './request.ts'
import { type ChargeResponse, chargeResponse } from './response.ts'
import { chargeRequest, type Order, ordersInProgress, reference, storeHandle } from './row.ts'
import { exactAmount, inProgressRefusal, notReconciled, type Refusal, refusalOf } from './rules.ts'

// Each further turn needs another charge of the same customer to begin and settle within a statement.
const MAX_TURNS = 20
// Each batch of claims decides at least one of those that wait for a cap; more than this wait only behind a flood of refused charges.
const MAX_CONTENDED = 500

/**
 * Charges a customer's saved card, at most once for each key of the customer. Throws an `ApiError` if the charge is refused
 * before anything is begun at the provider. After that it always returns a response, and neither our own failure nor that
 * of the network is ever reported as `failed`.
 */
export async function oneOffCharge(
  context: BillingContext,
  kind: Checked<Order>,
  organizationId: string,
  request: ChargeRequest,
): Promise<ChargeResponse> {
  await checkGrants(context.db.query, organizationId, request.grants)
  const claimed = await claimAllowed(context, organizationId, request)
  if (!claimed.isNew) return responseFor(request, claimed.order, true)
  const order = await submit(context, kind, claimed)
  // An adopted charge was made by an earlier request with the key, whose order is lost.
  return responseFor(request, order, claimed.isLost || order.is_adopted === true)
}

/**
 * The order of the key, made now or before. Throws the refusal if there may be none. Another charge of the customer may
 * begin or settle between two statements; then it claims again.
 */
async function claimAllowed(
  { db, clock, providers, providerTimeoutMs }: BillingContext,
  organizationId: string,
  request: ChargeRequest,
): Promise<Claimed> {
  const { currencyCode } = request
  const exact = exactAmount(request)
  const amountMinor = exact instanceof ApiError ? undefined : exact
  const amount = amountMinor === undefined ? null : formatMinor(amountMinor, currencyCode)
  const takes = (provider: Provider) =>
    amountMinor !== undefined && provider.accepts({ amountMinor, currencyCode }) === undefined
  // `admits` of an open circuit would use up its one trial.
  const isReady = (one: Provider) => !one.circuitIsOpen() && takes(one) && one.admits()
  const ready = [...providers.opened(organizationId)].filter(isReady).map(accountOf)
  let contended = 0
  for (let turn = 1; turn - contended <= MAX_TURNS; turn++) {
    const claimed = await claim(db, {
      organizationId,
      request,
      amount,
      ready,
      leaseMs: leaseMs(providerTimeoutMs, 1),
      clock,
    })
    if (claimed.order) return claimed
    const { refusal } = claimed
    const { rule } = refusal
    if (rule === null) continue
    if (rule === 'cap_contended') {
      if (++contended === MAX_CONTENDED) throw tryLater('write_conflict', CONTENDED)
      continue
    }
    if (rule === 'caps_not_locked') {
      noteCaps(db, organizationId)
      continue
    }
    if (rule === 'amount_refused') throw exact
    if (rule === 'restore_not_reconciled') throw notReconciled(refusal)
    if (rule !== 'provider_not_ready' && rule !== 'currency_not_offered') throw refusalOf(rule, request, refusal)
    const card = { psp: refusal.card_psp!, psp_merchant_id: refusal.card_psp_merchant_id }
    const provider = await providerOf(providers, organizationId, card)
    if (rule === 'currency_not_offered') throw refusalOf(rule, request, refusal)
    checkReady(provider, refusal, amountMinor!, currencyCode)
    ready.push({ psp: card.psp, merchant_id: card.psp_merchant_id ?? EVERY_MERCHANT })
  }
  throw inProgressRefusal()
}

const CONTENDED = 'Many charges near a cap were requested at once. Nothing was begun: try again with the same key.'

const accountOf = ({ name, merchantId }: Provider): Account => ({ psp: name, merchant_id: merchantId })

/** Throws unless the provider takes the charge now: a 400 for what it can never take, and else a 503. */
function checkReady(provider: Provider, { is_busy }: Refusal, amountMinor: bigint, currencyCode: string): void {
  const why = provider.accepts({ amountMinor, currencyCode })
  if (why !== undefined) throw new ApiError(400, 'not_accepted_by_provider', why)
  // A customer with a charge in progress makes no call, and would use up the trial of an open circuit.
  if ((is_busy && provider.circuitIsOpen()) || !provider.admits()) throw unreachable()
}

/** The response for an order. Throws if its key was used for another amount, here or at the provider. */
function responseFor(request: ChargeRequest, order: Order, isReplay: boolean): ChargeResponse {
  const { asked_amount, asked_currency_code } = order
  const isSame =
    request.currencyCode === asked_currency_code && compare(request.amount, fromDatabase(asked_amount)) === 0
  if (!isSame) throw keyReused('another amount or currency')
  if (request.grants !== order.grants) throw keyReused('other grants')
  return chargeResponse(order, isReplay)
}

/**
 * Submits a claimed charge to the provider and returns the order as it is then. After any failure the order stays
 * `processing` and settling finds the outcome: a time-out is not a failure. Throws a 503 when the provider turned the
 * charge away before it began, and a 400 when its account is no longer connected, so that the key is free again.
 */
async function submit(
  context: BillingContext,
  kind: Checked<Order>,
  { order, sentMs, isLost }: Claimed,
): Promise<Order> {
  try {
    const provider = await providerOfClaimed(context, ordersInProgress, order)
    const held = await renewLeaseForCall(context, ordersInProgress, order, sentMs)
    if (!held) return order
    if (isLost) return await checkStatus(context, kind, held)
    if (provider.traits.prepares) return await prepareAndConfirm(context, kind, provider, held)
    const { result, note } = await timed(context, held, 'charge', () =>
      provider.charge!(chargeRequest(held, context.traceparent)),
    )
    return await concludeOrGiveBack(context, kind, provider, held, result, note)
  } catch (error) {
    if (error instanceof ApiError) throw error
    context.log.error({ err: error, order_id: order.order_id }, 'A charge is left to settling.')
    return order
  }
}

/**
 * Prepares the payment, stores its handle, and only then confirms it: an order without a handle was never charged, unless the
 * database has lost the handle since.
 */
async function prepareAndConfirm(
  context: BillingContext,
  kind: Checked<Order>,
  provider: Provider,
  order: Order,
): Promise<Order> {
  const { db, clock, providerTimeoutMs, traceparent } = context
  const request = chargeRequest(order, traceparent)
  const { result: prepared, note } = await timed(context, order, 'prepare', () => provider.prepare!(request))
  if (prepared.outcome !== 'prepared') return concludeOrGiveBack(context, kind, provider, order, prepared, note)
  keep(context, note)
  const sentMs = clock.monotonicMs()
  const stored = await storeHandle(db, order, prepared, leaseMs(providerTimeoutMs, 1))
  const held = stored && (await renewLeaseForCall(context, ordersInProgress, stored, sentMs))
  if (!held) return stored ?? order
  const confirmed = await timed(context, held, 'confirm', () =>
    provider.confirm!({ ...reference(held), handle: prepared.handle, traceparent }),
  )
  return conclude(context, kind, provider, held, confirmed.result, confirmed.note)
}

/** Deletes the order of a charge that never began at the provider, and throws; any other result is settled or checked later. */
async function concludeOrGiveBack(
  context: BillingContext,
  kind: Checked<Order>,
  provider: Provider,
  order: Order,
  result: CallResult | NotBegun,
  note: Note,
): Promise<Order> {
  if (result.outcome !== 'not_begun') return conclude(context, kind, provider, order, result, note)
  await ordersInProgress.giveBack(context.db, order)
  throw notBegun(context, provider, result)
}
