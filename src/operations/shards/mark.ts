// The mark of a move, on the shard that the organization leaves: its requests wait, and its keys are not accepted there. The
// other shard notes which move brought it.
import { randomUUID } from 'node:crypto'
import { closedName, markName } from '../../core/tenants/leaving.ts'
import type { Query } from '../../lib/pg/types.ts'
import { instantFromPg } from '../../lib/time.ts'

export interface Mark {
  /** Of this move alone, to tell what it brought from anything else with the same name. */
  id: string
  /** The shard that the organization moves to. */
  to: string
  /** When each valid key was to end, by its id; null: never. */
  keys: Record<string, string | null>
}

/** The marks on a shard, by organization. */
export async function readMarks(query: Query): Promise<Map<string, Mark>> {
  const rows = await query(`select substr(name, 6) as id, value from instance where name like 'move %'`)
  return new Map(rows.map(({ id, value }) => [id!, JSON.parse(value!) as Mark]))
}

/** Sets the mark: directories refuse requests of the organization from then on, and callers try again. */
export async function setMark(query: Query, organization: string, to: string): Promise<Mark> {
  const mark: Mark = { id: randomUUID(), to, keys: {} }
  await query('insert into instance (name, value) values ($1, $2)', [markName(organization), JSON.stringify(mark)])
  return mark
}

/**
 * Ends the valid keys of an organization on its shard, and remembers in the mark when each was to end. From then on no
 * request changes it here, also when the program that moves it ends. Call it in a transaction.
 */
export async function endKeys(query: Query, organization: string, { id, to }: Mark): Promise<Mark> {
  // An operator's change that did not see the mark ends first.
  await query('select 1 from organizations where id = $1 for update', [organization])
  const keys = await query(
    `select id, expires_at from secret_keys
     where organization_id = $1 and (expires_at is null or expires_at > db_clock()) for update`,
    [organization],
  )
  const ends = keys.map(({ id, expires_at }) => [id!, expires_at && instantFromPg(expires_at)])
  const mark: Mark = { id, to, keys: Object.fromEntries(ends) }
  await query('update instance set value = $2 where name = $1', [markName(organization), JSON.stringify(mark)])
  await query(
    `update secret_keys set expires_at = db_clock()
     where organization_id = $1 and (expires_at is null or expires_at > db_clock())`,
    [organization],
  )
  return mark
}

/** Gives the keys back their ends: on the old shard after a move that was given up, on the new one at its end. */
export async function giveKeysBack(query: Query, organization: string, { keys }: Mark): Promise<void> {
  await query(
    `update secret_keys k set expires_at = (e.value #>> '{}')::timestamptz
     from json_each($2::json) e where k.organization_id = $1 and k.id::text = e.key`,
    [organization, JSON.stringify(keys)],
  )
}

/**
 * Closes the organization on the shard that it leaves, until the mark is removed: no change begins there, also if the locks
 * of this program are lost while the other shard commits.
 */
export async function close(query: Query, organization: string): Promise<void> {
  await query(`insert into instance (name, value) values ($1, '')`, [closedName(organization)])
}

export async function removeMark(query: Query, organization: string): Promise<void> {
  await query('delete from instance where name = any($1)', [[markName(organization), closedName(organization)]])
}

const arrivalOf = (organization: string) => `moved ${organization}`

/** Notes on the new shard, in the transaction that begins the organization there, which move brought it. */
export async function noteArrival(query: Query, organization: string, { id }: Mark): Promise<void> {
  await query(
    'insert into instance (name, value) values ($1, $2) on conflict (name) do update set value = excluded.value',
    [arrivalOf(organization), id],
  )
}

/**
 * Keeps reads of these projects away from replicas of the new shard that have not replayed the move. A replica is only used
 * if it has replayed every erasure of the project, and the move counts as one.
 */
export async function countAsErasure(query: Query, projects: string[]): Promise<void> {
  await query(
    `insert into erasure_marks as m (project_id, number) select unnest($1::text[]), 1
     on conflict (project_id) do update set number = m.number + 1`,
    [projects],
  )
}

/** The move that brought each organization to a shard, for those that were moved there. */
export async function readArrivals(query: Query): Promise<Map<string, string>> {
  const rows = await query(`select substr(name, 7) as id, value from instance where name like 'moved %'`)
  return new Map(rows.map(({ id, value }) => [id!, value!]))
}

/** Whether this very move has brought the organization here: another one with its name may be older, or another's. */
export async function hasArrived(query: Query, organization: string, { id }: Mark): Promise<boolean> {
  const rows = await query('select 1 from instance where name = $1 and value = $2', [arrivalOf(organization), id])
  return rows.length > 0
}

export async function removeArrival(query: Query, organization: string): Promise<void> {
  await query('delete from instance where name = $1', [arrivalOf(organization)])
}
