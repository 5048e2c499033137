// What a provider reports of the account that a secret key belongs to.

export interface AccountDescription {
  outcome: 'described'
  accountId: string
  displayName: string | null
  country: string | null
  /** Whether the key is of the test mode. */
  isSandbox: boolean
  chargesEnabled: boolean
  /** ISO 4217 codes in capitals: the currencies that the account can charge and whose amounts can be converted. */
  currencies: string[]
  /** The permissions that the key lacks, by the provider's names of them. */
  missingPermissions: string[]
}
