// Named secret keys of a tenant: several at a time, each rotated or revoked on its own.
import { ApiError } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { boolean, instant, shape, text } from '../../lib/shape/shape.ts'
import { instantFromPg } from '../../lib/time.ts'
import { type KeyRate, rateOf, rateText } from './key-rate.ts'
import { hashKey, webhookSecret } from './key-text.ts'
import { addKey, type Tenant } from './tenants.ts'

/** A key as operators see it: everything but its text. */
export const secretKey = shape('SecretKey', 'k', {
  id: text('Identifier.', { example: '0199f0a6-52f0-7d51-8f0f-6f3d1c1b6a55' }),
  name: text('Purpose of the key.', { example: 'Warehouse' }),
  scopes: text('What a scoped key may do, separated by commas; null for a full key.', {
    nullable: true,
    sql: "array_to_string(k.scopes, ',')",
    example: 'read,write',
  }),
  last_four: text('Its last four characters; null for older keys.', { nullable: true, example: 'x7Qa' }),
  rate_limit: text('Its own limit: requests a second, and how many at once; null if it has that of the other keys.', {
    nullable: true,
    sql: "k.rate_limit || '/' || k.rate_limit_burst",
    example: '20/100',
  }),
  created_at: instant('When it was created.'),
  expires_at: instant('When it ends, or ended.', { nullable: true }),
  last_used_at: instant('When it was last used, to the minute; null if it was not used yet.', {
    nullable: true,
    sql: '(select u.last_used_at from key_uses u where u.organization_id = k.organization_id and u.key_id = k.id)',
  }),
  living: boolean('Whether the key is valid now.', {
    sql: '(k.expires_at is null or k.expires_at > (select db_clock()))',
  }),
})

const MAX_VALID_KEYS = 20
const MAX_SCOPED_KEYS = 1000

export interface NewKey {
  name: string
  /** Of a scoped key: what it may do. Such a key never signs webhooks. */
  scopes?: readonly string[] | null
  /** How long it is valid, or until when; by default until it is revoked. */
  seconds?: number | undefined
  until?: string | null
  /** Its own rate; by default that of the other keys. */
  rate?: KeyRate | null
}

/** Creates another key and returns its text, which is not stored. */
export async function createKey(
  query: Query,
  seal: Seal,
  tenant: Tenant,
  { name, scopes, seconds, until, rate }: NewKey,
) {
  // The lock of the organization's row keeps the count exact while two keys are created concurrently.
  await query('select 1 from organizations where id = $1 for no key update', [tenant.organization_id])
  const [count] = await query(
    `select count(*) as n from secret_keys where ${OWNED} and ${LIVING} and (scopes is null) = $3`,
    [...owner(tenant), !scopes],
  )
  // Every valid full key of a project signs its webhooks.
  const most = scopes ? MAX_SCOPED_KEYS : MAX_VALID_KEYS
  if (Number(count!.n) >= most)
    throw new ApiError(409, 'too_many_keys', `There are ${most} valid keys already: revoke one first.`)
  const [expiry] = await query('select coalesce($1, db_clock() + make_interval(secs => $2)) as at', [
    until ?? null,
    seconds ?? null,
  ])
  const key = await addKey(query, seal, tenant, {
    name,
    scopes: scopes ?? null,
    expires_at: expiry!.at!,
    rate: rate ?? null,
  })
  const [row] = await query('select id, expires_at from secret_keys where hash = $1', [hashKey(key)])
  return {
    id: row!.id!,
    name,
    secret_key: key,
    ...(tenant.project_id && !scopes && { webhook_secret: webhookSecret(key) }),
    scopes: scopes ?? null,
    rate_limit: rate ? rateText(rate) : null,
    expires_at: row!.expires_at === null ? null : instantFromPg(row!.expires_at!),
  }
}

/**
 * Creates a successor of the same name, which ends when the old key would have ended; the old key stays valid for `overlapSeconds`. It may be
 * rotated again in that time, as when the text of the first successor is lost.
 */
export async function rotateKey(query: Query, seal: Seal, tenant: Tenant, id: string, overlapSeconds: number) {
  const [old] = await query(
    `update secret_keys set expires_at = least(coalesce(expires_at, 'infinity'), db_clock() + make_interval(secs => $4)),
       own_expires_at = coalesce(own_expires_at, expires_at, 'infinity')
     where ${OWNED} and id::text = $3 and ${LIVING}
     returning name, array_to_string(scopes, ',') as scopes, expires_at, nullif(own_expires_at, 'infinity') as until,
       rate_limit, rate_limit_burst`,
    [...owner(tenant), id, overlapSeconds],
  )
  if (!old) throw noSuchKey(id)
  const made = await createKey(query, seal, tenant, {
    name: old.name!,
    scopes: old.scopes?.split(',') ?? null,
    until: old.until ?? null,
    rate: rateOf(old.rate_limit, old.rate_limit_burst),
  })
  return { ...made, previous_expires_at: instantFromPg(old.expires_at!) }
}

/** Ends a key at once, and returns its name. */
export async function revokeKey(query: Query, tenant: Tenant, id: string): Promise<string> {
  const [row] = await query(
    `update secret_keys set expires_at = db_clock() where ${OWNED} and id::text = $3 and ${LIVING} returning name`,
    [...owner(tenant), id],
  )
  if (!row) throw noSuchKey(id)
  return row.name!
}

const OWNED = 'organization_id = $1 and project_id is not distinct from $2'
const LIVING = '(expires_at is null or expires_at > db_clock())'
const owner = (tenant: Tenant) => [tenant.organization_id, tenant.project_id]
const noSuchKey = (id: string) =>
  new ApiError(404, 'object_not_found', `There is no valid key with the id "${id.slice(0, 64)}" here.`)
