// A custom charge, told top to bottom: claimed, seen before or refused? Then charge, settle, answer.
import { ApiError } from '../../lib/errors.ts'
import { formatMinor, MOST_MINOR, minorUnits, toMinor, tooManyDecimals } from '../../lib/money.ts'
import { shorten } from '../../lib/text.ts'
import type { ChargeRequest as ChargeAtProvider, Provider, Providers } from '../../providers/provider.ts'
import { compare, fromDatabase, minorFromDatabase } from '../amount.ts'
import { notPositive } from '../body.ts'
import type { BillingContext } from '../context.ts'
import { keyReused } from '../keys.ts'
import { providerOf, unreachable } from '../psp.ts'
import { lookIntoCharge } from '../unknown/ask-provider.ts'
import { leaseAllowsCall, leaseMs } from '../unknown/lease.ts'
import { keep, timed } from '../unknown/provider-calls.ts'
import { type ChargeAnswer, chargeAnswer } from './answer.ts'
import { type Account, type Claimed, claim, type Standing } from './claim.ts'
import { handOver, type Order, reference } from './orders.ts'
import type { ChargeRequest } from './request.ts'
import { isVerdict, settle } from './settle.ts'

// Each further turn needs another charge of the same customer to begin and settle within a statement.
const MOST_TURNS = 20

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
  const claimed = await claimAllowed(context, organizationId, request)
  if (!claimed.isNew) return answerFor(request, claimed.order, true)
  return answerFor(request, await charge(context, claimed), false)
}

/**
 * The order that the key stands for, made now or before; throws why there may be none. Another charge of the customer
 * may begin or settle while we ask; then it is asked again.
 */
async function claimAllowed(
  { db, clock, providers, providerTimeoutMs }: BillingContext,
  organizationId: string,
  request: ChargeRequest,
): Promise<Claimed> {
  const ready = readyOnes(providers, organizationId)
  const exact = exactAmount(request)
  const amount = exact instanceof ApiError ? null : exact
  const asked = { organizationId, request, amount, leaseMs: leaseMs(providerTimeoutMs, 1), clock }
  for (let turn = 1; turn <= MOST_TURNS; turn++) {
    const claimed = await claim(db, { ...asked, ready })
    if (claimed.order) return claimed
    const { standing } = claimed
    const provider = await allow(organizationId, request, exact, standing, ready, providers)
    if (standing.is_busy === 't') break
    if (!isReady(ready, provider)) ready.push(accountOf(provider))
  }
  throw new ApiError(400, 'charge_in_progress', 'Another charge of this customer is in progress.')
}

/** The providers that need no trial: asking those with an open circuit could spend one. */
function readyOnes(providers: Providers, organizationId: string): Account[] {
  const opened = [...providers.opened(organizationId)]
  return opened.filter((one) => !one.circuitIsOpen() && one.admits()).map(accountOf)
}

const accountOf = ({ name, merchantId }: Provider): Account => ({ psp: name, merchant_id: merchantId })

const isReady = (ready: readonly Account[], { name, merchantId }: Provider) =>
  ready.some((one) => one.psp === name && one.merchant_id === merchantId)

/** The answer of an order; the key may turn out to stand for another amount, here or at the provider. */
function answerFor(request: ChargeRequest, order: Order, isReplay: boolean): ChargeAnswer {
  const isSame =
    request.currencyCode === order.currency_code && compare(request.amount, fromDatabase(order.amount)) === 0
  if (!isSame) throw keyReused('another amount or currency')
  return chargeAnswer(order, isReplay)
}

/**
 * Goes through the rules in the order that the contract gives them; the first that is broken answers. The claim keeps the
 * same rules, in SQL.
 */
