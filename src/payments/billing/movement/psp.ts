// The refusals of a payment provider that is not set up here, that keeps failing, or that turned a charge away.
import { ApiError, tryLater } from '../../../lib/errors.ts'
import type { Db } from '../../../lib/pg/db.ts'
import type { NotBegun } from '../../providers/outcomes.ts'
import type { Provider, Providers } from '../../providers/provider.ts'
import type { BillingContext } from '../context.ts'

// The period for which an open circuit refuses all charges before it admits a trial.
const REST_SECONDS = 5

type Account = { psp: string; psp_merchant_id: string | null }

/** The provider that holds the customer's card, or a 400. */
export async function providerOf(
  providers: Providers,
  organizationId: string,
  { psp, psp_merchant_id }: Account,
): Promise<Provider> {
  const provider = await providers.of(organizationId, psp, psp_merchant_id)
  if (provider) return provider
  const account = psp_merchant_id === null ? '' : ` with the merchant account "${psp_merchant_id}"`
  throw new ApiError(
    400,
    'provider_not_set_up',
    `The saved card belongs to the payment provider "${psp}", which is not set up here${account}.`,
  )
}

/**
 * The provider of a row that was claimed just now. If its account has been disconnected since, the row is deleted, because nothing was
 * begun, and a 400 is thrown.
 */
export async function providerOfClaimed<Row extends Account & { organization_id: string }>(
  { db, providers }: BillingContext,
  rows: { giveBack(db: Db, row: Row): Promise<void> },
  claimed: Row,
): Promise<Provider> {
  try {
    return await providerOf(providers, claimed.organization_id, claimed)
  } catch (error) {
    if (error instanceof ApiError) await rows.giveBack(db, claimed)
    throw error
  }
}

/** The 503 for a provider that keeps failing. Nothing was begun, so the key stays free. */
export function unreachable(): ApiError {
  const sentence = 'The payment provider cannot be reached at the moment: nothing was begun, try again.'
  return tryLater('provider_unavailable', sentence, REST_SECONDS)
}

/** The 503 for a charge or refund that the provider rejected before it began. The key is free again. */
export function notBegun(context: Pick<BillingContext, 'log'>, provider: Provider, result: NotBegun): ApiError {
  logNotBegun(context, provider, result)
  return unreachable()
}

/** Logs why a provider rejected a call. Wrong credentials are an error, because an operator has to replace them. */
export function logNotBegun(
  { log }: Pick<BillingContext, 'log'>,
  { name, merchantId }: Provider,
  { cause, why }: NotBegun,
): void {
  const about = { psp: name, merchant_id: merchantId, cause, why }
  if (cause === 'credentials') log.error(about, 'The payment provider refuses our credentials.')
  else log.warn(about, 'The payment provider turned a call away.')
}
