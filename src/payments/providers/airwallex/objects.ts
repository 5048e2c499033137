// Parses Airwallex's PaymentIntents and refunds. Amounts are JSON numbers in major units.
import { formatMinor, readAnyCurrency, readDecimal, toMinor } from '../../../lib/money.ts'
import type { Sum } from '../outcomes.ts'
import { noDetails, type PaymentDetails, ProviderError } from '../provider.ts'
import { fieldsOf, textOf } from '../transport.ts'
import type { Fields } from './api.ts'

export interface Intent {
  id: string
  status: string
  key: string | null
  reference: string | null
  asked: Sum
  captured: Sum
  customer: string | null
  consent: string | null
  /** The consent to charge, from our metadata. */
  card: string | null
  /** The latest attempt to charge; {} without one. */
  attempt: Fields
  at: string
}

export function readIntent(body: Fields): Intent {
  const { id, status } = body
  if (typeof id !== 'string' || typeof status !== 'string')
    throw new ProviderError('returned an object that is not a payment')
  return {
    ...{ id, status, ...ownIds(body), asked: sumIn(body, 'amount') },
    captured: body['captured_amount'] === undefined ? sumIn(body, 'amount') : sumIn(body, 'captured_amount'),
    customer: textOf(body['customer_id']),
    consent: textOf(body['payment_consent_id']),
    card: textOf(fieldsOf(body['metadata'])['tundish_card']),
    attempt: fieldsOf(body['latest_payment_attempt']),
    at: timeOf(body['created_at']),
  }
}

/** Our key and our id of the order or refund. */
export function ownIds(body: Fields): { key: string | null; reference: string | null } {
  const { tundish_key, tundish_order, tundish_refund } = fieldsOf(body['metadata'])
  return { key: textOf(tundish_key), reference: textOf(tundish_order) ?? textOf(tundish_refund) }
}

export function sumIn(body: Fields, field: string): Sum {
  const currencyCode = readAnyCurrency(String(body['currency']))
  const amount = readDecimal(String(body[field]))
  const amountMinor = currencyCode && amount ? toMinor(amount, currencyCode) : undefined
  if (!currencyCode || amountMinor === undefined || amountMinor < 0n)
    throw new ProviderError(`returned ${String(body[field])} ${String(body['currency'])}, which cannot be converted`)
  return { amountMinor, currencyCode }
}

const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown }

/** A JSON number in major units with exactly these digits. */
export const majorNumber = (amountMinor: bigint, currencyCode: string) =>
  rawJSON(formatMinor(amountMinor, currencyCode))

/** `2023-01-13T07:32:05+0000` in the form of RFC 3339. */
export function timeOf(value: unknown): string {
  const at = new Date(String(value).replace(/([+-]\d\d)(\d\d)$/, '$1:$2'))
  if (Number.isNaN(at.getTime())) throw new ProviderError('returned no time')
  return at.toISOString()
}

export function detailsOf({ id, status, attempt, at }: Intent, hasFailed: boolean): PaymentDetails {
  const method = fieldsOf(attempt['payment_method'])
  const card = fieldsOf(method['card'])
  const month = textOf(card['expiry_month'])
  return {
    ...noDetails,
    ...{
      psp_transaction_id: id,
      psp_transaction_type: 'sale',
      psp_status: hasFailed ? 'FAILED' : status,
      is_vaulted: true,
    },
    psp_date: attempt['created_at'] === undefined ? at : timeOf(attempt['created_at']),
    ...{ pm_type: textOf(method['type']), network: textOf(card['brand']), pm_data_last4: textOf(card['last4']) },
    pm_data_first6: textOf(card['bin'])?.slice(0, 6) ?? null,
    pm_data_expiration_date: month && `${month}/${String(card['expiry_year'])}`,
    ...(hasFailed && reasonOf(attempt)),
  }
}

// Airwallex says with the network's advice code whether a retry may help: 03 and 21 are "do not try again".
const NEVER_AGAIN = new Set<unknown>(['03', '21'])

function reasonOf(attempt: Fields) {
  const code = textOf(attempt['failure_code']) ?? (isAuthentication(attempt) ? AUTHENTICATION : 'unknown')
  return {
    psp_reason_code: code,
    psp_reason_type: textOf(attempt['status']) ?? 'FAILED',
    psp_reason_message: `The payment failed: ${code}.`,
    psp_reason_decline_type: NEVER_AGAIN.has(attempt['merchant_advice_code']) ? 'hard' : 'soft',
  }
}

const isAuthentication = ({ status }: Fields) => /^AUTHENTICATION/.test(String(status))
const AUTHENTICATION = 'authentication_required'
