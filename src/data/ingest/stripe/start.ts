// Finds the parameters of an import from Stripe: the project, the merchant account and its secret key.
import type { App } from '../../../app.ts'
import { Refusal } from '../../../lib/errors.ts'
import type { Query } from '../../../lib/pg/types.ts'
import { findAccount } from '../../../payments/providers/account.ts'
import { stripeApiFor } from '../../../payments/providers/adapters.ts'
import { type SourceOptions, StripeSource } from './source.ts'
import type { ImportName } from './state.ts'

const PSP = 'stripe'

type Shared = Pick<App, 'db' | 'seal' | 'config' | 'clock' | 'simulatorUrls'>

/** Throws a `Refusal` unless the project is one of the organization. */
export async function requireProjectOf(
  { db }: Pick<App, 'db'>,
  organizationId: string,
  projectId: string,
): Promise<void> {
  const [row] = await db.query('select organization_id from projects where id = $1', [projectId])
  if (row?.organization_id !== organizationId)
    throw new Refusal(`Organization "${organizationId}" has no project "${projectId}".`)
}

/** The named merchant account, or the only one that is connected to Stripe. */
export async function chooseAccount(
  { db }: Pick<App, 'db'>,
  organizationId: string,
  named: string | undefined,
): Promise<string> {
  const rows = await db.query(
    `select psp_merchant_id as id from merchant_accounts
     where organization_id = $1 and psp = $2 and credentials is not null order by 1`,
    [organizationId, PSP],
  )
  const connected = rows.map(({ id }) => id!)
  if (named !== undefined) {
    if (connected.includes(named)) return named
    throw new Refusal(
      `Merchant account "${named}" is not connected to Stripe: run tundish merchant-account connect first.`,
    )
  }
  if (connected.length === 1) return connected[0]!
  if (connected.length > 1) throw chooseOneOf(connected)
  throw new Refusal('The organization has no merchant account at Stripe: run tundish merchant-account connect first.')
}

/** Whether the merchant account is connected to Stripe. */
export async function hasAccount(
  query: Query,
  { organizationId, merchantId }: Pick<ImportName, 'organizationId' | 'merchantId'>,
): Promise<boolean> {
  const rows = await query(
    `select 1 from merchant_accounts
     where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and credentials is not null`,
    [organizationId, PSP, merchantId],
  )
  return rows.length > 0
}

/**
 * The merchant account of a separate key: the named one, or the one that is connected to the account at Stripe that the key belongs to,
 * or if there is none Stripe's id. Throws a `Refusal` if it is connected to another account or in another mode.
 */
export async function accountOfKey(
  { db }: Pick<App, 'db'>,
  { organizationId, named }: { organizationId: string; named: string | undefined },
  { accountId, isSandbox }: { accountId: string; isSandbox: boolean },
): Promise<string> {
  const rows = await db.query(
    `select psp_merchant_id as id, provider_account as account, is_sandbox as mode from merchant_accounts
     where organization_id = $1 and psp = $2
       and case when $3::text is null then provider_account = $4 and is_sandbox = $5 else psp_merchant_id = $3 end
     order by 1`,
    [organizationId, PSP, named ?? null, accountId, isSandbox],
  )
  if (rows.length > 1) throw chooseOneOf(rows.map(({ id }) => id!))
  const { id = named ?? accountId, account, mode } = rows[0] ?? {}
  if (account && account !== accountId)
    throw new Refusal(`Merchant account "${id}" is connected to ${account}, and this key belongs to ${accountId}.`)
  if (mode && (mode === 't') !== isSandbox)
    throw new Refusal(
      `Merchant account "${id}" is ${mode === 't' ? 'a sandbox' : 'live'}, and this is a ${isSandbox ? 'test' : 'live'} mode key.`,
    )
  return id!
}

const chooseOneOf = (connected: string[]) =>
  new Refusal(`Choose a merchant account with --merchant-account: ${connected.join(', ')}.`)

/** Opens the account for reading, with the key that it is connected with, also when that is replaced while it is read. */
export async function openSource(
  app: Shared,
  { organizationId, merchantId }: Pick<ImportName, 'organizationId' | 'merchantId'>,
  signal: AbortSignal,
  options: Pick<SourceOptions, 'takeTurn' | 'tries'> = {},
): Promise<StripeSource> {
  const presentKey = async () => {
    const account = await findAccount(app.db, app.seal, { organizationId, psp: PSP, merchantId })
    if (!account) throw new Refusal(`Merchant account "${merchantId}" is no longer connected to Stripe.`)
    return account.secretKey
  }
  return sourceFor(app, { secretKey: await presentKey(), presentKey, signal, ...options })
}

/** The same with a separate key, for reading only; returns the account's id at Stripe and the mode of the key, too. */
export async function openWithKey(
  app: Pick<Shared, 'config' | 'clock' | 'simulatorUrls'>,
  secretKey: string,
  signal: AbortSignal,
): Promise<{ source: StripeSource; accountId: string; isSandbox: boolean }> {
  const source = sourceFor(app, { secretKey, signal })
  try {
    return { source, accountId: await source.accountId(), isSandbox: /^[sr]k_test_/.test(secretKey) }
  } catch (error) {
    source.close()
    throw error
  }
}

function sourceFor(
  { config, clock, simulatorUrls }: Pick<Shared, 'config' | 'clock' | 'simulatorUrls'>,
  given: Pick<SourceOptions, 'secretKey' | 'presentKey' | 'signal' | 'takeTurn'>,
): StripeSource {
  const apiUrl = stripeApiFor(given.secretKey, { stripeApiUrl: config.stripeApiUrl, simulatorUrls })
  return new StripeSource({ ...given, apiUrl, clock })
}
