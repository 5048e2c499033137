// What every payment provider must be able to do for us, and the only answers it may give.

/** Names one charge or refund at a provider. Callers may pass a whole request. */
export interface Reference {
  /** The provider's idempotency key: it moves money at most once for each key, for ever. */
  key: string
  /** Our own id of the order or refund, visible at the provider. */
  reference: string
  merchantId: string
  region: string | null
}

export interface ChargeRequest extends Reference {
  amountMinor: bigint
  currencyCode: string
  /** The saved card, as this provider calls it. */
  token: string
  traceparent?: string
}

export interface RefundRequest extends Reference {
  amountMinor: bigint
  currencyCode: string
  /** The charge to pay back, as the provider calls it: `details.psp_transaction_id` of its success. */
  chargeTransactionId: string
  traceparent?: string
}

/** The provider has decided. What it holds under the key is told back, so that a caller can see that it is its own. */
export interface Settled {
  outcome: 'succeeded' | 'failed'
  reference: string
  amountMinor: bigint
  currencyCode: string
  details: PaymentDetails
}

/** Money may have moved or not: only a later look-up can tell. `why` is for operators and holds no secret. */
export interface Unknown {
  outcome: 'unknown'
  why: string
}

/** Nothing moved under this key, and nothing ever will. */
export interface Refused {
  outcome: 'refused'
}

/** The provider has no trace of the key now. A request that is still on its way may bring one. */
export interface NotFound {
  outcome: 'not_found'
}

/** The key already stands for another amount, currency, card or charge: this request moved nothing. */
export interface Conflict {
  outcome: 'conflict'
}

/**
 * A payment provider. No method throws for trouble on the way or at the provider, that is `unknown`; only `list` does,
 * with `ProviderTrouble`. Every other exception is a bug. Each call is guarded by one deadline.
 */
export interface Provider {
  /** The `psp` of merchant accounts that use it. */
  readonly name: string

  /** Asked before a charge is claimed: false while the circuit is open or too many calls wait already. */
  admits(): boolean
  /** For metrics and `doctor`; asking changes nothing. */
  circuitIsOpen(): boolean
  isReachable(): Promise<boolean>

  /** Moves money at most once for each key; a key seen before answers what became of it. */
  charge(request: ChargeRequest, signal?: AbortSignal): Promise<Settled | Unknown | Refused | Conflict>
  lookUp(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused | NotFound>
  /** Has the provider refuse the key for good, also to a request still on its way; or learns what it already stands for. */
  refuse(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused>

  refund(request: RefundRequest, signal?: AbortSignal): Promise<Settled | Unknown | Refused | Conflict>
  lookUpRefund(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused | NotFound>
  refuseRefund(reference: Reference, signal?: AbortSignal): Promise<Settled | Unknown | Refused>

  /** Every movement of money since an instant (RFC 3339), oldest first. Throws `ProviderTrouble` when it breaks off. */
  list(since: string): AsyncIterable<Movement>

  close(): void
}

/** The providers of this process by name. */
export type Providers = ReadonlyMap<string, Provider>

export interface Movement {
  type: 'charge' | 'refund'
  key: string
  reference: string
  amountMinor: bigint
  currencyCode: string
  transactionId: string
  at: string
}

/** Trouble on the way to a provider or at it. The message names no address and no secret. */
export class ProviderTrouble extends Error {}

/** The fields of a report transaction that only the provider knows. */
export interface PaymentDetails {
  psp_transaction_id: string | null
  psp_transaction_type: string | null
  psp_status: string | null
  psp_date: string | null
  psp_card_token_type: string | null
  psp_reason_message: string | null
  psp_reason_type: string | null
  psp_reason_code: string | null
  psp_reason_decline_type: string | null
  pm_type: string | null
  network: string | null
  authorization_type: string | null
  is_vaulted: boolean | null
  threeds_challenge_issued: boolean | null
  threeds_protocol_version: string | null
  threeds_response_code: string | null
  threeds_reason_code: string | null
  threeds_reason_text: string | null
  pm_data_first6: string | null
  pm_data_last4: string | null
  pm_data_expiration_date: string | null
  pm_data_is_network_tokenized: boolean | null
  pm_data_bin_account_funding_type: string | null
  pm_data_bin_account_number_type: string | null
  pm_data_bin_issuer_name: string | null
  pm_data_bin_issuer_country_code: string | null
  pm_data_bin_issuer_currency_code: string | null
  pm_data_bin_prepaid_reloadable_indicator: string | null
  pm_data_bin_product_code: string | null
  pm_data_bin_product_name: string | null
  pm_data_bin_product_usage_type: string | null
  pm_data_bin_regional_restriction: string | null
}

/** Where an adapter starts from: nothing known. */
export const noDetails: PaymentDetails = {
  psp_transaction_id: null,
  psp_transaction_type: null,
  psp_status: null,
  psp_date: null,
  psp_card_token_type: null,
  psp_reason_message: null,
  psp_reason_type: null,
  psp_reason_code: null,
  psp_reason_decline_type: null,
  pm_type: null,
  network: null,
  authorization_type: null,
  is_vaulted: null,
  threeds_challenge_issued: null,
  threeds_protocol_version: null,
  threeds_response_code: null,
  threeds_reason_code: null,
  threeds_reason_text: null,
  pm_data_first6: null,
  pm_data_last4: null,
  pm_data_expiration_date: null,
  pm_data_is_network_tokenized: null,
  pm_data_bin_account_funding_type: null,
  pm_data_bin_account_number_type: null,
  pm_data_bin_issuer_name: null,
  pm_data_bin_issuer_country_code: null,
  pm_data_bin_issuer_currency_code: null,
  pm_data_bin_prepaid_reloadable_indicator: null,
  pm_data_bin_product_code: null,
  pm_data_bin_product_name: null,
  pm_data_bin_product_usage_type: null,
  pm_data_bin_regional_restriction: null,
}
