// Finds notifications that were not delivered, by reading each account's list of them at the provider every few minutes.
import { isUnavailable } from '../../lib/pg/errors.ts'
import { repeat } from '../../lib/repeat.ts'
import { type AccountName, accountKey } from '../../payments/providers/account.ts'
import { type Provider, ProviderError } from '../../payments/providers/provider.ts'
import { handleNotification, type NotificationContext } from './handle.ts'
import { ACCOUNT, isLasting, store } from './pending.ts'

// The pause of an idle reader before it looks for a due account again.
const IDLE_MS = 5_000
// How often an account is read, and the pause after the provider failed.
const EVERY_S = 5 * 60
const RETRY_S = 60
// The number of accounts that one process reads concurrently, each page by page.
const AT_ONCE = 4
// So many look-ups that fail in a row are an outage of the provider, which ends the run.
const OUTAGE = 5
// Renewed at each page, which takes at most one call with its deadline, and some look-ups.
const LEASE_S = 10 * 60
// A provider may list a notification late, or stamp it with a clock behind ours.
const OVERLAP_S = 10 * 60
// How long handled notifications are remembered: longer than any provider repeats or lists them.
const KEPT = '35 days'
const DELETE_EVERY_MS = 3_600_000

/** Starts to read; returns the function that stops it. */
export function readMissedNotifications(context: NotificationContext): () => Promise<void> {
  const stops = [deleteOld(context), ...Array.from({ length: AT_ONCE }, () => readDueAccounts(context))]
  return async () => {
    await Promise.all(stops.map((stop) => stop()))
  }
}

function readDueAccounts(context: NotificationContext): () => Promise<void> {
  const options = { pauseMs: IDLE_MS, failure: 'Accounts could not be looked for.' }
  return repeat(context, options, async (signal) => {
    const [due] = await context.db.query<Due>(TAKE_DUE, [LEASE_S])
    if (!due) return IDLE_MS
    await readOne(context, due, signal)
    return 0
  })
}

type Due = { organization_id: string; psp: string; psp_merchant_id: string; since_s: string }

// A time further in the future than any pause is due too: it was set before the database's clock was set back.
const TAKE_DUE = {
  name: 'take account to read notifications of',
  text: `
    with now as materialized (select db_clock() as at), due as (
      select m.organization_id, m.psp, m.psp_merchant_id from merchant_accounts m, now
      where m.credentials is not null
        and (m.notifications_due_at is null or m.notifications_due_at <= now.at
          or m.notifications_due_at > now.at + interval '1 hour')
        and (m.notifications_lease_until is null or m.notifications_lease_until <= now.at
          or m.notifications_lease_until > now.at + interval '1 hour')
      order by m.notifications_due_at nulls first limit 1 for update of m skip locked)
    update merchant_accounts m set notifications_lease_until = now.at + make_interval(secs => $1)
    from due, now
    where (m.organization_id, m.psp, m.psp_merchant_id) = (due.organization_id, due.psp, due.psp_merchant_id)
    returning m.organization_id, m.psp, m.psp_merchant_id,
      floor(extract(epoch from coalesce(m.notifications_read_until, m.connected_at))) as since_s`,
}

async function readOne(context: NotificationContext, due: Due, signal: AbortSignal): Promise<void> {
  const { db, log } = context
  const account = { organizationId: due.organization_id, psp: due.psp, merchantId: due.psp_merchant_id }
  const key = accountKey(account)
  const { until, pauseS } = await read(context, account, Number(due.since_s), signal).catch((error) => {
    if (error instanceof ProviderError) log.warn({ ...account, why: error.message }, 'Notifications cannot be listed.')
    else if (!isUnavailable(error)) log.error({ err: error, ...account }, 'Notifications could not be read.')
    return { until: null, pauseS: RETRY_S }
  })
  await db.query(GIVE_BACK, [...key, until, pauseS]).catch((error) => {
    // The account is due again when its lease ends.
    if (!isUnavailable(error)) log.error({ err: error, ...account }, 'An account could not be given back.')
  })
}

