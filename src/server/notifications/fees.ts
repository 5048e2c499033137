// Stores the fees of balance entries that a notification names, for payments that Tundish charged.

import { isUuid } from '../../lib/ids.ts'
import type { Statement } from '../../lib/pg/types.ts'
import type { BillingContext } from '../../payments/billing/context.ts'
import type { AccountName } from '../../payments/providers/account.ts'
import { type BalanceEntries, storeFees, unknownEntries } from '../../payments/providers/fees.ts'
import { type Provider, ProviderError } from '../../payments/providers/provider.ts'

/**
 * Looks up and stores the fees that are missing. Other programs may charge the same account much more often, so nothing is
 * looked up for their payments; an import that follows the account reads those fees.
 */
export async function storeFeesOfOrder(
  { db, log }: Pick<BillingContext, 'db' | 'log'>,
  account: AccountName,
  provider: Provider,
  { entryIds, orderId, chargeTransactionId }: BalanceEntries,
): Promise<void> {
  if (!provider.feeOf) return
  const unknown = await unknownEntries(db.query, 'provider_fees', account, entryIds)
  if (unknown.length === 0) return
  const { organizationId, psp, merchantId } = account
  const names = [orderId !== null && isUuid(orderId) ? orderId : null, chargeTransactionId]
  if ((await db.query(IS_OURS, [organizationId, psp, merchantId, ...names])).length === 0) return
  for (const entryId of unknown) {
    const fee = await provider.feeOf(entryId)
    if (fee === undefined) continue
    if (!('outcome' in fee)) await storeFees(db.query, account, [fee])
    else if (fee.outcome === 'unknown') throw new ProviderError(fee.why)
    // Without the permission to read fees, a repeated notification would not help, so this one counts as handled.
    else return log.warn({ ...account, why: fee.why }, 'Fees cannot be read with the credentials of the account.')
  }
}

const IS_OURS: Statement = {
  name: 'find order to keep fees of',
  text: `
    select from orders where organization_id = $1 and order_id = $4::uuid and psp = $2 and psp_merchant_id = $3
    union all
    select from orders where organization_id = $1 and charge_transaction_id = $5 and psp = $2 and psp_merchant_id = $3
    limit 1`,
}
