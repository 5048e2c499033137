// A custom charge, told top to bottom: seen before? allowed? claim, charge, settle, answer.
import { ApiError } from '../lib/errors.ts'
import { formatMinor, minorUnits, toMinor, tooManyDecimals } from '../lib/money.ts'
import { shorten } from '../lib/text.ts'
import type { Provider, Providers } from '../providers/provider.ts'
import { compare, fromDatabase, minorFromDatabase } from './amount.ts'
import { amountRefused } from './body.ts'
import { type ChargeAnswer, chargeAnswer } from './charge-answer.ts'
import { claim, type Draft } from './charge-claim.ts'
import type { ChargeRequest } from './charge-request.ts'
import { settle } from './charge-settlement.ts'
import { handOver, type Order, reference } from './charges.ts'
import type { BillingContext } from './context.ts'
import { keyReused } from './keys.ts'
import { leaseAllowsCall, leaseMs } from './lease.ts'
import { lookIntoCharge } from './looks.ts'
import { keep, timed } from './order-log.ts'
import { providerOf, unreachable } from './psp.ts'
import { readStanding, type Standing } from './standing.ts'

/**
 * Charges a customer's saved card, at most once for each key of the customer. Throws an `ApiError` for what is refused
 * before anything is begun; from the claim on every way ends in an answer, and no failure of ours or of the way to the
 * provider is ever told as `failed`.
 */
export async function oneOffCharge(
  context: BillingContext,
  organizationId: string,
  request: ChargeRequest,
): Promise<ChargeAnswer> {
  const { db, clock, providerTimeoutMs } = context
  const { seen, standing } = await readStanding(db, { organizationId, ...request })
  if (seen) return answerFor(request, seen, true)

  const { draft, provider } = allow(organizationId, request, standing, context.providers)

  const begunMs = clock.monotonicMs()
  const claimed = await claim(db, draft, leaseMs(providerTimeoutMs, 1))
  if (claimed.outcome === 'busy') throw new ApiError(400, 'Another charge of this customer is in progress.')
  if (claimed.outcome === 'known') return answerFor(request, claimed.order, true)

  const order = await charge(context, provider, claimed.order, begunMs)
  return answerFor(request, order, false)
}

/** The answer of an order; the key may turn out to stand for another amount, here or at the provider. */
function answerFor(request: ChargeRequest, order: Order, isReplay: boolean): ChargeAnswer {
  const isSame =
    request.currencyCode === order.currency_code && compare(request.amount, fromDatabase(order.amount)) === 0
  if (!isSame) throw keyReused('another amount or currency')
  return chargeAnswer(order, isReplay)
}

/** Goes through the rules in the order that the contract gives them; the first that is broken answers. */
function allow(
  organizationId: string,
  request: ChargeRequest,
  standing: Standing,
  providers: Providers,
): { draft: Draft; provider: Provider } {
  if (standing.one_off_charge_enabled !== 't') throw disabled()
  const amount = allowAmount(request, standing)
  const { customer_project_id: projectId, profile_id: profileId, card_token: token } = standing
  if (projectId === null) {
    throw new ApiError(400, `There is no customer with the external_id "${shorten(request.externalId, 64)}".`)
  }
  if (standing.has_payment !== 't') throw new ApiError(400, 'The customer has no successful payment yet.')
  if (token === null) throw new ApiError(400, 'The customer has no saved card.')
  const { card_merchant_id: merchantId, card_region: region, card_trx_id } = standing
  const psp = standing.card_psp!
  const provider = providerOf(providers, psp)
  if (!isOffered(request.currencyCode, standing.currencies)) {
    throw new ApiError(400, `${request.currencyCode} is not offered by the merchant account of the saved card.`)
  }
  if (!provider.admits()) throw unreachable()
  const card = { psp, merchantId, region, token, sourceTrxId: card_trx_id! }
  return { draft: { organizationId, request, amount, projectId, profileId, card }, provider }
}

/** The amount in major units with all decimals of its currency. */
function allowAmount({ amount, amountSent, currencyCode }: ChargeRequest, standing: Standing): string {
  if (amount.digits <= 0n) throw amountRefused('must be greater than 0', amountSent)
  if (minorUnits(currencyCode) === undefined) {
    throw new ApiError(400, `currency_code "${currencyCode}" is not a currency of ISO 4217.`)
  }
  const minor = toMinor(amount, currencyCode)
  if (minor === undefined) throw new ApiError(400, `amount ${tooManyDecimals(currencyCode)}.`)
  const limits = JSON.parse(standing.one_off_charge_max_amount) as Record<string, string | number | undefined>
  const most = String(limits[currencyCode] ?? limits['*'] ?? 0)
  if (compare(amount, fromDatabase(most)) > 0) {
    throw new ApiError(400, `amount is above the organization's maximum of ${most} ${currencyCode}.`)
  }
  return formatMinor(minor, currencyCode)
}

/** A merchant account that nobody described, or that names no currencies, offers all. */
function isOffered(currencyCode: string, currencies: string | null): boolean {
  const offered = JSON.parse(currencies ?? '[]') as string[]
  return offered.length === 0 || offered.includes(currencyCode)
}

function disabled(): ApiError {
  const extra = { code: 'one_off_charge_disabled' }
  return new ApiError(400, 'Custom charges are not enabled for this organization.', { extra })
}

/**
 * Charges a claimed order, and answers it as it stands then. Whatever goes wrong from here on, the order stays
 * `processing`, and settling finds out what became of it: a time-out is not a failure.
 */
async function charge(context: BillingContext, provider: Provider, order: Order, begunMs: number): Promise<Order> {
  const { db, clock, log, providerTimeoutMs } = context
  try {
    if (!leaseAllowsCall(providerTimeoutMs, clock.monotonicMs() - begunMs)) return await leaveToSettling(context, order)
    const { answer: verdict, note } = await timed(context, order, 'charge', () =>
      provider.charge({ ...reference(order), ...money(order), traceparent: context.traceparent }),
    )
    if (verdict.outcome === 'unknown' || verdict.outcome === 'conflict') keep(context, note)
    if (verdict.outcome === 'unknown') return await leaveToSettling(context, order)
    if (verdict.outcome === 'conflict') return await lookIntoCharge(context, order)
    return await settle(db, order, verdict, { note })
  } catch (error) {
    log.error({ err: error, order_id: order.order_id }, 'A charge is left to settling.')
    return order
  }
}

async function leaveToSettling({ db }: BillingContext, order: Order): Promise<Order> {
  await handOver(db, order)
  return order
}

function money({ amount, currency_code, payment_method_token }: Order) {
  return {
    amountMinor: minorFromDatabase(amount, currency_code),
    currencyCode: currency_code,
    token: payment_method_token,
  }
}
