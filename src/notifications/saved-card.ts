// Removes a saved card that was detached at the provider, so that it cannot be charged here any more.
import type { BillingContext } from '../billing/context.ts'
import type { AccountName } from '../providers/account.ts'
import { type Provider, ProviderError } from '../providers/provider.ts'

/** Removes the card's token if the card is attached to no customer at the provider. The payments that saved it stay. */
export async function updateSavedCard(
  { db, log }: Pick<BillingContext, 'db' | 'log'>,
  { organizationId, psp, merchantId }: AccountName,
  provider: Provider,
  token: string,
): Promise<void> {
  const key = [organizationId, token, psp, merchantId]
  if (!provider.savedCard || (await db.query(IS_SAVED, key)).length === 0) return
  const card = await provider.savedCard(token)
  if (card && 'outcome' in card) throw new ProviderError(card.why)
  if (card && card.customer !== null) return
  await db.query(FORGET, key)
  log.info(
    { organization_id: organizationId, psp, psp_merchant_id: merchantId },
    'A saved card was detached at the provider.',
  )
}

const MATCHING = `from report_transactions
  where organization_id = $1 and payment_method_token = $2 and psp = $3 and psp_merchant_id = $4`

const IS_SAVED = { name: 'find saved card by token', text: `select 1 ${MATCHING} limit 1` }

// The transaction report does not show tokens, so this changes nothing that callers have read.
const FORGET = {
  name: 'forget saved card',
  text: `update report_transactions set payment_method_token = null
         where organization_id = $1 and payment_method_token = $2 and psp = $3 and psp_merchant_id = $4`,
}
