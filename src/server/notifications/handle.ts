// Handles one notification of a payment provider: looks up the object that it is about, and settles or adopts its state.
import type { App } from '../../app.ts'
import { refreshFromStripe } from '../../data/ingest/stripe/background.ts'
import type { StripeEvent } from '../../data/ingest/stripe/changed.ts'
import { isUuid } from '../../lib/ids.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'
import type { BillingContext } from '../../payments/billing/context.ts'
import { recordDisputes } from '../../payments/billing/ledger/disputes.ts'
import { findByCharge } from '../../payments/billing/ledger/orders.ts'
import {
  isLost,
  ReceivedTooEarly,
  settleBefore,
  settleByHandle,
  settleOrEnd,
} from '../../payments/billing/reconcile/notified.ts'
import { adoptRefundsOfCharge } from '../../payments/billing/refund/adopt-of-charge.ts'
import { type AccountName, accountKey } from '../../payments/providers/account.ts'
import type { Hint, Notification } from '../../payments/providers/notification.ts'
import { errorOf, NotPermitted, type Provider, ProviderError } from '../../payments/providers/provider.ts'
import { storeFeesOfOrder } from './fees.ts'
import { updateCardsOf, updateSavedCard } from './saved-card.ts'

export type NotificationContext = BillingContext &
  Pick<App, 'log' | 'audit' | 'seal' | 'config' | 'simulatorUrls'> & {
    /** Counts a notification, by subject and outcome, for metrics. */
    countNotification(
      psp: string,
      about: Hint['about'],
      outcome: 'handled' | 'repeated' | 'refused' | 'failed' | 'left_out',
    ): void
  }

/**
 * Handles a notification of a connected account; one that was handled before is skipped. When it returns, every change that
 * follows is committed. Throws a `ProviderError` if the look-up fails: it has to be handled again.
 */
export async function handleNotification(
  context: NotificationContext,
  account: AccountName,
  provider: Provider,
  notification: Notification,
  signal: AbortSignal,
): Promise<void> {
  const [error] = await handleTogether(context, account, provider, [notification], signal)
  if (error !== undefined) throw error
}

/**
 * Handles several notifications of an account: each object that they name is looked up once. Returns their errors in order, undefined
 * for those of which every change that follows is committed. Throws if the database is unavailable. After the signal
 * the rest is not handled, so that a stop does not wait for a provider in trouble.
 */
export async function handleTogether(
  context: NotificationContext,
  account: AccountName,
  provider: Provider,
  notifications: Notification[],
  signal: AbortSignal,
): Promise<unknown[]> {
  const { db, countNotification } = context
  const key = accountKey(account)
  const ids = notifications.map(({ id }) => id)
  const known = new Set((await db.query(ARE_KNOWN, [...key, ids])).map(({ id }) => id))
  const fresh = notifications.filter(({ id }) => !known.has(id))
  const errors = new Map<string, unknown>()
  await followEach(context, account, provider, fresh, errors, signal)
  const refreshed = fresh.filter(({ id }) => !errors.has(id))
  if (account.psp === 'stripe') await refreshRecords(context, account, provider, refreshed, errors, signal)
  const handled = fresh.filter(({ id }) => !errors.has(id))
  if (handled.length > 0) await db.query(KEEP, [...key, handled.map(({ id }) => id), handled.map(({ kind }) => kind)])
  for (const { id, hint } of notifications)
    countNotification(account.psp, hint.about, known.has(id) ? 'repeated' : errors.has(id) ? 'failed' : 'handled')
  return ids.map((id) => errors.get(id))
}

const ARE_KNOWN = {
  name: 'find provider notifications',
  text: `select notification_id as id from provider_notifications
         where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and notification_id = any($4)`,
}

/** SQL, for `with`: locks the organization, and stores, to the minute, when its account last received a notification. */
export const HEARD = `held as materialized (
      select hold_organization($1)
    ), heard as (
      update merchant_accounts set notified_at = db_clock() from held
      where organization_id = $1 and psp = $2 and psp_merchant_id = $3
        and (notified_at is null or notified_at < db_clock() - interval '1 minute'))`

const KEEP = {
  name: 'keep provider notifications',
  text: `
    with ${HEARD}
    insert into provider_notifications (organization_id, psp, psp_merchant_id, notification_id, kind, received_at)
    select $1, $2, $3, id, kind, db_clock() from unnest($4::text[], $5::text[]) n (id, kind), held on conflict do nothing`,
}

const amountAsText = (_name: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)

// Of a burst; each look-up is mostly waiting for the provider.
const AT_ONCE = 4

/** Follows each distinct hint once, and stores the fees; notes the error of each notification. */
async function followEach(
  context: NotificationContext,
  account: AccountName,
  provider: Provider,
  notifications: Notification[],
  errors: Map<string, unknown>,
  signal: AbortSignal,
): Promise<void> {
  const groups = Map.groupBy(notifications, ({ hint }) => JSON.stringify(hint, amountAsText))
  const queues = Map.groupBy(groups.values(), ([one]) => queueOf(one!.hint)).values()
  const next = async (): Promise<void> => {
    for (const queue of queues)
      for (const group of queue) {
        try {
          if (signal.aborted) throw new ProviderError('was not asked before the stop')
          await follow(context, account, provider, group[0]!.hint)
          await storeFees(context, account, provider, group)
        } catch (error) {
          if (isUnavailable(error)) throw error
          for (const { id } of group) errors.set(id, error)
        }
      }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, next))
}