const GIVE_BACK = {
  name: 'give back account',
  text: `
    update merchant_accounts set notifications_lease_until = null,
      notifications_due_at = db_clock() + make_interval(secs => $5),
      notifications_read_until = greatest(notifications_read_until, to_timestamp($4::float))
    where ${ACCOUNT}`,
}

const RENEW = {
  name: 'renew lease of account',
  text: `update merchant_accounts set notifications_lease_until = db_clock() + make_interval(secs => $4)
         where ${ACCOUNT}`,
}

/**
 * Handles the new notifications. The list is newest first; their order does not matter, because each is only a hint. One that
 * cannot be handled, such as one about an object that the key may not read, is stored and handled again later as one that was
 * received, so that the list need not be read again from there on.
 */
async function read(
  context: NotificationContext,
  account: AccountName,
  sinceS: number,
  signal: AbortSignal,
): Promise<{ until: string | null; pauseS: number }> {
  const provider = await context.providers.of(account.organizationId, account.psp, account.merchantId)
  if (!provider?.notificationsSince) return { until: null, pauseS: EVERY_S }
  let newestS = 0
  let failuresInARow = 0
  for await (const page of provider.notificationsSince(sinceS - OVERLAP_S, signal)) {
    await context.db.query(RENEW, [...accountKey(account), LEASE_S])
    const ids = page.map(({ id }) => id)
    const putOff = new Set((await context.db.query(ARE_PUT_OFF, [...accountKey(account), ids])).map(({ id }) => id))
    for (const notification of page) {
      // The next run reads the remaining notifications, from the same instant on.
      if (signal.aborted) return { until: null, pauseS: 0 }
      newestS = Math.max(newestS, notification.createdS)
      if (putOff.has(notification.id)) continue
      const outcome = await tryToHandle(context, account, provider as Provider, notification, signal)
      failuresInARow = outcome === 'look-up failed' ? failuresInARow + 1 : 0
      if (failuresInARow === OUTAGE) return { until: null, pauseS: RETRY_S }
      if (outcome !== 'handled') await store(context, account, notification)
    }
  }
  return { until: newestS > 0 ? String(newestS) : null, pauseS: EVERY_S }
}

// A stored one that failed often is not tried by each run, too.
const ARE_PUT_OFF = {
  name: 'find stored notifications that are put off',
  text: `select notification_id as id from pending_notifications
         where ${ACCOUNT} and notification_id = any($4)
           and due_at > db_clock() + interval '${EVERY_S} seconds'`,
}

/** Logs why a notification cannot be handled. Throws if the database is unavailable. */
async function tryToHandle(
  ...given: Parameters<typeof handleNotification>
): Promise<'handled' | 'not handled' | 'look-up failed'> {
  const [{ log }, account, , { kind }] = given
  try {
    await handleNotification(...given)
    return 'handled'
  } catch (error) {
    if (isUnavailable(error)) throw error
    if (error instanceof ProviderError) log.warn({ ...account, kind, why: error.message }, NOT_HANDLED)
    else log.error({ err: error, ...account, kind }, NOT_HANDLED)
    return mayBeOutage(error) ? 'look-up failed' : 'not handled'
  }
}

/** Otherwise the provider did respond. */
const mayBeOutage = (error: unknown) => error instanceof ProviderError && !isLasting(error)

const NOT_HANDLED = 'A notification from the list was not handled; it is tried again.'

function deleteOld(context: NotificationContext): () => Promise<void> {
  const options = { pauseMs: DELETE_EVERY_MS, failure: 'Old notifications could not be deleted.' }
  return repeat(context, options, async () => {
    await context.db.query(`delete from provider_notifications where received_at < db_clock() - interval '${KEPT}'`)
  })
}
