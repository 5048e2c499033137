// Connects a merchant account to its payment provider: verifies the secret key at the provider and stores it encrypted.
import type { Clock } from '../../lib/clock.ts'
import { ApiError, invalidValue, tryLater } from '../../lib/errors.ts'
import type { Db } from '../../lib/pg/db.ts'
import { rowReader } from '../../lib/pg/row-reader.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import {
  type AccountName,
  accountKey,
  CredentialsUnreadable,
  credentialsOf,
  findAccount,
  webhookSecretsIn,
  webhookSecretsOf,
} from './account.ts'
import { type Adapter, type ApiUrls, adapters, describeKey, type SimulatorUrls } from './adapters.ts'
import type { AccountDescription } from './outcomes.ts'

export interface Connecting {
  /** If omitted, the stored key stays. */
  secretKey?: string | undefined
  /** The complete list. If omitted, the stored list stays. */
  webhookSecrets?: readonly string[] | undefined
  /** Whether the account is in the provider's test mode. */
  isSandbox: boolean
}

export interface ConnectContext {
  db: Db
  seal: Seal
  clock: Clock
  stripeApiUrl: string | undefined
  simulatorUrls?: SimulatorUrls | undefined
  apiUrls?: ApiUrls | undefined
  deadlineMs: number
}

// Rotating a secret needs two at a time; some more leave room for interrupted rotations.
const MAX_WEBHOOK_SECRETS = 5

/**
 * Stores the credentials of a merchant account, and creates the account if it does not exist. Throws an `ApiError` and
 * stores nothing if the mode or the account is wrong, or if the provider rejects the key.
 */
export async function connectAccount(context: ConnectContext, name: AccountName, given: Connecting): Promise<object> {
  const { db, seal } = context
  const adapter = adapterOf(name.psp)
  const [found] = await db.query(FIND, accountKey(name))
  const before = found && connectedFrom(found)
  checkSecrets(adapter, given, before)
  checkMode(adapter, given, before)
  const account = given.secretKey === undefined ? undefined : await describe(context, adapter, name, given)
  if (account) await checkAccount(context, adapter, name, account, before)
  const currencies = offered(JSON.parse(before?.currencies ?? '[]'), account?.currencies)
  const { secretKey, webhookSecrets } = given
  const [row] = await db.query(CONNECT, [
    ...accountKey(name),
    given.isSandbox,
    JSON.stringify(currencies),
    secretKey === undefined ? null : seal.seal(secretKey, credentialsOf(name)),
    secretKey?.slice(-4) ?? null,
    webhookSecrets === undefined ? null : seal.seal(JSON.stringify(webhookSecrets), webhookSecretsOf(name)),
    account?.accountId ?? null,
  ])
  if (!row) {
    // Another process has connected it in the meantime: in the other mode, or to another account.
    checkMode(adapter, given, connectedFrom((await db.query(FIND, accountKey(name)))[0]!))
    throw wrongAccount('another account', account!.accountId!)
  }
  return {
    psp: name.psp,
    psp_merchant_id: name.merchantId,
    sandbox: given.isSandbox,
    key_last4: row!.credentials_last4,
    webhook_secrets: webhookSecretsIn(seal, name, row!.webhook_secrets!).length,
    currencies,
    charges_enabled: account?.chargesEnabled ?? null,
    missing_permissions: account?.missingPermissions ?? null,
    provider_account: account?.accountId ?? null,
    provider_account_name: account?.displayName ?? null,
    notifications_path: `/${name.organizationId}/v1/providers/${name.psp}/${encodeURIComponent(name.merchantId)}/events`,
  }
}

/** Removes the credentials of an account and keeps its history. Throws a 404 if the account is not connected. */
export async function disconnectAccount(query: Query, name: AccountName): Promise<{ key_last4: string }> {
  const [row] = await query(
    `with old as (select credentials_last4 from merchant_accounts where ${WHERE} and credentials is not null for update)
     update merchant_accounts m set credentials = null, credentials_last4 = null, webhook_secrets = null,
       connected_at = null, updated_at = greatest(db_clock(), m.updated_at + interval '1 microsecond')
     from old where ${WHERE} returning old.credentials_last4`,
    accountKey(name),
  )
  if (!row) throw new ApiError(404, 'object_not_found', 'There is no connected merchant account with this id.')
  return { key_last4: row.credentials_last4! }
}

