// The fields of a report transaction that only the payment provider knows.

/** What the provider says of a charge or refund, under the names of the transaction report. */
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

/** All fields unknown: adapters spread it and add what they know. */
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
