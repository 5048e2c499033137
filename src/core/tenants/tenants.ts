// Organizations, their projects, and the secret keys of both.

import { randomUUID } from 'node:crypto'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { minorUnits, readCurrency } from '../../lib/money.ts'
import type { Db } from '../../lib/pg/db.ts'
import { isDuplicate } from '../../lib/pg/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { isName, shorten } from '../../lib/text.ts'
import { instantFromPg } from '../../lib/time.ts'
import type { KeyRate } from './key-rate.ts'
import { hashKey, makeKey, webhookSecret } from './key-text.ts'
import { refuseReserved } from './reserved-ids.ts'

/** The owner of a key; a project's key has a `project_id`, an organization's key has none. */
export interface Tenant {
  organization_id: string
  project_id: string | null
}

/** The holder of the valid key of a request. */
export interface KeyHolder extends Tenant {
  key_id: string
  /** Of a scoped key: what it may do; null for a full key. */
  scopes: readonly string[] | null
  name: string
  /** Of a project: whether its keys may write payments, customers and merchant accounts. */
  writesPayments: boolean
  /** The request rate of each key of the tenant, where the operator has set it. */
  rate: KeyRate | null
  /** That of this key alone: the lower of both holds. */
  ownRate: KeyRate | null
}

/** The connection to write on: the pool, or a transaction of the caller. */
type Writing = Pick<Db, 'query' | 'tx'>

/** Passes the caller's transaction to functions that would begin another one. */
export const within = (query: Query): Writing => ({ query, tx: (work) => work(query, () => {}) })

export const ID_PATTERN = '^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$'
const ID = new RegExp(ID_PATTERN)
// An organization's id is the first path segment of its API, as are these pages.
const RESERVED = new Set(['public', 'admin', 'docs', 'health', 'openapi.json', 'metrics'])
export const LONGEST_NAME = 100
const FAR_FUTURE = 'infinity'

/** Checks the display name of a tenant or a key, which is shown in one line of a list. */
export function checkName(name: string | undefined): void {
  if (name === undefined || isName(name, LONGEST_NAME)) return
  throw new UsageError(`A name must have 1 to ${LONGEST_NAME} characters and no control characters.`)
}

/** Checks the id and the name of a new tenant. */
export function checkTenant(what: 'organization' | 'project', { id, name }: { id: string; name?: string }): void {
  checkId(what, id)
  checkName(name)
}

/** Creates an organization with its first key, which is returned once and not stored. */
export async function createOrganization(db: Writing, seal: Seal, organization: { id: string; name?: string }) {
  checkTenant('organization', organization)
  const { id, name } = organization
  return db.tx(async (query) => {
    await refuseReserved(query, 'organization', id)
    await insertOnce('organization', id, () =>
      query('insert into organizations (id, name) values ($1, $2)', [id, name ?? id]),
    )
    await query('insert into organization_clocks (organization_id) values ($1)', [id])
    await takeSharedRates(query, id)
    return { id, secret_key: await addKey(query, seal, { organization_id: id, project_id: null }) }
  })
}

/** Gives a new organization the exchange rates that were loaded for all. Waits for a load that is under way. */
async function takeSharedRates(query: Query, organization: string): Promise<void> {
  await query('lock table shared_exchange_rates in share mode')
  await query(
    `insert into exchange_rates (organization_id, currency_code, day, per_euro)
     select $1, currency_code, day, per_euro from shared_exchange_rates`,
    [organization],
  )
}

/** Creates a project of an organization with its first key. Project ids are unique across organizations. */
export async function createProject(
  db: Writing,
  seal: Seal,
  project: { id: string; organization: string; name?: string },
) {
  const { id, organization, name } = project
  checkTenant('project', project)
  return db.tx(async (query) => {
    await requireOrganization(query, organization)
    await refuseReserved(query, 'project', id)
    await insertOnce('project', id, () =>
      query('insert into projects (id, organization_id, name) values ($1, $2, $3)', [id, organization, name ?? id]),
    )
    await query('insert into project_clocks (project_id) values ($1)', [id])
    const secret_key = await addKey(query, seal, { organization_id: organization, project_id: id })
    return { id, secret_key, webhook_secret: webhookSecret(secret_key) }
  })
}

/** What an erasure does at payment providers: nothing, empty the customer there, or delete it. */
export type EraseAtProvider = 'off' | 'on' | 'delete'

export interface OrganizationChange {
  enabled?: boolean | undefined
  maxAmounts?: string[]
  eraseAtProvider?: EraseAtProvider | undefined
}

/**
 * Sets an organization's rules for custom charges and returns them. `maxAmounts` are amounts in major units, `500` for
 * every currency or `JPY=50000` for one.
 */
