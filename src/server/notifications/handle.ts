// Handles one notification of a payment provider: looks up the object that it is about, and settles or adopts its state.
import type { App } from '../../app.ts'
import { refreshFromStripe } from '../../data/ingest/stripe/background.ts'
import type { StripeEvent } from '../../data/ingest/stripe/refresh.ts'
import { isUuid } from '../../lib/ids.ts'
import { recordDisputes } from '../../payments/billing/adopt/disputes.ts'
import {
  adoptRefundsOfCharge,
  findByCharge,
  settleBefore,
  settleByHandle,
  settleNow,
} from '../../payments/billing/adopt/refunds.ts'
import type { BillingContext } from '../../payments/billing/context.ts'
import type { AccountName } from '../../payments/providers/account.ts'
import type { Hint, Notification } from '../../payments/providers/notification.ts'
import { errorOf, type Provider, ProviderError } from '../../payments/providers/provider.ts'
import { storeFeesOfOrder } from './fees.ts'
import { updateSavedCard } from './saved-card.ts'

export type NotificationContext = BillingContext &
  Pick<App, 'log' | 'seal' | 'config' | 'stripeSimulatorUrl'> & {
    /** Counts a notification, by subject and outcome, for metrics. */
    countNotification(psp: string, about: Hint['about'], outcome: 'handled' | 'repeated' | 'refused' | 'failed'): void
  }

/** A notification has to be handled later, although the provider can be asked. */
export class ReceivedTooEarly extends ProviderError {}

/**
 * Handles a notification of a connected account; one that was handled before is skipped. When it returns, every change that
 * follows is committed. Throws a `ProviderError` if the look-up fails: the provider has to send the notification again.
 */
export async function handleNotification(
  context: NotificationContext,
  account: AccountName,
  provider: Provider,
  notification: Notification,
): Promise<void> {
  const { db, countNotification } = context
  const { id, kind, hint, balanceEntries } = notification
  const key = [account.organizationId, account.psp, account.merchantId, id]
  if ((await db.query(IS_KNOWN, key)).length > 0) return countNotification(account.psp, hint.about, 'repeated')
  try {
    await follow(context, account, provider, hint)
    if (balanceEntries) await storeFeesOfOrder(context, account, provider, balanceEntries)
    if (account.psp === 'stripe') await refreshRecords(context, account, notification)
  } catch (error) {
    countNotification(account.psp, hint.about, 'failed')
    throw error
  }
  await db.query(KEEP, [...key, kind])
  countNotification(account.psp, hint.about, 'handled')
}

const IS_KNOWN = {
  name: 'find provider notification',
  text: `select 1 from provider_notifications
         where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and notification_id = $4`,
}

// Also stores, to the minute, when the account last received a notification.
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

/** Imports the changed objects again, into the projects that follow the account. */
async function refreshRecords(context: NotificationContext, account: AccountName, { event }: Notification) {
  await refreshFromStripe(context, account, [event as unknown as StripeEvent], AbortSignal.timeout(REFRESH_MS))
}

// A refresh makes a few consecutive calls, at the rate of the import.
const REFRESH_MS = 60_000

async function adoptRefunds(...given: Parameters<typeof adoptRefundsOfCharge>): Promise<void> {
  const adoptions = await adoptRefundsOfCharge(...given)
  if (adoptions?.includes('may_be_ours'))
    throw new ReceivedTooEarly('A refund of ours in progress has the amount of one that was made at the provider.')
}

async function follow(context: BillingContext, account: AccountName, provider: Provider, hint: Hint): Promise<void> {
  const at = [account.psp, account.merchantId, account.organizationId] as const
  switch (hint.about) {
    case 'charge':
      if (hint.orderId !== null && isUuid(hint.orderId))
        await settleNow(context, account.organizationId, hint.orderId.toLowerCase())
      else if (hint.handle !== null) await settleByHandle(context, [...at], hint.handle)
      return
    case 'refund':
      await settleBefore(context, [...at], hint.chargeTransactionId)
      await adoptRefunds(context, provider, [...at], hint.chargeTransactionId)
      return
    case 'dispute': {
      await settleBefore(context, [...at], hint.chargeTransactionId)
      // Other programs may charge the account, too.
      if (!(await findByCharge(context.db.query, [...at], hint.chargeTransactionId))) return
      const disputes = await provider.disputesOf?.(hint)
      if (disputes === undefined) return
      if (!Array.isArray(disputes)) throw errorOf(disputes)
      await recordDisputes(context, [...at], disputes)
      return
    }
    case 'card':
      return updateSavedCard(context, account, provider, hint.token)
    case 'nothing':
  }
}