const WHERE = 'organization_id = $1 and psp = $2 and psp_merchant_id = $3'
/** What is stored of a merchant account. */
type Connected = {
  currencies: string | null
  is_sandbox: boolean | null
  credentials: string | null
  provider_account: string | null
  is_connected: boolean
}

const connectedFrom = rowReader<Connected>({ is_sandbox: 'boolean', is_connected: 'boolean' })

const FIND = `select currencies, is_sandbox, credentials, provider_account, credentials is not null as is_connected from merchant_accounts where ${WHERE}`

// The figures leave out the report rows of a sandbox account. When an account gets its mode, which happens once, the days
// of its rows are marked to be computed again.
const CONNECT = `
  with moved as (
    insert into figure_marks (project_id, family, day)
    select p.id, f.family, f.day
    from projects p cross join lateral (
      select 'sales' as family, day from figures_sales where project_id = p.id and split = 'provider' and key = $2
      union
      select e.family, y.day from figures_payments y cross join (values ('payments'), ('sales')) e (family)
      where y.project_id = p.id and y.split = 'provider' and y.key = $2
      union
      select 'declines', day from figures_declines where project_id = p.id and split = 'provider' and key = $2
      union
      select 'experiments', day from figures_experiments where project_id = p.id) f
    where p.organization_id = $1 and not exists (
      select from merchant_accounts m where ${WHERE} and is_sandbox is not null))
  insert into merchant_accounts as m (organization_id, psp, psp_merchant_id, is_sandbox, currencies, credentials,
    credentials_last4, webhook_secrets, provider_account, connected_at, created_at, updated_at)
  select $1, $2, $3, $4, $5, $6, $7, $8, $9, at, at, at from (select db_clock() as at) now
  on conflict (organization_id, psp, psp_merchant_id) do update set
    is_sandbox = excluded.is_sandbox, currencies = excluded.currencies,
    credentials = coalesce(excluded.credentials, m.credentials),
    credentials_last4 = coalesce(excluded.credentials_last4, m.credentials_last4),
    webhook_secrets = coalesce(excluded.webhook_secrets, m.webhook_secrets),
    provider_account = coalesce(m.provider_account, excluded.provider_account),
    connected_at = excluded.connected_at, updated_at = greatest(excluded.updated_at, m.updated_at + interval '1 microsecond')
  -- Another process may have connected another account, or this one in the other mode, since.
  where (m.provider_account is null or excluded.provider_account is null or m.provider_account = excluded.provider_account)
    and coalesce(m.is_sandbox, excluded.is_sandbox) = excluded.is_sandbox
  returning credentials_last4, webhook_secrets`

export function adapterOf(psp: string): Adapter {
  const adapter = adapters[psp]
  if (adapter) return adapter
  const known = Object.keys(adapters).join(', ')
  const why = psp === 'simulator' ? 'The simulator needs no credentials.' : `The psp must be one of: ${known}.`
  throw invalidValue(`This merchant account cannot be connected. ${why}`)
}

function checkSecrets({ title, isWebhookSecret }: Adapter, given: Connecting, before: Connected | undefined): void {
  const { secretKey, webhookSecrets } = given
  if (secretKey === undefined && webhookSecrets === undefined)
    throw new ApiError(400, 'property_required', 'secret_key or webhook_secrets is required.')
  if (secretKey === undefined && !before?.is_connected)
    throw new ApiError(400, 'property_required', 'secret_key is required: the merchant account is not connected yet.')
  if (webhookSecrets && webhookSecrets.length > MAX_WEBHOOK_SECRETS)
    throw invalidValue(`webhook_secrets must have at most ${MAX_WEBHOOK_SECRETS} items.`)
  if (webhookSecrets?.some((text) => !isWebhookSecret(text)))
    throw invalidValue(`webhook_secrets must be signing secrets of ${title}.`)
}