export async function setOrganization(db: Writing, id: string, change: OrganizationChange) {
  const limits = Object.fromEntries((change.maxAmounts ?? []).map(readLimit))
  const [row] = await db.query(
    `update organizations set one_off_charge_enabled = coalesce($2, one_off_charge_enabled),
       one_off_charge_max_amount = one_off_charge_max_amount || $3::jsonb,
       erase_at_provider = coalesce($4, erase_at_provider)
     where id = $1 returning id, one_off_charge_enabled, one_off_charge_max_amount, erase_at_provider`,
    [id, change.enabled ?? null, JSON.stringify(limits), change.eraseAtProvider ?? null],
  )
  if (!row) throw new Refusal(`There is no organization "${id}".`)
  return {
    id,
    one_off_charge_enabled: row.one_off_charge_enabled === 't',
    erase_at_provider: row.erase_at_provider as EraseAtProvider,
    one_off_charge_max_amount: JSON.parse(row.one_off_charge_max_amount!) as Record<string, string>,
  }
}

/** Throws a `UsageError` for a maximum that `setOrganization` refuses. */
export const checkMaxAmounts = (texts: string[]): void => void texts.map(readLimit)

function readLimit(text: string): [currency: string, amount: string] {
  const [, code = '*', amount] = /^(?:([A-Za-z]{3})=)?([0-9]{1,15}(?:\.[0-9]{1,9})?)$/.exec(text) ?? []
  if (amount === undefined)
    throw new UsageError(`A maximum must be an amount such as 500 or JPY=50000, got "${shorten(text, 40)}".`)
  const currency = code.toUpperCase()
  const units = currency === '*' ? 9 : readCurrency(currency) === undefined ? undefined : minorUnits(currency)
  if (units === undefined) throw new UsageError(`"${code}" is not a currency of ISO 4217.`)
  if ((amount.split('.')[1] ?? '').replace(/0+$/, '').length > units)
    throw new UsageError(`${currency} has ${units} decimal places, got "${shorten(amount, 40)}".`)
  return [currency, amount]
}

/**
 * Creates a new key for an organization or a project. The old keys end at once, or after `overlapSeconds`; an older overlap
 * that ends sooner is not extended.
 */
export async function regenerateKey(
  db: Writing,
  seal: Seal,
  owner: { organization?: string; project?: string },
  overlapSeconds = 0,
) {
  return db.tx(async (query) => {
    const tenant = await lockTenant(query, owner)
    const [ended] = await query<{ previous_expires_at: string | null }>(
      `with ended as (
         update secret_keys set expires_at = least(coalesce(expires_at, '${FAR_FUTURE}'), db_clock() + make_interval(secs => $3))
         where organization_id = $1 and project_id is not distinct from $2 and coalesce(expires_at, '${FAR_FUTURE}') > db_clock()
         returning expires_at)
       select max(expires_at) as previous_expires_at from ended`,
      [tenant.organization_id, tenant.project_id, overlapSeconds],
    )
    const previous = ended!.previous_expires_at
    return {
      secret_key: await addKey(query, seal, tenant),
      previous_expires_at: overlapSeconds > 0 && previous ? instantFromPg(previous) : null,
    }
  })
}

/** Throws a `Refusal` if there is no organization with this id. */
export async function requireOrganization(query: Query, id: string): Promise<void> {
  const rows = await query('select 1 from organizations where id = $1', [id])
  if (rows.length === 0) throw new Refusal(`There is no organization "${id}".`)
}

/** Also locks the owner's row: of two concurrent regenerations, the later ends the key of the earlier. */
async function lockTenant(query: Query, { organization, project }: { organization?: string; project?: string }) {
  const [what, id] = project === undefined ? ['organization', organization!] : ['project', project]
  const column = project === undefined ? 'id' : 'organization_id'
  const [row] = await query<{ organization_id: string }>(
    `select ${column} as organization_id from ${what}s where id = $1 for no key update`,
    [id],
  )
  if (!row) throw new Refusal(`There is no ${what} "${id}".`)
  return { organization_id: row.organization_id, project_id: project ?? null }
}

/** Creates another key for a tenant. */
export async function addKey(
  query: Query,
  seal: Seal,
  tenant: Tenant,
  {
    name = '',
    scopes,
    expires_at,
    rate,
  }: { name?: string; scopes?: readonly string[] | null; expires_at?: string | null; rate?: KeyRate | null } = {},
): Promise<string> {
  const id = randomUUID()
  const key = makeKey()
  await query(
    `insert into secret_keys (id, organization_id, project_id, name, hash, sealed, scopes, expires_at, last_four, rate_limit, rate_limit_burst)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      id,
      tenant.organization_id,
      tenant.project_id,
      name,
      hashKey(key),
      seal.seal(key, id),
      scopes ?? null,
      expires_at ?? null,
      key.slice(-4),
      rate?.rate ?? null,
      rate?.burst ?? null,
    ],
  )
  return key
}

async function insertOnce(what: string, id: string, insert: () => Promise<unknown>): Promise<void> {
  await insert().catch((error) => {
    if (isDuplicate(error)) throw new Refusal(`The ${what} "${id}" exists already.`)
    throw error
  })
}

function checkId(what: string, id: string): void {
  if (!ID.test(id)) {
    throw new UsageError(
      `The ${what} id "${id}" must be 1 to 64 letters, digits, "_" or "-", and begin with a letter or digit.`,
    )
  }
  if (RESERVED.has(id)) throw new UsageError(`"${id}" is reserved: choose another ${what} id.`)
}
