// Credentials of merchant accounts at their payment providers: set and removed, never returned.
import { Type } from '../../lib/shape/schema.ts'
import { adapterOf, connectAccount, disconnectAccount } from '../../payments/providers/connect.ts'
import { accountOf, checkLabel } from './merchant-accounts.ts'
import { act, change, type Input } from './operation.ts'

const PATH = '/organizations/:organization_id/merchant-accounts/:psp/:psp_merchant_id'

const Secret = (description: string) => Type.String({ description, minLength: 1, maxLength: 255 })

/** The command has its own file: secrets are never arguments. */
export const CONNECT_COMMAND = 'merchant-account connect'

const connection = Type.Named('MerchantAccountCredentials', {
  sandbox: Type.Boolean({
    description: 'Whether the account is in the provider’s test mode. The key must be of the same mode.',
  }),
  secret_key: Type.Optional(Secret('Secret key for the provider. Unchanged if left out.')),
  webhook_secrets: Type.Optional(
    Type.Array(Secret('A secret that signs the provider’s notifications.'), {
      description: 'All secrets that are valid now: several while one is rotated. Unchanged if left out.',
      maxItems: 5,
    }),
  ),
})

const connected = Type.Object(
  {
    psp: Type.String({ description: 'Payment provider.', examples: ['stripe'] }),
    psp_merchant_id: Type.String({ description: 'Account at the provider.' }),
    sandbox: Type.Boolean({ description: 'Whether the account is in the provider’s test mode.' }),
    key_last4: Type.String({ description: 'Last four characters of the secret key.', examples: ['4f2a'] }),
    webhook_secrets: Type.Integer({ description: 'Number of secrets that may sign its notifications.' }),
    currencies: Type.Array(Type.String(), { description: 'Currencies that the account offers.' }),
    charges_enabled: Type.OrNull(
      Type.Boolean(),
      'Whether the provider lets the account charge; null if the provider was not asked.',
    ),
    missing_permissions: Type.OrNull(
      Type.Array(Type.String()),
      'Permissions that the key lacks, by the provider’s names of them; null if the provider was not asked.',
    ),
    provider_account: Type.OrNull(
      Type.String(),
      'The provider’s id of the account; null if the provider was not asked.',
    ),
    provider_account_name: Type.OrNull(Type.String(), 'Name of the account at the provider; null if it is not known.'),
    notifications_path: Type.String({ description: 'Path to which the provider must send its notifications.' }),
  },
  { title: 'MerchantAccountConnection' },
)

const nameOf = ({ params }: Input<typeof PATH>) => ({
  organizationId: params.organization_id,
  psp: params.psp,
  merchantId: params.psp_merchant_id,
})

export const connections = [
  act({
    id: 'connectMerchantAccount',
    right: 'accounts',
    command: CONNECT_COMMAND,
    method: 'POST',
    path: `${PATH}/connect`,
    tag: 'Tenants',
    summary: 'Connect a merchant account to its payment provider',
    description:
      'Checks with the provider which account the key belongs to, then stores the credentials encrypted. Every process uses them within a second. Call it again to rotate them.',
    body: connection,
    response: connected,
    entry(input) {
      const { sandbox, secret_key, webhook_secrets } = input.body
      const after = { sandbox, key_last4: secret_key?.slice(-4), webhook_secrets: webhook_secrets?.length }
      return { action: 'merchant_account.connect_asked', target: accountOf(input.params), after }
    },
    async act({ db, seal, clock, config, simulatorUrls }, input) {
      const { sandbox, secret_key, webhook_secrets } = input.body
      const name = nameOf(input)
      checkLabel('psp', name.psp)
      checkLabel('psp_merchant_id', name.merchantId)
      adapterOf(name.psp)
      const { stripeApiUrl, apiUrls, providerTimeoutMs: deadlineMs } = config
      const given = { isSandbox: sandbox, secretKey: secret_key, webhookSecrets: webhook_secrets }
      return connectAccount({ db, seal, clock, stripeApiUrl, simulatorUrls, apiUrls, deadlineMs }, name, given)
    },
  }),
  change({
    id: 'disconnectMerchantAccount',
    right: 'accounts',
    command: 'merchant-account disconnect',
    method: 'POST',
    path: `${PATH}/disconnect`,
    tag: 'Tenants',
    summary: 'Remove the credentials of a merchant account',
    description:
      'Its orders and payments stay. Cards saved at the account cannot be charged, and refunds in progress wait for new credentials.',
    response: Type.Object({ disconnected: Type.Boolean() }, { title: 'MerchantAccountDisconnected' }),
    async change(query, input) {
      const before = await disconnectAccount(query, nameOf(input))
      const entry = { action: 'merchant_account.disconnected', target: accountOf(input.params), before }
      return { entry, result: { disconnected: true } }
    },
  }),
] as const
