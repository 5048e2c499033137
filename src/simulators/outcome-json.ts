// The simulator's responses: the outcome of a key, and a line of the ledger.
import { formatMinor } from '../lib/money.ts'
import type { ClosedEntry } from './ledger.ts'
import { readToken } from './tokens.ts'

const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }

/** The response about a key; `details` has the field names of the transaction report. */
export function outcomeOf(entry: ClosedEntry): object {
  const { reference, amount_minor, currency_code } = entry.order
  return { outcome: entry.state, reference, amount_minor, currency_code, details: detailsOf(entry) }
}

/** One movement of money; `amount` is a JSON number in major units with all its places, as in the report. */
export function lineOf(entry: ClosedEntry): string {
  const { reference, amount_minor, currency_code, token, merchant_id, charge_transaction_id } = entry.order
  return JSON.stringify({
    reference,
    type: entry.kind,
    amount: rawJSON(formatMinor(BigInt(amount_minor), currency_code)),
    amount_minor,
    currency_code,
    token,
    at: entry.at,
    key: entry.key,
    merchant_id,
    psp_transaction_id: entry.transaction_id,
    charge_transaction_id,
  })
}

function detailsOf({ kind, state, transaction_id, decline, order, at }: ClosedEntry): object {
  const { card } = readToken(order.token)
  return {
    psp_transaction_id: transaction_id,
    psp_transaction_type: kind === 'charge' ? 'sale' : 'refund',
    psp_status: state === 'succeeded' ? 'approved' : 'declined',
    psp_date: at,
    psp_card_token_type: 'saved_card',
    psp_reason_message: decline?.message ?? null,
    psp_reason_type: decline?.type ?? null,
    psp_reason_code: decline?.code ?? null,
    psp_reason_decline_type: decline?.declineType ?? null,
    pm_type: 'card',
    network: card.network,
    authorization_type: 'final',
    is_vaulted: true,
    threeds_challenge_issued: false,
    pm_data_first6: card.first6,
    pm_data_last4: card.last4,
    pm_data_expiration_date: '12/2034',
    pm_data_is_network_tokenized: false,
    pm_data_bin_account_funding_type: 'credit',
    pm_data_bin_account_number_type: 'pan',
    pm_data_bin_issuer_name: 'Bank of Paper',
    pm_data_bin_issuer_country_code: 'US',
    pm_data_bin_issuer_currency_code: 'USD',
    pm_data_bin_prepaid_reloadable_indicator: 'not_applicable',
    pm_data_bin_product_code: card.productCode,
    pm_data_bin_product_name: card.productName,
    pm_data_bin_product_usage_type: 'consumer',
    pm_data_bin_regional_restriction: 'none',
  }
}
