// Stored notifications of payment providers: a burst is stored at once, and then each object that it names is read once.
import { DAY_S } from '../../lib/days.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'
import { repeat } from '../../lib/repeat.ts'
import { ReceivedTooEarly } from '../../payments/billing/reconcile/notified.ts'
import { type AccountName, accountKey } from '../../payments/providers/account.ts'
import { adapters } from '../../payments/providers/adapters.ts'
import type { Notification } from '../../payments/providers/notification.ts'
import { NotPermitted, ProviderError } from '../../payments/providers/provider.ts'
import { HEARD, handleTogether, type NotificationContext } from './handle.ts'

// Handled together; more would keep the lease for long.
const MOST = 200
const LEASE_S = 5 * 60
// The pause while another process handles notifications of the account.
const BUSY_MS = 250
// The pause after a failure doubles from the first to the last of these.
const FIRST_PAUSE_S = 2
const LAST_PAUSE_S = 3_600
// As long as Stripe itself repeats a notification.
const KEPT_S = 3 * DAY_S
// As long as Stripe lists an event: the permission may be given, or the charge may be settled, weeks later.
const LASTING_KEPT_S = 30 * DAY_S
const SWEEP_MS = 1_000
// A single notification is handled before its response, so that a caller sees what follows. A burst is not waited for.
const MOST_WAITING = 4
const WAIT_MS = 1_000

export interface Pending {
  /** Stores a notification. Returns when it is handled, or after a moment: from then on it is not lost. */
  receive(account: AccountName, notification: Notification): Promise<void>
  close(): Promise<void>
}

export function openPending(context: NotificationContext): Pending {
  const closing = new AbortController()
  const running = new Map<string, Promise<void>>()
  /** The callers that wait, by account and notification. */
  const waiting = new Map<string, Set<() => void>>()
  const done = (account: AccountName, ids: string[]) => {
    for (const id of ids) for (const resolve of waiting.get(nameOf(account, id)) ?? []) resolve()
  }
  const begin = (account: AccountName) => {
    const name = nameOf(account)
    const before = running.get(name) ?? Promise.resolve()
    const next = before.then(() => handleAll(context, account, done, closing.signal))
    const last = next.catch((error) => logFailure(context, account, error))
    running.set(name, last)
    void last.then(() => running.get(name) === last && running.delete(name))
  }
  return {
    async receive(account, notification) {
      const stored = await store(context, account, notification)
      if (!stored) return context.countNotification(account.psp, notification.hint.about, 'repeated')
      const name = nameOf(account, notification.id)
      const isAlone = waiting.size < MOST_WAITING
      const handled = isAlone ? waitFor(waiting, name) : undefined
      begin(account)
      await handled
    },
    async close() {
      closing.abort()
      await Promise.all(running.values())
    },
  }
}

const nameOf = ({ organizationId, psp, merchantId }: AccountName, id = '') =>
  JSON.stringify([organizationId, psp, merchantId, id])

async function waitFor(waiting: Map<string, Set<() => void>>, name: string): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, WAIT_MS)
  const all = waiting.get(name) ?? new Set()
  waiting.set(name, all.add(resolve))
  await promise
  clearTimeout(timer)
  all.delete(resolve)
  if (all.size === 0) waiting.delete(name)
}

/** Handles those that a process left behind or that failed before; returns the function that stops it. */
export function handlePending(context: NotificationContext): () => Promise<void> {
  const options = { pauseMs: SWEEP_MS, failure: 'Stored notifications could not be handled.' }
  return repeat(context, options, async (signal) => {
    const rows = await context.db.query(DUE)
    const accounts = rows.map(({ organization_id, psp, psp_merchant_id }) => ({
      ...{ organizationId: organization_id!, psp: psp!, merchantId: psp_merchant_id! },
    }))
    const handle = (account: AccountName) =>
      handleAll(context, account, () => {}, signal).catch((error) => logFailure(context, account, error))
    await Promise.all(accounts.map(handle))
  })
}

// A time further in the future than any pause or lease was set before the database's clock was set back.
const IS_DUE = `(due_at <= db_clock() or due_at > db_clock() + make_interval(secs => ${2 * LAST_PAUSE_S}))`
const IS_HELD = `(lease_until is not null and lease_until > db_clock() and lease_until < db_clock() + make_interval(secs => ${2 * LEASE_S}))`

const DUE = {
  name: 'list accounts with stored notifications',
  text: `select distinct organization_id, psp, psp_merchant_id from pending_notifications
         where ${IS_DUE} and not ${IS_HELD} limit 20`,
}

function logFailure({ log }: NotificationContext, account: AccountName, error: unknown): void {
  if (!isUnavailable(error)) log.error({ err: error, ...account }, 'Stored notifications could not be handled.')
}

