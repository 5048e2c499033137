// Follows a saved card at the provider: stores what changed on it, and removes one that was detached, so that it is not charged.
import type { BillingContext } from '../../payments/billing/context.ts'
import type { AccountName } from '../../payments/providers/account.ts'
import { errorOf, type Provider } from '../../payments/providers/provider.ts'

/**
 * Stores the card's present network, last four digits and expiry. Removes its token if it is no longer attached to a customer;
 * the payments that saved it stay.
 */
export async function updateSavedCard(
  { db, log }: Pick<BillingContext, 'db' | 'log'>,
  { organizationId, psp, merchantId }: AccountName,
  provider: Provider,
  token: string,
): Promise<void> {
  const key = [organizationId, token, psp, merchantId]
  if (!provider.savedCard) return
  const [saved] = await db.query(IS_SAVED, key)
  if (!saved) return
  const card = await provider.savedCard(token)
  if (card && 'outcome' in card) throw errorOf(card)
  if (card && card.customer !== null) {
    const { network, last4, expirationDate } = card
    const digits = last4 !== null && /^[0-9]{4}$/.test(last4) ? last4 : null
    await db.query(KEEP, [...key, network, digits, expirationDate, saved.at!])
    return
  }
  await db.query(FORGET, [...key, saved.at!])
  log.info(
    { organization_id: organizationId, psp, psp_merchant_id: merchantId },
    'A saved card was detached at the provider.',
  )
}

/** The same for each card that a payment of this customer at the provider has saved. */
export async function updateCardsOf(
  context: Pick<BillingContext, 'db' | 'log'>,
  account: AccountName,
  provider: Provider,
  customer: string,
): Promise<void> {
  const rows = await context.db.query(CARDS_OF, [account.organizationId, customer, account.psp, account.merchantId])
  for (const { token } of rows) await updateSavedCard(context, account, provider, token!)
}

const CARDS_OF = {
  name: 'find saved cards of a customer at the provider',
  text: `
    select distinct payment_method_token as token from report_transactions
    where organization_id = $1 and psp_customer_id = $2 and psp = $3 and psp_merchant_id = $4
      and payment_method_token is not null`,
}

const MATCHING = `
  where organization_id = $1 and payment_method_token = $2 and psp = $3 and psp_merchant_id = $4`
const SAME_CARD = 'where organization_id = $1 and token = $2 and psp = $3 and psp_merchant_id = $4'

const IS_SAVED = {
  name: 'find saved card by token',
  text: `
    select db_clock() as at from (
      (select from report_transactions ${MATCHING} limit 1) union all (select from detached_cards ${SAME_CARD})
    ) known limit 1`,
}

const KEEP = {
  name: 'keep saved card',
  text: `
    with attached as (
      delete from detached_cards ${SAME_CARD} and detached_at < $8)
    insert into saved_cards as k (organization_id, token, psp, psp_merchant_id, network, last4, expiration_date, looked_up_at)
    values ($1, $2, $3, $4, $5, $6, $7, $8)
    on conflict (organization_id, token, psp, psp_merchant_id) do update set network = excluded.network,
      last4 = excluded.last4, expiration_date = excluded.expiration_date, looked_up_at = excluded.looked_up_at
    where k.looked_up_at < excluded.looked_up_at`,
}

// The transaction report does not show tokens, so this changes nothing that callers have read.
const FORGET = {
  name: 'forget saved card',
  text: `
    with held as materialized (
      select hold_organization($1)
    ), forgotten as (
      delete from saved_cards using held ${SAME_CARD}
    ), detached as (
      insert into detached_cards as d (organization_id, token, psp, psp_merchant_id, detached_at)
      select $1, $2, $3, $4, $5::timestamptz from held
      on conflict (organization_id, token, psp, psp_merchant_id) do update
        set detached_at = greatest(d.detached_at, excluded.detached_at))
    update report_transactions set payment_method_token = null from held ${MATCHING}`,
}
