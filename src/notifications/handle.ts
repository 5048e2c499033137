// Handles one notification of a payment provider: what it hints at is looked up at the provider and settled as ever.

import type { App } from '../app.ts'
import { recordDisputes } from '../billing/adopt/disputes.ts'
import { adoptRefundsOfCharge, settleBefore, settleNow } from '../billing/adopt/refunds.ts'
import type { BillingContext } from '../billing/context.ts'
import { refreshFromStripe } from '../ingest/stripe/background.ts'
import type { StripeEvent } from '../ingest/stripe/refresh.ts'
import { isUuid } from '../lib/ids.ts'
import type { AccountName } from '../providers/account.ts'
import type { Hint, Notification } from '../providers/notification.ts'
import { type Provider, ProviderError } from '../providers/provider.ts'
import { storeFeesOfOrder } from './fees.ts'
import { updateSavedCard } from './saved-card.ts'

export type NotificationContext = BillingContext &
  Pick<App, 'log' | 'seal' | 'config'> & {
    /** Counts notifications for metrics, by what they were about and what came of them. */
    counted(psp: string, about: Hint['about'], outcome: 'handled' | 'repeated' | 'refused' | 'failed'): void
  }

/**
 * Handles a notification of a connected account, once; a copy of one that was handled is passed over. When it returns,
 * all that follows is committed. Throws `ProviderError` when the provider cannot tell: it has to be sent again.
 */
export async function handleNotification(
  context: NotificationContext,
  account: AccountName,
  provider: Provider,
  notification: Notification,
): Promise<void> {
  const { db, counted } = context
  const { id, kind, hint, balanceEntries } = notification
  const key = [account.organizationId, account.psp, account.merchantId, id]
  if ((await db.query(IS_KNOWN, key)).length > 0) return counted(account.psp, hint.about, 'repeated')
  try {
    await follow(context, account, provider, hint)
    if (balanceEntries) await storeFeesOfOrder(context, account, provider, balanceEntries)
    if (account.psp === 'stripe') await refreshRecords(context, account, notification)
  } catch (error) {
    counted(account.psp, hint.about, 'failed')
    throw error
  }
  await db.query(KEEP, [...key, kind])
  counted(account.psp, hint.about, 'handled')
}

const IS_KNOWN = {
  name: 'find provider notification',
  text: `select 1 from provider_notifications
         where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and notification_id = $4`,
}

// The account says when it last heard of the provider, to the minute.
const KEEP = {
  name: 'keep provider notification',
  text: `
    with heard as (
      update merchant_accounts set notified_at = db_clock()
      where organization_id = $1 and psp = $2 and psp_merchant_id = $3
        and (notified_at is null or notified_at < db_clock() - interval '1 minute'))
    insert into provider_notifications (organization_id, psp, psp_merchant_id, notification_id, kind, received_at)
    values ($1, $2, $3, $4, $5, db_clock()) on conflict do nothing`,
}

/** Imports what changed again, into the projects that follow the account. */
async function refreshRecords(context: NotificationContext, account: AccountName, { event }: Notification) {
  await refreshFromStripe(context, account, [event as unknown as StripeEvent], AbortSignal.timeout(REFRESH_MS))
}

// Some calls one after the other, at the rate of the import.
const REFRESH_MS = 60_000

async function follow(context: BillingContext, account: AccountName, provider: Provider, hint: Hint): Promise<void> {
  const at = [account.psp, account.merchantId, account.organizationId] as const
  switch (hint.about) {
    case 'charge':
      if (hint.orderId !== null && isUuid(hint.orderId))
        await settleNow(context, account.organizationId, hint.orderId.toLowerCase())
      return
    case 'refund':
      await settleBefore(context, [...at], hint.chargeTransactionId)
      await adoptRefundsOfCharge(context, provider, [...at], hint.chargeTransactionId)
      return
    case 'dispute': {
      const disputes = await provider.disputesOf?.(hint)
      if (disputes === undefined) return
      if (!Array.isArray(disputes)) throw new ProviderError(disputes.why)
      await settleBefore(context, [...at], hint.chargeTransactionId)
      await recordDisputes(context, [...at], disputes)
      return
    }
    case 'card':
      return updateSavedCard(context, account, provider, hint.token)
    case 'nothing':
  }
}
