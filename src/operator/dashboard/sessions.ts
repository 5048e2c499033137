// Sessions of the dashboard: started with an operator key or a link, looked up on every request, ended when the key is revoked.
import { randomBytes } from 'node:crypto'
import type { Actor } from '../../core/audit/audit.ts'
import type { Access } from '../../core/tenants/access.ts'
import { hashKey } from '../../core/tenants/key-text.ts'
import { ACCESS_COLUMNS, accessFrom, createOperator, RECORD_USE } from '../../core/tenants/operator-keys.ts'
import type { Db } from '../../lib/pg/db.ts'
import type { Query, Statement } from '../../lib/pg/types.ts'

export interface Session {
  /** The id of the operator key, or the identity provider's id of a person. */
  id: string
  name: string
  access: Access
  /** In the audit log. */
  actor: Pick<Actor, 'kind' | 'id'>
}

export const SESSION_HOURS = 12
const LINK_HOURS = 12

/** Starts a session of an operator key, which the caller has verified, and returns its token. */
export async function beginSession(db: Db, operatorId: string): Promise<string> {
  const token = makeToken()
  await db.tx(async (query) => {
    await query('delete from dashboard_sessions where expires_at < db_clock()')
    await query(
      `insert into dashboard_sessions (hash, operator_id, created_at, expires_at)
       select $1, $2, at, at + make_interval(hours => $3) from (select db_clock() as at) now`,
      [hashKey(token), operatorId, SESSION_HOURS],
    )
  })
  return token
}

/** Returns the session of a token while its operator key is valid. Reads the database each time: revocation is immediate. */
export async function findSession(db: Db, token: string): Promise<Session | undefined> {
  const [row] = await db.read(FIND, [hashKey(token)])
  const id = row?.text(0)
  return id ? { id, name: row!.text(1)!, access: accessFrom(row!, 2), actor: { kind: 'operator key', id } } : undefined
}

const FIND: Statement = {
  name: 'find dashboard session',
  text: `
    with living as materialized (
      select k.id, k.name, k.last_used_at, ${ACCESS_COLUMNS} from dashboard_sessions s join operator_keys k on k.id = s.operator_id
      where s.hash = $1 and s.expires_at > db_clock() and (k.expires_at is null or k.expires_at > db_clock())
    ), ${RECORD_USE}
    select id, name, role, reach, refund_limits from living`,
}

export async function endSession(db: Db, token: string): Promise<void> {
  await db.query('delete from dashboard_sessions where hash = $1', [hashKey(token)])
}

/** Creates the token of a link that signs in once, within twelve hours, with this operator key. */
export async function makeLink(query: Query, operatorId: string): Promise<string> {
  const token = makeToken()
  await query('delete from sign_in_links where expires_at < db_clock()')
  await query(
    `insert into sign_in_links (hash, operator_id, expires_at)
     values ($1, $2, db_clock() + make_interval(hours => $3))`,
    [hashKey(token), operatorId, LINK_HOURS],
  )
  return token
}

/** The URL of a link with this token. For a listener on all addresses it has the loopback address. */
export function signInAddress(adminUrl: string, token: string): string {
  const url = new URL('/sign-in', adminUrl.replace(/^(https?:\/\/)(0\.0\.0\.0|\[::\]|::)(?=:|$)/, '$1127.0.0.1'))
  url.searchParams.set('token', token)
  return url.href
}

/** Creates a link for the owner’s key of this name. If there is none, creates one, whose secret no one gets to see. */
export async function makeOwnLink(query: Query, name: string): Promise<string> {
  const [known] = await query(
    `select id from operator_keys where name = $1 and role = 'owner' and organizations is null and (expires_at is null or expires_at > db_clock())
     order by created_at limit 1`,
    [name],
  )
  return makeLink(query, known?.id ?? (await createOperator(query, { name, role: 'owner' })).id)
}

/** Deletes the link of a token, so that it works once. Returns the id of its operator key, or undefined if the link is not valid. */
export async function takeLink(db: Db, token: string): Promise<string | undefined> {
  const [row] = await db.query(
    `delete from sign_in_links l using operator_keys k
     where l.hash = $1 and l.expires_at > db_clock() and k.id = l.operator_id
       and (k.expires_at is null or k.expires_at > db_clock())
     returning l.operator_id as id`,
    [hashKey(token)],
  )
  return row?.id ?? undefined
}

const makeToken = () => randomBytes(32).toString('base64url')
