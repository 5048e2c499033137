// Seals the credentials of all merchant accounts under another master key.
import { bytesFromPg } from '../../lib/pg/row-bytes.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { credentialsOf, webhookSecretsOf } from './account.ts'

/** Returns how many accounts have credentials or webhook secrets. Locks them until the end of the transaction. */
export async function resealAccounts(query: Query, from: Seal, to: Seal): Promise<number> {
  const accounts = await query(FIND)
  for (const { organization_id, psp, psp_merchant_id, credentials, webhook_secrets } of accounts) {
    const key = [organization_id!, psp!, psp_merchant_id!] as const
    const name = { organizationId: key[0], psp: key[1], merchantId: key[2] }
    const reseal = (sealed: string | null | undefined, context: string) =>
      sealed == null ? null : to.seal(from.open(bytesFromPg(sealed), context), context)
    await query(SET, [
      ...key,
      reseal(credentials, credentialsOf(name)),
      reseal(webhook_secrets, webhookSecretsOf(name)),
    ])
  }
  return accounts.length
}

const FIND = `
  select organization_id, psp, psp_merchant_id, credentials, webhook_secrets from merchant_accounts
  where credentials is not null or webhook_secrets is not null
  order by organization_id, psp, psp_merchant_id for update`

const SET = `
  update merchant_accounts set credentials = $4, webhook_secrets = $5
  where organization_id = $1 and psp = $2 and psp_merchant_id = $3`
