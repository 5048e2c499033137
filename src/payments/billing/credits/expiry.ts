// Books what has expired: grants, and holds that were neither captured nor released. Balances leave it out at once; this makes the entries.
import { isMoving } from '../../../core/tenants/leaving.ts'
import type { Clock } from '../../../lib/clock.ts'
import type { Db } from '../../../lib/pg/db.ts'
import type { Statement } from '../../../lib/pg/types.ts'
import { repeat } from '../../../lib/repeat.ts'
import { completeEntries } from './older-entries.ts'
import { heldIn, save } from './save.ts'
import { type KeyRow, keyOf, lockAccounts } from './store.ts'

interface Shared {
  db: Db
  clock: Clock
  log: { error(details: object, message: string): void }
}

const PAUSE_MS = 1_000
// Short transactions: spends of the same customers wait for them.
const MAX_AT_ONCE = 64

/** Starts the work, on any number of processes; returns the function that stops it. */
export function expireCredits({ db, clock, log }: Shared): () => Promise<void> {
  return repeat({ clock, log }, { pauseMs: PAUSE_MS, failure: 'Credits could not be expired.' }, async () => {
    await completeEntries(db)
    return (await expireDue(db)) === MAX_AT_ONCE ? 0 : PAUSE_MS
  })
}

/** Books what is due of some accounts that no other process holds, and returns how many there were. */
export function expireDue(db: Db): Promise<number> {
  return db.tx(async (query, commit) => {
    const due = await query<KeyRow>(TAKE_DUE)
    if (due.length === 0) return 0
    // Reading an account books what is due.
    const accounts = await lockAccounts(query, due.map(keyOf))
    const written = save(query, heldIn(accounts))
    commit()
    await written
    return due.length
  })
}

const TAKE_DUE: Statement = {
  name: 'take credit accounts that are due',
  text: `
    select c.organization_id, c.external_id, c.unit from credit_accounts c
    where c.due_at <= db_clock() and not ${isMoving('c.organization_id')}
    order by c.due_at limit ${MAX_AT_ONCE} for no key update of c skip locked`,
}
