// Operator keys: create, list, end, authenticate. They give access to the operator's API, not to a tenant's data API.
import { randomBytes } from 'node:crypto'
import { ApiError, Refusal } from '../../lib/errors.ts'
import { makeUuid, uuidOf } from '../../lib/ids.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Row } from '../../lib/pg/row-bytes.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'
import type { Schema } from '../../lib/shape/schema.ts'
import { instant, json, shape, text } from '../../lib/shape/shape.ts'
import { type Access, type Reach, type RefundLimits, ROLES, type Role } from './access.ts'
import { hashKey } from './key-text.ts'

/** Short forms of the roles `read` and `owner`. */
export type Scope = 'read' | 'write'
export const ROLE_OF_SCOPE = { read: 'read', write: 'owner' } as const satisfies Record<Scope, Role>

export interface Operator extends Access {
  id: string
}

export const operatorKey = shape('OperatorKey', 'k', {
  id: text('Identifier of the key; the audit log names it.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  name: text('Name of its owner or its purpose.', { example: 'Ada, on call' }),
  role: text('What it may do.', { enum: ROLES }),
  reach: text('The whole installation, or the ids of its organizations and projects.', {
    sql: `coalesce(nullif(concat_ws(', ',
      case when k.organizations <> '{}' then 'organizations ' || array_to_string(k.organizations, ' ') end,
      case when k.projects <> '{}' then 'projects ' || array_to_string(k.projects, ' ') end), ''), 'all')`,
    example: 'organizations acme, projects shop',
  }),
  refund_limits: json('The most that `support` may refund of one charge, by currency; null for other roles.', {
    nullable: true,
    schema: { type: 'object', additionalProperties: { type: 'string' } } as Schema<Record<string, string>>,
    example: { USD: '50' },
  }),
  created_at: instant('When it was created.'),
  expires_at: instant('When it ends, or was ended.', { nullable: true }),
  last_used_at: instant('When it was last used, to the minute.', { nullable: true }),
})

export interface NewOperator extends Partial<Pick<Access, 'reach' | 'refundLimits'>> {
  name: string
  /** By default that of `scope`. */
  role?: Role
  scope?: Scope
  seconds?: number
  /** A key of `makeOperatorKey()` that another installation has too; its id is the same there. By default a new one. */
  key?: string
}

/** Creates a key that is valid for `seconds`, or until it is ended. Only its hash is stored. */
export async function createOperator(query: Query, settings: NewOperator) {
  const key = settings.key ?? makeOperatorKey()
  const id = settings.key === undefined ? makeUuid() : uuidOf(hashKey(settings.key))
  const { role = ROLE_OF_SCOPE[settings.scope ?? 'read'], reach = null, refundLimits = null } = settings
  await requireTenants(query, reach)
  const rows = await query(
    `insert into operator_keys (id, name, hash, scope, created_at, expires_at, role, organizations, projects, refund_limits)
     select $1, $2, $3, $4, at, at + make_interval(secs => $5::float8), $6, $7, $8, $9 from (select db_clock() as at) now
     on conflict do nothing returning 1`,
    [
      id,
      settings.name,
      hashKey(key),
      role === 'owner' && reach === null ? 'write' : 'read',
      settings.seconds ?? null,
      role,
      reach?.organizations ?? null,
      reach?.projects ?? null,
      role === 'support' ? JSON.stringify(refundLimits ?? {}) : null,
    ],
  )
  if (rows.length === 0) throw new Refusal(`This key has been created before, with the id ${id}.`)
  return { id, key }
}

/** Throws a `Refusal` for an organization or project that does not exist: a typing mistake would reach nothing. */
async function requireTenants(query: Query, reach: Reach | null): Promise<void> {
  for (const [what, ids] of Object.entries(reach ?? {})) {
    const rows = await query(
      `select id from unnest($1::text[]) id where id not in (select id from ${what === 'projects' ? 'projects' : 'organizations'})`,
      [ids],
    )
    if (rows.length > 0) throw new Refusal(`There is no ${what.slice(0, -1)} "${rows[0]!.id}".`)
  }
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
  return row && { id: row.text(0)!, ...accessFrom(row, 1) }
}

/** The columns that `accessFrom` reads, of an operator key. */
export const ACCESS_COLUMNS = `role, case when organizations is not null then
  json_build_object('organizations', organizations, 'projects', projects) end as reach, refund_limits`

/** The access from a row whose `ACCESS_COLUMNS` begin at `offset`. */
export function accessFrom(row: Row, offset: number): Access {
  const [reach, limits] = [row.text(offset + 1), row.text(offset + 2)]
  return {
    role: row.text(offset) as Role,
    reach: reach === null ? null : (JSON.parse(reach) as Reach),
    refundLimits: limits === null ? null : (JSON.parse(limits) as RefundLimits),
  }
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
      select id, last_used_at, ${ACCESS_COLUMNS} from operator_keys
      where hash = $1 and (expires_at is null or expires_at > (select db_clock()))
    ), ${RECORD_USE}
    select id, role, reach, refund_limits from living`,
}