async function allow(
  organizationId: string,
  request: ChargeRequest,
  exact: string | ApiError,
  standing: Standing,
  ready: readonly Account[],
  providers: Providers,
): Promise<Provider> {
  if (standing.one_off_charge_enabled !== 't') throw disabled()
  if (exact instanceof ApiError) throw exact
  keepMaximum(request, standing)
  if (standing.customer_project_id === null) {
    throw new ApiError(
      400,
      'unknown_customer',
      `There is no customer with the external_id "${shorten(request.externalId, 64)}".`,
    )
  }
  if (standing.has_payment !== 't')
    throw new ApiError(400, 'no_successful_payment', 'The customer has no successful payment yet.')
  if (standing.card_token === null) throw new ApiError(400, 'no_saved_card', 'The customer has no saved card.')
  const card = { psp: standing.card_psp!, psp_merchant_id: standing.card_psp_merchant_id }
  const provider = await providerOf(providers, organizationId, card)
  if (!isOffered(request.currencyCode, standing.currencies)) {
    throw new ApiError(
      400,
      'currency_not_offered',
      `${request.currencyCode} is not offered by the merchant account of the saved card.`,
    )
  }
  // Whoever has a charge in progress makes no call, and would spend the trial of an open circuit for nothing.
  const mayCall = () => !(standing.is_busy === 't' && provider.circuitIsOpen()) && provider.admits()
  if (!isReady(ready, provider) && !mayCall()) throw unreachable()
  return provider
}

/** The amount in major units with all decimals of its currency, or why there is none to charge. */
function exactAmount({ amount, amountSent, currencyCode }: ChargeRequest): string | ApiError {
  if (amount.digits <= 0n) return notPositive(amountSent)
  if (minorUnits(currencyCode) === undefined) {
    return new ApiError(400, 'unknown_currency', `currency_code "${currencyCode}" is not a currency of ISO 4217.`)
  }
  const minor = toMinor(amount, currencyCode)
  if (minor === undefined)
    return new ApiError(400, 'amount_too_many_decimals', `amount ${tooManyDecimals(currencyCode)}.`)
  if (minor > MOST_MINOR) {
    return new ApiError(
      400,
      'amount_too_large',
      `amount must be at most ${formatMinor(MOST_MINOR, currencyCode)} ${currencyCode}.`,
    )
  }
  return formatMinor(minor, currencyCode)
}

function keepMaximum({ amount, currencyCode }: ChargeRequest, standing: Standing): void {
  const limits = JSON.parse(standing.one_off_charge_max_amount) as Record<string, string | number | undefined>
  const most = String(limits[currencyCode] ?? limits['*'] ?? 0)
  if (compare(amount, fromDatabase(most)) > 0) {
    throw new ApiError(
      400,
      'amount_above_maximum',
      `amount is above the organization's maximum of ${most} ${currencyCode}.`,
    )
  }
}

/** A merchant account that nobody described, or that names no currencies, offers all. */
function isOffered(currencyCode: string, currencies: string | null): boolean {
  const offered = JSON.parse(currencies ?? '[]') as string[]
  return offered.length === 0 || offered.includes(currencyCode)
}

function disabled(): ApiError {
  const extra = { code: 'one_off_charge_disabled' }
  return new ApiError(
    400,
    'one_off_charge_disabled',
    'Custom charges are not enabled for this organization: its operator runs "tundish org set ID --one-off-charge on".',
    { extra },
  )
}

/**
 * Charges a claimed order, and answers it as it stands then. Whatever goes wrong from here on, the order stays
 * `processing`, and settling finds out what became of it: a time-out is not a failure.
 */
async function charge(context: BillingContext, { order, sentMs }: Claimed): Promise<Order> {
  const { db, clock, log, providerTimeoutMs } = context
  try {
    const provider = await providerOf(context.providers, order.organization_id, order)
    if (!leaseAllowsCall(providerTimeoutMs, clock.monotonicMs() - sentMs)) return await leaveToSettling(context, order)
    const { answer: verdict, note } = await timed(context, order, 'charge', () =>
      chargeAt(provider, { ...reference(order), ...money(order), traceparent: context.traceparent }),
    )
    if (isVerdict(verdict)) return await settle(db, order, verdict, { note })
    keep(context, note)
    if (verdict.outcome === 'conflict') return await lookIntoCharge(context, order)
    return await leaveToSettling(context, order)
  } catch (error) {
    log.error({ err: error, order_id: order.order_id }, 'A charge is left to settling.')
    return order
  }
}

function chargeAt(provider: Provider, request: ChargeAtProvider) {
  if (!provider.charge) throw new Error(`Bug: ${provider.name} does not charge in one step`)
  return provider.charge(request)
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
    providerCustomer: null,
  }
}
