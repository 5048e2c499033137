// Credentials of merchant accounts at their payment providers: set and removed, never answered.
import { type Schema, Type } from '../lib/shape/schema.ts'
import { connectAccount, disconnectAccount } from '../providers/connect.ts'
import { requireOrganization } from './exist.ts'
import { checkLabel } from './merchant-accounts.ts'
import type { Input, Operation } from './operation.ts'

const PATH = '/organizations/:organization_id/merchant-accounts/:psp/:psp_merchant_id'

const Secret = (description: string) => Type.String({ description, minLength: 1, maxLength: 255 })

/** The command has its own file: secrets are never arguments. */
export const CONNECT_COMMAND = 'merchant-account connect'

const connection = Type.Object(
  {
    sandbox: Type.Boolean({ description: 'Whether the account is of the provider’s test mode. The key must be too.' }),
    secret_key: Type.Optional(Secret('Secret key of the provider. Left out: it stays as it is.')),
    webhook_secrets: Type.Optional(
      Type.Array(Secret('A secret that signs the provider’s notifications.'), {
        description: 'All that are valid now, several while one is rotated. Left out: they stay as they are.',
        maxItems: 5,
      }),
    ),
  },
  { title: 'MerchantAccountCredentials', additionalProperties: false },
)

const OrNull = (type: Schema, description: string) => Type.Union([type, Type.Null()], { description })

const connected = Type.Object(
  {
    psp: Type.String({ description: 'Payment provider.', examples: ['stripe'] }),
    psp_merchant_id: Type.String({ description: 'The account there.' }),
    sandbox: Type.Boolean({ description: 'Whether it is of the provider’s test mode.' }),
    key_last4: Type.String({ description: 'End of the secret key.', examples: ['4f2a'] }),
    webhook_secrets: Type.Integer({ description: 'How many secrets can sign its notifications.' }),
    currencies: Type.Array(Type.String(), { description: 'Currencies that it offers.' }),
    charges_enabled: OrNull(Type.Boolean(), 'Whether the provider lets it charge; null: it was not asked.'),
    provider_account: OrNull(Type.String(), 'The provider’s id of the account; null: it was not asked.'),
    provider_account_name: OrNull(Type.String(), 'Its name there.'),
    notifications_path: Type.String({ description: 'Where the provider is to send its notifications.' }),
  },
  { title: 'MerchantAccountConnection' },
)

const nameOf = ({ params }: Input) => ({
  organizationId: params.organization_id!,
  psp: params.psp!,
  merchantId: params.psp_merchant_id!,
})

const targetOf = ({ params: { organization_id, psp, psp_merchant_id } }: Input) =>
  `merchant account ${psp} ${psp_merchant_id} of organization ${organization_id}`

interface Given {
  sandbox: boolean
  secret_key?: string
  webhook_secrets?: string[]
}

export const connections: Operation[] = [
  {
    id: 'connectMerchantAccount',
    command: CONNECT_COMMAND,
    method: 'POST',
    path: `${PATH}/connect`,
    tag: 'Tenants',
    summary: 'Connect a merchant account to its payment provider',
    description:
      'Stores the credentials, sealed, after the provider was asked whose they are. They are used within a second by every process. Also to rotate them.',
    body: connection,
    answer: connected,
    entry(input) {
      const { sandbox, secret_key, webhook_secrets } = input.body as unknown as Given
      const after = { sandbox, key_last4: secret_key?.slice(-4), webhook_secrets: webhook_secrets?.length }
      return { action: 'merchant_account.connect_asked', target: targetOf(input), after }
    },
    async act({ db, seal, clock, config }, input) {
      const { sandbox, secret_key, webhook_secrets } = input.body as unknown as Given
      const name = nameOf(input)
      checkLabel('psp', name.psp)
      checkLabel('psp_merchant_id', name.merchantId)
      await requireOrganization(db.query, name.organizationId)
      const { stripeApiUrl, providerTimeoutMs: deadlineMs } = config
      const given = { isSandbox: sandbox, secretKey: secret_key, webhookSecrets: webhook_secrets }
      return connectAccount({ db, seal, clock, stripeApiUrl, deadlineMs }, name, given)
    },
  },
  {
    id: 'disconnectMerchantAccount',
    command: 'merchant-account disconnect',
    method: 'POST',
    path: `${PATH}/disconnect`,
    tag: 'Tenants',
    summary: 'Remove the credentials of a merchant account',
    description:
      'Its history stays. Cards saved there cannot be charged, and refunds in progress wait for credentials.',
    answer: Type.Object({ disconnected: Type.Boolean() }, { title: 'MerchantAccountDisconnected' }),
    async change(query, input) {
      const before = await disconnectAccount(query, nameOf(input))
      const entry = { action: 'merchant_account.disconnected', target: targetOf(input), before }
      return { entry, result: { disconnected: true } }
    },
  },
]