/** Stores what is needed of a notification; returns false if it was handled before. */
export async function store(
  { db }: NotificationContext,
  account: AccountName,
  notification: Notification,
): Promise<boolean> {
  const event = JSON.stringify(adapters[account.psp]!.essenceOf(notification))
  const [row] = await db.query(STORE, [...accountKey(account), notification.id, event])
  return row!.is_new === 't'
}

const STORE = {
  name: 'store provider notification',
  text: `
    with ${HEARD}, known as (
      select from provider_notifications
      where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and notification_id = $4
    ), stored as (
      insert into pending_notifications (organization_id, psp, psp_merchant_id, notification_id, event, received_at, due_at)
      select $1, $2, $3, $4, $5, at, at from (select db_clock() as at) now, held where not exists (select from known)
      on conflict do nothing)
    select not exists (select from known) as is_new`,
}

/** Handles what is due of an account until nothing is. One process at a time does it. */
async function handleAll(
  context: NotificationContext,
  account: AccountName,
  onDone: (account: AccountName, ids: string[]) => void,
  signal: AbortSignal,
): Promise<void> {
  const { db, clock, log } = context
  while (!signal.aborted) {
    const rows = await db.query<Row>(TAKE, [...accountKey(account), MOST, LEASE_S])
    if (rows.length === 0) {
      const [left] = await db.query(IS_LEFT, accountKey(account))
      if (left!.is_left !== 't') return
      await clock.sleep(BUSY_MS, signal)
      continue
    }
    const errors = await handled(context, account, rows, signal)
    const failed = rows.flatMap((row, n) => (errors[n] === undefined ? [] : [{ ...row, error: errors[n] }]))
    if (failed.length > 0)
      log.warn(
        { ...account, count: failed.length, why: messageOf(failed[0]!.error) },
        'Notifications were not handled.',
      )
    const ids = rows.map(({ notification_id }) => notification_id)
    await db.query(FINISH, [
      ...accountKey(account),
      ids,
      failed.map(({ notification_id }) => notification_id),
      failed.map(({ attempts }) => String(Math.min(LAST_PAUSE_S, FIRST_PAUSE_S * 2 ** Number(attempts)))),
      failed.map(({ error }) => String(isLasting(error) ? LASTING_KEPT_S : KEPT_S)),
    ])
    onDone(account, ids)
  }
}

type Row = { notification_id: string; event: string; attempts: string }

/** Whether it lasts until a person acts: a missing permission, or a charge that is not settled. */
export const isLasting = (error: unknown): boolean => error instanceof NotPermitted || error instanceof ReceivedTooEarly

/** Their errors, in order; undefined for those that were handled. One that cannot be read must not hold up the others. */
async function handled(
  context: NotificationContext,
  account: AccountName,
  rows: Row[],
  signal: AbortSignal,
): Promise<unknown[]> {
  const provider = await context.providers.of(account.organizationId, account.psp, account.merchantId)
  if (!provider) return rows.map(() => new ProviderError('is not connected'))
  const read = rows.map(({ event }) => adapters[account.psp]!.readNotification(JSON.parse(event)))
  const readable = read.filter((one) => one !== undefined)
  const errors = (await handleTogether(context, account, provider, readable, signal)).values()
  return read.map((one) => (one ? errors.next().value : new Error('A stored notification cannot be read.')))
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))

/** SQL. The first three parameters are those of `accountKey`. */
export const ACCOUNT = 'organization_id = $1 and psp = $2 and psp_merchant_id = $3'

// The lock of the account's row makes two processes take in turn; `skip locked`, because the row changes at other times, too.
const TAKE = {
  name: 'take stored notifications',
  text: `
    with account as materialized (
      select from merchant_accounts where ${ACCOUNT} for no key update skip locked
    ), due as materialized (
      select p.notification_id from pending_notifications p
      where ${ACCOUNT} and ${IS_DUE} and exists (select from account) and not exists (
        select from pending_notifications where ${ACCOUNT} and ${IS_HELD})
      order by p.received_at limit $4
    ), taken as (
      update pending_notifications p set lease_until = db_clock() + make_interval(secs => $5)
      from due where ${ACCOUNT} and p.notification_id = due.notification_id
      returning p.notification_id, p.event, p.attempts, p.received_at)
    select notification_id, event, attempts from taken order by received_at`,
}

const IS_LEFT = {
  name: 'find stored notification',
  text: `select exists (select from pending_notifications where ${ACCOUNT} and ${IS_DUE}) as is_left`,
}

const FINISH = {
  name: 'finish stored notifications',
  text: `
    with kept as (
      update pending_notifications p set lease_until = null, attempts = attempts + 1,
        due_at = db_clock() + make_interval(secs => f.pause_s)
      from unnest($5::text[], $6::float[], $7::float[]) f (id, pause_s, kept_s)
      where ${ACCOUNT} and notification_id = f.id collate "C" and received_at > db_clock() - make_interval(secs => f.kept_s)
      returning notification_id)
    delete from pending_notifications
    where ${ACCOUNT} and notification_id = any($4) and notification_id not in (select notification_id from kept)`,
}
