// A merchant account connected to its provider, as stored in the database: its credentials are sealed by the master key.
import type { Db } from '../../lib/pg/db.ts'
import { bytesFromPg, type Row } from '../../lib/pg/row-bytes.ts'
import { booleanFromPg } from '../../lib/pg/row-reader.ts'
import type { Seal } from '../../lib/secrets.ts'

/** Names a merchant account. */
export interface AccountName {
  organizationId: string
  psp: string
  merchantId: string
}

/** The account's name as the first three parameters of a statement. */
export const accountKey = ({ organizationId, psp, merchantId }: AccountName) => [organizationId, psp, merchantId]

export interface Account extends AccountName {
  isSandbox: boolean
  secretKey: string
  /** ISO 4217 codes in capitals. An empty list allows every currency that the provider can charge. */
  currencies: string[]
  /** The provider's own id of the account that it was first connected to; null: not known. */
  accountId: string | null
  /** Differs whenever a field that the open provider depends on has changed. */
  version: string
}

const COLUMNS = 'organization_id, psp, psp_merchant_id, is_sandbox, currencies, credentials, provider_account'

const FIND = {
  name: 'find connected merchant account',
  text: `select ${COLUMNS} from merchant_accounts
         where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and credentials is not null`,
}

/** The connected account of this name; undefined if it does not exist or is not connected. */
export async function findAccount(db: Db, seal: Seal, name: AccountName): Promise<Account | undefined> {
  const [row] = await db.read(FIND, accountKey(name))
  return row && open(seal, row)
}

const LIST = {
  name: 'list connected merchant accounts',
  text: `select ${COLUMNS} from merchant_accounts where credentials is not null and psp = any($1) order by 1, 2, 3`,
}

/** Every connected account of these providers, of every organization. */
export async function listAccounts(db: Db, seal: Seal, psps: readonly string[]): Promise<Account[]> {
  return (await db.readLong(LIST, [psps])).map((row) => open(seal, row))
}

const FIND_SECRETS = {
  name: 'find webhook secrets of merchant account',
  text: `select webhook_secrets from merchant_accounts
         where organization_id = $1 and psp = $2 and psp_merchant_id = $3 and credentials is not null`,
}

/** The secrets that sign the provider's notifications to an account; empty if the account is not connected. */
export async function findWebhookSecrets(db: Db, seal: Seal, name: AccountName): Promise<string[]> {
  const [row] = await db.read(FIND_SECRETS, accountKey(name))
  return webhookSecretsIn(seal, name, row?.text(0) ?? null)
}

/** Decrypts a stored list of webhook secrets. */
export const webhookSecretsIn = (seal: Seal, name: AccountName, sealed: string | null): string[] =>
  sealed === null ? [] : JSON.parse(seal.open(bytesFromPg(sealed), webhookSecretsOf(name)))

function open(seal: Seal, row: Row): Account {
  const [organizationId, psp, merchantId, sandbox, currencies, sealed, accountId] = row.texts() as string[]
  const name = { organizationId: organizationId!, psp: psp!, merchantId: merchantId! }
  return {
    ...name,
    isSandbox: booleanFromPg(sandbox!),
    secretKey: openCredentials(seal, name, sealed!),
    currencies: JSON.parse(currencies!),
    accountId: accountId ?? null,
    version: `${sealed} ${sandbox} ${currencies} ${accountId ?? ''}`,
  }
}

/** Thrown for credentials that were sealed under another master key, or for another account. */
export class CredentialsUnreadable extends Error {}

function openCredentials(seal: Seal, name: AccountName, sealed: string): string {
  try {
    return seal.open(bytesFromPg(sealed), credentialsOf(name))
  } catch {
    const { organizationId, psp, merchantId } = name
    throw new CredentialsUnreadable(
      `The credentials of merchant account ${psp} ${merchantId} of organization ${organizationId} cannot be decrypted with this master key.`,
    )
  }
}

/** The context that binds sealed credentials to their account. */
export const credentialsOf = ({ organizationId, psp, merchantId }: AccountName) =>
  `credentials ${JSON.stringify([organizationId, psp, merchantId])}`

/** The context that binds sealed webhook secrets to their account. */
export const webhookSecretsOf = ({ organizationId, psp, merchantId }: AccountName) =>
  `webhook secrets ${JSON.stringify([organizationId, psp, merchantId])}`