/** Hints with the same name are followed in order: the state of a dispute that is not looked up is the last one received. */
const queueOf = (hint: Hint): string =>
  hint.about === 'dispute' && hint.dispute ? hint.dispute.disputeId : JSON.stringify(hint, amountAsText)

async function storeFees(
  context: NotificationContext,
  account: AccountName,
  provider: Provider,
  group: Notification[],
): Promise<void> {
  const entries = new Map(group.map(({ balanceEntries }) => [JSON.stringify(balanceEntries), balanceEntries]))
  for (const one of entries.values()) if (one) await storeFeesOfOrder(context, account, provider, one)
}

/**
 * Imports the changed objects again, into the projects that follow the account. If one of them fails for its own sake, and not
 * because the provider cannot be asked, the others are imported all the same. What was read before an outage is not read again.
 */
async function refreshRecords(
  context: NotificationContext,
  account: AccountName,
  provider: Provider,
  notifications: Notification[],
  errors: Map<string, unknown>,
  stopped: AbortSignal,
): Promise<void> {
  if (notifications.length === 0) return
  const signal = AbortSignal.any([stopped, AbortSignal.timeout(REFRESH_MS + notifications.length * REFRESH_EACH_MS)])
  const events = notifications.map(({ event }) => event as unknown as StripeEvent)
  const stored = new Set<StripeEvent>()
  try {
    await refreshFromStripe(context, account, events, signal, {
      takeTurn: provider.takeTurn?.bind(provider),
      // Sending the notification again would not help.
      onRejected: (line) => {
        context.log.warn({ ...account, object: line }, 'A change at Stripe was not imported.')
        context.countNotification(account.psp, 'nothing', 'left_out')
      },
      onStored: (event) => stored.add(event),
    })
  } catch (error) {
    if (isUnavailable(error)) throw error
    const left = notifications.filter((_, n) => !stored.has(events[n]!))
    const isOfAll = error instanceof ProviderError && !(error instanceof NotPermitted)
    if (isOfAll || left.length === 1) for (const { id } of left) errors.set(id, error)
    else {
      const half = Math.ceil(left.length / 2)
      await refreshRecords(context, account, provider, left.slice(0, half), errors, stopped)
      await refreshRecords(context, account, provider, left.slice(half), errors, stopped)
    }
  }
}

// A refresh makes a few consecutive calls, at the rate of the account.
const REFRESH_MS = 60_000
const REFRESH_EACH_MS = 1_000

async function adoptRefunds(...given: Parameters<typeof adoptRefundsOfCharge>): Promise<void> {
  const adoptions = await adoptRefundsOfCharge(...given)
  if (adoptions?.includes('may_be_ours'))
    throw new ReceivedTooEarly('A refund of ours in progress has the amount of one that was made at the provider.')
}

async function follow(
  context: NotificationContext,
  account: AccountName,
  provider: Provider,
  hint: Hint,
): Promise<void> {
  switch (hint.about) {
    case 'charge':
      if (hint.orderId !== null && isUuid(hint.orderId))
        await settleOrEnd(context, provider, account, hint.orderId.toLowerCase(), hint.handle)
      else if (hint.handle !== null) await settleByHandle(context, account, hint.handle)
      return
    case 'refund':
      await settleBefore(context, provider, account, hint.chargeTransactionId)
      await adoptRefunds(context, provider, account, hint.chargeTransactionId)
      return
    case 'dispute': {
      await settleBefore(context, provider, account, hint.chargeTransactionId)
      // Other programs may charge the account, too.
      if (!(await findByCharge(context.db.query, account, hint.chargeTransactionId))) {
        // One that can be looked up is found when its charge is adopted.
        if (!provider.disputesOf && (await isLost(context, provider, hint.chargeTransactionId)))
          throw new ReceivedTooEarly('The order of a disputed payment is not here.')
        return
      }
      const disputes = provider.disputesOf ? await provider.disputesOf(hint) : hint.dispute && [hint.dispute]
      if (disputes === undefined) return leaveOut(context, account, hint.chargeTransactionId, hint.whyUnread)
      if (!Array.isArray(disputes)) throw errorOf(disputes)
      await recordDisputes(context, account, disputes)
      return
    }
    case 'card':
      return 'token' in hint
        ? updateSavedCard(context, account, provider, hint.token)
        : updateCardsOf(context, account, provider, hint.customer)
    case 'nothing':
  }
}

/** Names a dispute that cannot be recorded, because nothing else reports it, and sending its notification again would not help. */
function leaveOut(
  { log, countNotification }: NotificationContext,
  account: AccountName,
  chargeTransactionId: string,
  why: string | undefined,
): void {
  const about = { ...account, psp_transaction_id: chargeTransactionId, why }
  log.warn(about, 'A dispute was not recorded: follow it at the provider.')
  countNotification(account.psp, 'dispute', 'left_out')
}
