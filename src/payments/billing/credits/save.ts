// Writes what was done to locked accounts: sums, grants, holds, keys, events, and the entries, which are stamped last.
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import type { Query, Statement } from '../../../lib/pg/types.ts'
import { formatCredits } from './amount.ts'
import { noteTopUps } from './due-top-ups.ts'
import { writeEvents } from './events.ts'
import type { Hold, Lot } from './parts.ts'
import { type Held, IS_SAME, isHeld, KEY, type Missing, rowOf } from './store.ts'

/** A key that was used now, with the response to its request. */
export type UsedKey = {
  organization_id: string
  external_id: string
  idempotency_key: string
  request: string
  entry_id: string | null
  hold_id: string | null
  grant_id: string | null
  balance: string
  held: string
}

/**
 * Writes the changes of these accounts. Send nothing after it that waits for another transaction: the clocks of the organizations
 * stay locked to the commit, so that entries are visible before the next one of their organization is stamped.
 */
export async function save(query: Query, all: readonly Held[], keys: readonly UsedKey[] = []): Promise<void> {
  const changed = all.filter(isChanged)
  const lots = changed.flatMap((held) => held.account.lots.filter(hasChanged).map((lot) => lotRow(held, lot)))
  const holds = changed.flatMap((held) => held.account.holds.filter(hasChanged).map((hold) => holdRow(held, hold)))
  await Promise.all([
    ...(changed.length > 0 ? [query(...UPDATE_ACCOUNTS(changed.map(accountRow)))] : []),
    ...(lots.length > 0 ? [query(...WRITE_GRANTS(lots))] : []),
    ...(holds.length > 0 ? [query(...WRITE_HOLDS(holds))] : []),
    ...(keys.length > 0 ? [query(...ADD_KEYS(keys))] : []),
    noteTopUps(query, changed),
    writeEvents(query, changed),
    addEntries(query, changed),
  ])
}

/** The accounts that exist, of those that were asked for. */
export const heldIn = (accounts: ReadonlyMap<string, Held | Missing>): Held[] => [...accounts.values()].filter(isHeld)

const hasChanged = ({ change }: { change: string }) => change !== 'none'

const isChanged = ({ account, dueBefore }: Held) =>
  account.dueAt !== dueBefore ||
  account.entries.length > 0 ||
  account.lots.some(hasChanged) ||
  account.holds.some(hasChanged)

function accountRow(held: Held) {
  const { granted, spent, expired, revoked, adjusted } = held.account.sums
  return {
    ...rowOf(held),
    granted: formatCredits(granted),
    spent: formatCredits(spent),
    expired: formatCredits(expired),
    revoked: formatCredits(revoked),
    adjusted: formatCredits(adjusted),
    held: formatCredits(held.account.held),
    due_at: held.account.dueAt,
  }
}

const UPDATE_ACCOUNTS = onGivenRows(
  'update credit accounts',
  {
    ...KEY,
    granted: 'numeric',
    spent: 'numeric',
    expired: 'numeric',
    revoked: 'numeric',
    adjusted: 'numeric',
    held: 'numeric',
    due_at: 'timestamptz',
  },
  (rows) => `
    update credit_accounts c set granted = a.granted, spent = a.spent, expired = a.expired, revoked = a.revoked,
      adjusted = a.adjusted, held = a.held, due_at = a.due_at,
      updated_at = greatest(db_clock(), c.updated_at + interval '1 microsecond')
    from ${rows}
    where ${IS_SAME('c')}`,
)

function lotRow(held: Held, lot: Lot) {
  return {
    ...rowOf(held),
    grant_id: lot.grantId,
    amount: formatCredits(lot.amount),
    remaining: formatCredits(lot.remaining),
    expired: formatCredits(lot.expired),
    revoked: formatCredits(lot.revoked),
    expires_at: lot.expiresAt,
    order_id: lot.orderId,
  }
}

const WRITE_GRANTS = onGivenRows(
  'write credit grants',
  {
    ...KEY,
    grant_id: 'uuid',
    amount: 'numeric',
    remaining: 'numeric',
    expired: 'numeric',
    revoked: 'numeric',
    expires_at: 'timestamptz',
    order_id: 'uuid',
  },
  (rows) => `
    insert into credit_grants (organization_id, external_id, unit, grant_id, amount, remaining, expired, revoked, expires_at,
      order_id, created_at)
    select organization_id, external_id, unit, grant_id, amount, remaining, expired, revoked, expires_at, order_id, db_clock()
    from ${rows}
    on conflict (organization_id, external_id, unit, grant_id) do update
      set remaining = excluded.remaining, expired = excluded.expired, revoked = excluded.revoked,
        expires_at = excluded.expires_at`,
)

