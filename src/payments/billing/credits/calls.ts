// Runs requests about credits, each at most once for its key: concurrent ones share a transaction.
import { beingMoved } from '../../../core/tenants/leaving.ts'
import { batched, type LockTimeout } from '../../../lib/batching.ts'
import { ApiError } from '../../../lib/errors.ts'
import type { Db } from '../../../lib/pg/db.ts'
import { isDuplicate } from '../../../lib/pg/errors.ts'
import { onGivenRows } from '../../../lib/pg/given-rows.ts'
import type { Commit } from '../../../lib/pg/run-transaction.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { shorten } from '../../../lib/text.ts'
import { lockOutErasure } from '../lock-out-erasure.ts'
import { type Credits, creditsFromText, formatCredits } from './amount.ts'
import { heldIn, save, type UsedKey } from './save.ts'
import { type AccountKey, type Held, IS_SAME, KEY, lockAccounts, type Missing, nameOf, rowsOf } from './store.ts'

/** The ids that a request made. */
export interface Made {
  entryId?: string
  holdId?: string
  grantId?: string | null
}

export interface Ask extends AccountKey {
  key: string
  /** What is requested, as a text: another request under the same key is refused. */
  request: string
  /** Whether it may be the first for its account. */
  creates: boolean
  /** Whether it brings metadata or a reason, which an erasure would have to remove. */
  isPersonal: boolean
  /** Does it, or throws an `ApiError` before anything is done. `none`: the customer has had no credits of the unit. */
  run(held: Held | 'none'): Made
}

export interface Reply {
  entryId: string | null
  holdId: string | null
  grantId: string | null
  balance: Credits
  held: Credits
  isReplay: boolean
}

// Each further turn needs another request under the same key, for another unit, between two statements.
const MAX_TURNS = 5

/** Does what is requested, once for its key, or throws an `ApiError`. Concurrent calls are done together. */
export async function call(db: Db, ask: Ask): Promise<Reply> {
  for (let turn = 1; ; turn++) {
    try {
      const result = await callTogether(db, ask)
      if (result instanceof ApiError) throw result
      return result
    } catch (error) {
      if (!isDuplicate(error) || turn === MAX_TURNS) throw error
    }
  }
}

const callTogether = batched<Ask, Reply | ApiError>({
  tenant: ({ organizationId }) => organizationId,
  work: (db, asks, lockTimeout) => db.tx((query, commit) => callAll(query, asks, lockTimeout, commit)),
})

/** Does one request in the caller's transaction, or throws an `ApiError`. */
export async function callWithin(query: Query, ask: Ask): Promise<Reply> {
  for (let turn = 1; ; turn++) {
    await query('savepoint credits')
    try {
      const [result] = await callAll(query, [ask], null, () => {})
      if (result instanceof ApiError) throw result
      return result!
    } catch (error) {
      if (!isDuplicate(error) || turn === MAX_TURNS) throw error
      await query('rollback to savepoint credits')
    }
  }
}

async function callAll(
  query: Query,
  asks: readonly Ask[],
  lockTimeout: LockTimeout,
  commit: Commit,
): Promise<(Reply | ApiError)[]> {
  const personal = asks.filter(({ isPersonal }) => isPersonal)
  const [, accounts, known] = await Promise.all([
    personal.length > 0 && lockOutErasure(query, personal, lockTimeout),
    lockAccounts(query, asks, { create: asks.filter(({ creates }) => creates), lockTimeout }),
    findKeys(query, asks),
  ])
  const used: UsedKey[] = []
  const results = asks.map((ask) => callOne(ask, accounts.get(nameOf(ask))!, known, used))
  const written = Promise.all([removeUnused(query, asks, results), save(query, heldIn(accounts), used)])
  commit()
  await written
  return results
}

