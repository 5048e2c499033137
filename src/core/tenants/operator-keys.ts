// Operator keys: create, list, end, authenticate. They give access to the operator's API, not to a tenant's data API.
import { randomBytes } from 'node:crypto'
import { ApiError, Refusal } from '../../lib/errors.ts'
import { makeUuid, uuidOf } from '../../lib/ids.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import { instant, shape, text } from '../../lib/shape/shape.ts'
import { hashKey } from './key-text.ts'

/** `write` includes `read`. */
export type Scope = 'read' | 'write'

export interface Operator {
  id: string
  scope: Scope
}

export const operatorKey = shape('OperatorKey', 'k', {
  id: text('Identifier of the key; the audit log names it.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  name: text('Name of its owner or its purpose.', { example: 'Ada, on call' }),
  scope: text('`write` may make changes, `read` may not.', { enum: ['read', 'write'] }),
  created_at: instant('When it was created.'),
  expires_at: instant('When it ends, or was ended.', { nullable: true }),
  last_used_at: instant('When it was last used, to the minute.', { nullable: true }),
})

export interface NewOperator {
  name: string
  scope: Scope
  seconds?: number
  /** A key of `makeOperatorKey()` that another installation has too; its id is the same there. By default a new one. */
  key?: string
}

/** Creates a key that is valid for `seconds`, or until it is ended. Only its hash is stored. */
export async function createOperator(query: Query, settings: NewOperator) {
  const key = settings.key ?? makeOperatorKey()
  const id = settings.key === undefined ? makeUuid() : uuidOf(hashKey(settings.key))
  const rows = await query(
    `insert into operator_keys (id, name, hash, scope, created_at, expires_at)
     select $1, $2, $3, $4, at, at + make_interval(secs => $5::float8) from (select db_clock() as at) now
     on conflict do nothing returning 1`,
    [id, settings.name, hashKey(key), settings.scope, settings.seconds ?? null],
  )
  if (rows.length === 0) throw new Refusal(`This key has been created before, with the id ${id}.`)
  return { id, key }
}

/** `operator_` and 32 random bytes in base64url. */
export const makeOperatorKey = () => `operator_${randomBytes(32).toString('base64url')}`

/** Whether it has the form of a key that was made here: a chosen one could be guessed. */
export const isOperatorKey = (text: string) => /^operator_[A-Za-z0-9_-]{43}$/.test(text)

/** Ends a valid key at once. */
export async function endOperator(query: Query, id: string): Promise<void> {
  const rows = await query(
    `update operator_keys set expires_at = db_clock()
     where id::text = $1 and (expires_at is null or expires_at > db_clock()) returning 1`,
    [id],
  )
  if (rows.length === 0)
    throw new ApiError(404, 'object_not_found', `There is no valid operator key with the id "${id}".`)
}

/** Whether there is a valid key with this id. */
export async function isValidOperator(query: Query, id: string): Promise<boolean> {
  const rows = await query(
    `select 1 from operator_keys where id::text = $1 and (expires_at is null or expires_at > db_clock())`,
    [id],
  )
  return rows.length > 0
}

/** The operator with this key, if it is valid. Read from the database each time, so that an ended key is refused at once. */
export async function recognizeOperator(db: Db, key: string): Promise<Operator | undefined> {
  const [row] = await db.read(RECOGNIZE, [hashKey(key)])
  return row && { id: row.text(0)!, scope: row.text(1) as Scope }
}

/** A part of a `with` that records the use of the key in `living`: once a minute, so that a busy key does not write each time. */
export const RECORD_USE = `
    used as (
      update operator_keys k set last_used_at = db_clock() from living
      where k.id = living.id and (living.last_used_at is null or living.last_used_at < db_clock() - interval '1 minute')
    )`

const RECOGNIZE: Statement = {
  name: 'recognize operator',
  text: `
    with living as materialized (
      select id, scope, last_used_at from operator_keys
      where hash = $1 and (expires_at is null or expires_at > (select db_clock()))
    ), ${RECORD_USE}
    select id, scope from living`,
}