function holdRow(held: Held, hold: Hold) {
  return {
    ...rowOf(held),
    hold_id: hold.holdId,
    amount: formatCredits(hold.amount),
    captured: hold.captured === null ? null : formatCredits(hold.captured),
    status: hold.status,
    expires_at: hold.expiresAt,
  }
}

const WRITE_HOLDS = onGivenRows(
  'write credit holds',
  { ...KEY, hold_id: 'uuid', amount: 'numeric', captured: 'numeric', status: 'text', expires_at: 'timestamptz' },
  (rows) => `
    insert into credit_holds (organization_id, external_id, unit, hold_id, amount, captured, status, expires_at, created_at)
    select organization_id, external_id, unit, hold_id, amount, captured, status, expires_at, db_clock() from ${rows}
    on conflict (organization_id, hold_id) do update set captured = excluded.captured, status = excluded.status`,
)

// A key that another transaction has used since, for another unit, fails here: the request is judged again.
const ADD_KEYS = onGivenRows(
  'add credit keys',
  {
    organization_id: 'text',
    external_id: 'text',
    idempotency_key: 'text',
    request: 'text',
    entry_id: 'uuid',
    hold_id: 'uuid',
    grant_id: 'uuid',
    balance: 'numeric',
    held: 'numeric',
  },
  (rows) => `
    insert into credit_keys (organization_id, external_id, idempotency_key, request, entry_id, hold_id, grant_id, balance, held,
      created_at)
    select organization_id, external_id, idempotency_key, request, entry_id, hold_id, grant_id, balance, held, db_clock()
    from ${rows} order by organization_id, external_id, idempotency_key`,
)

async function addEntries(query: Query, changed: readonly Held[]): Promise<void> {
  const rows = changed.flatMap((held) => held.account.entries.map((entry) => ({ held, entry })))
  if (rows.length === 0) return
  const counts = new Map<string, number>()
  const written = rows.map(({ held, entry }) => {
    const place = (counts.get(held.organizationId) ?? 0) + 1
    counts.set(held.organizationId, place)
    return {
      ...rowOf(held),
      project_id: held.projectId,
      place,
      entry_id: entry.entryId,
      account: entry.account,
      amount: formatCredits(entry.amount),
      balance: formatCredits(entry.balance),
      cause: entry.cause,
      grant_id: entry.grantId,
      hold_id: entry.holdId,
      order_id: entry.orderId,
      idempotency_key: entry.key,
      reason: held.isErased ? null : entry.reason,
      metadata: held.isErased ? null : entry.metadata,
    }
  })
  await query(ADD_ENTRIES, [[...counts.keys()], Array.from(counts.values(), String), JSON.stringify(written)])
}

// Like the payment report: clocks are locked in sorted order, and each is set to the stamp of its last entry; the entries are a
// microsecond apart. An organization without a clock makes the stamps null, which the table refuses.
const ADD_ENTRIES: Statement = {
  name: 'add credit entries',
  text: `
    with locked as materialized (
      select c.organization_id, a.rows from unnest($1::text[], $2::int[]) as a (organization_id, rows)
      join credit_clocks c on c.organization_id = a.organization_id
      order by c.organization_id for no key update of c),
    ticked as (
      update credit_clocks c set last_entry_at = greatest(db_clock(), c.last_entry_at + interval '1 microsecond')
        + (l.rows - 1) * interval '1 microsecond'
      from locked l where c.organization_id = l.organization_id
      returning c.organization_id, c.last_entry_at - l.rows * interval '1 microsecond' as before)
    insert into credit_entries (organization_id, project_id, created_at, updated_at, entry_id, external_id, unit, account, amount, balance, cause,
      grant_id, hold_id, order_id, idempotency_key, reason, metadata)
    select e.organization_id, e.project_id, s.at, s.at, e.entry_id, e.external_id, e.unit, e.account, e.amount,
      e.balance, e.cause, e.grant_id, e.hold_id, e.order_id, e.idempotency_key, e.reason, e.metadata::json
    from json_to_recordset($3) as e (organization_id text, project_id text, place int, entry_id uuid, external_id text, unit text, account text,
      amount numeric, balance numeric, cause text, grant_id uuid, hold_id uuid, order_id uuid, idempotency_key text,
      reason text, metadata text)
    left join ticked t on t.organization_id = e.organization_id
    cross join lateral (select t.before + e.place * interval '1 microsecond' as at) s`,
}