/** Removes accounts that were made in this transaction for requests that are refused: nothing was done. */
async function removeUnused(query: Query, asks: readonly Ask[], results: readonly (Reply | ApiError)[]): Promise<void> {
  const done = new Set(asks.flatMap((ask, n) => (results[n] instanceof ApiError ? [] : nameOf(ask))))
  const unused = asks.filter((ask, n) => ask.creates && results[n] instanceof ApiError && !done.has(nameOf(ask)))
  if (unused.length > 0) await query(...REMOVE_UNUSED(rowsOf(unused)))
}

const REMOVE_UNUSED = onGivenRows(
  'remove unused credit accounts',
  KEY,
  (rows) => `
    delete from credit_accounts c using ${rows}
    where ${IS_SAME('c')} and c.xmin = pg_current_xact_id()::xid and c.granted = 0 and c.adjusted = 0`,
)

function callOne(ask: Ask, held: Held | Missing, known: Map<string, UsedKey>, used: UsedKey[]): Reply | ApiError {
  try {
    const before = known.get(keyOf(ask))
    if (before) return replay(ask, before)
    if (held === 'moving') throw beingMoved()
    if (held === 'unknown_customer') throw unknownCustomer(ask)
    if (held === 'unknown_unit') throw unknownUnit(ask.unit)
    const { entryId = null, holdId = null, grantId = null } = ask.run(held)
    if (held === 'none') throw new Error('Bug: something was done without an account of credits')
    const { balance, held: heldNow } = held.account
    const row = {
      organization_id: ask.organizationId,
      external_id: ask.externalId,
      idempotency_key: ask.key,
      request: ask.request,
      entry_id: entryId,
      hold_id: holdId,
      grant_id: grantId,
      balance: formatCredits(balance),
      held: formatCredits(heldNow),
    }
    used.push(row)
    known.set(keyOf(ask), row)
    return { entryId, holdId, grantId, balance, held: heldNow, isReplay: false }
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
}

const keyOf = ({ organizationId, externalId, key }: Ask) => JSON.stringify([organizationId, externalId, key])

/** The response that the key has had already. */
function replay(ask: Ask, { request, entry_id, hold_id, grant_id, balance, held }: UsedKey): Reply {
  if (request !== ask.request) throw keyReused()
  return {
    entryId: entry_id,
    holdId: hold_id,
    grantId: grant_id,
    balance: creditsFromText(balance),
    held: creditsFromText(held),
    isReplay: true,
  }
}

async function findKeys(query: Query, asks: readonly Ask[]): Promise<Map<string, UsedKey>> {
  const rows = asks.map(({ organizationId, externalId, key }) => ({
    organization_id: organizationId,
    external_id: externalId,
    idempotency_key: key,
  }))
  const found = await query<UsedKey>(...FIND_KEYS(rows))
  return new Map(found.map((row) => [JSON.stringify([row.organization_id, row.external_id, row.idempotency_key]), row]))
}

const FIND_KEYS = onGivenRows(
  'find credit keys',
  { organization_id: 'text', external_id: 'text', idempotency_key: 'text' },
  (rows) => `
    select k.organization_id, k.external_id, k.idempotency_key, k.request, k.entry_id, k.hold_id, k.grant_id, k.balance, k.held
    from ${rows} join credit_keys k on k.organization_id = a.organization_id and k.external_id = a.external_id
      and k.idempotency_key = a.idempotency_key`,
)

function keyReused(): ApiError {
  return new ApiError(
    400,
    'idempotency_key_reused',
    'idempotency_key was used for another request before. Nothing was done: each use of credits needs its own key.',
    { extra: { code: 'idempotency_key_reused' } },
  )
}

export const unknownUnit = (unit: string) =>
  new ApiError(
    400,
    'unknown_unit',
    `The organization has no unit "${shorten(unit, 64)}". Its operator creates units with "tundish credits unit create".`,
  )

export const unknownCustomer = ({ externalId }: { externalId: string }) =>
  new ApiError(400, 'unknown_customer', `There is no customer with the external_id "${shorten(externalId, 64)}".`)