/** Throws if the key's mode, the requested mode and the mode in which the account was first connected differ. */
function checkMode(adapter: Adapter, { secretKey, isSandbox }: Connecting, before: Connected | undefined): void {
  const mode = secretKey === undefined ? undefined : adapter.modeOf(secretKey)
  if (secretKey !== undefined && mode === undefined)
    throw invalidValue(`secret_key must be a secret key of ${adapter.title}.`)
  if (mode === 'sandbox' && !isSandbox)
    throw new ApiError(409, 'wrong_mode', 'This is a test mode key: mark the merchant account as a sandbox.')
  if (mode === 'live' && isSandbox)
    throw new ApiError(
      409,
      'wrong_mode',
      'This is a live mode key, which moves real money: the merchant account must not be a sandbox.',
    )
  const was = before?.is_sandbox ?? null
  if (was !== null && was !== isSandbox)
    throw new ApiError(
      409,
      'wrong_mode',
      `The merchant account was connected in ${was ? 'test' : 'live'} mode, and its charges are of that mode: use another psp_merchant_id.`,
    )
}

/** Throws if the merchant account was first connected to another account at the provider: its payments and cards are there. */
async function checkAccount(
  context: ConnectContext,
  adapter: Adapter,
  name: AccountName,
  { accountId }: AccountDescription,
  before: Connected | undefined,
): Promise<void> {
  const known = before?.provider_account ?? (before?.credentials && (await accountOfStoredKey(context, adapter, name)))
  if (known && accountId !== null && known !== accountId) throw wrongAccount(known, accountId)
}

/** The account of the stored key, for one that was connected before accounts were stored. It may have been revoked. */
async function accountOfStoredKey(context: ConnectContext, adapter: Adapter, name: AccountName) {
  const stored = await findAccount(context.db, context.seal, name).catch((error) => {
    // Connecting again replaces credentials that another master key has sealed.
    if (!(error instanceof CredentialsUnreadable)) throw error
    return undefined
  })
  const found = stored && (await describeKey(adapter, stored.secretKey, { ...context, isSandbox: stored.isSandbox }))
  return found?.outcome === 'described' ? (found.accountId ?? undefined) : undefined
}

const wrongAccount = (known: string, given: string) =>
  new ApiError(
    400,
    'wrong_account',
    `The merchant account was connected to ${known}, where its payments and saved cards are, and this key belongs to ${given}: use another psp_merchant_id.`,
  )

async function describe(
  { clock, deadlineMs, stripeApiUrl, simulatorUrls, apiUrls }: ConnectContext,
  adapter: Adapter,
  { merchantId }: AccountName,
  { secretKey, isSandbox }: Connecting,
): Promise<AccountDescription> {
  const { title } = adapter
  const addresses = { stripeApiUrl, simulatorUrls, apiUrls }
  const account = await describeKey(adapter, secretKey!, { clock, deadlineMs, isSandbox, ...addresses })
  if (account.outcome === 'not_begun' && account.cause === 'credentials')
    throw new ApiError(
      400,
      'credentials_refused',
      `${title} rejects this key, or the key may not read the account (${account.why}).`,
    )
  if (account.outcome !== 'described')
    throw tryLater('provider_unavailable', `${title} cannot verify this key now (${account.why}): try again.`, 5)
  if (account.isSandbox !== isSandbox)
    throw new ApiError(409, 'wrong_mode', `${title} reports that this key belongs to the other mode.`)
  if (account.accountId !== null && merchantId.startsWith('acct_') && merchantId !== account.accountId)
    throw new ApiError(400, 'wrong_account', `This key belongs to the account ${account.accountId}.`)
  return account
}

/** The currencies that the provider reports for the account, restricted to those set by an operator, if any are set. */
function offered(configured: string[], reported: readonly string[] | undefined): readonly string[] {
  if (!reported || configured.length === 0) return reported ?? configured
  const both = configured.filter((code) => reported.includes(code))
  if (both.length > 0) return both
  const message = `The account can charge none of the currencies set for it (${configured.join(', ')}).`
  throw invalidValue(message)
}
