// Parses the responses of the provider simulator. An unexpected response is an error, never an outcome.
import { MAX_MINOR, readCurrency } from '../../lib/money.ts'
import type { Conflict, NotFound, Refused, Settled } from './outcomes.ts'
import { type Movement, noDetails, type PaymentDetails, ProviderError, type RefundAtProvider } from './provider.ts'
import { fieldsOf, type HttpResponse } from './transport.ts'

export type Verdict = Settled | Refused | NotFound | Conflict

/** Accepts only explicit outcomes, because a 404 of a proxy in between does not mean that the key is unknown. */
export function readVerdict({ status, body }: HttpResponse): Verdict {
  const { outcome, reference, amount_minor, currency_code, details } = fieldsOf(body)
  if (status === 404 && outcome === 'not_found') return { outcome }
  if (status === 409 && outcome === 'conflict') return { outcome }
  if (status !== 200) throw new ProviderError(`returned status ${status}`)
  if (outcome === 'refused') return { outcome }
  if (outcome !== 'succeeded' && outcome !== 'failed') throw new ProviderError('returned no outcome')
  if (typeof reference !== 'string' || typeof currency_code !== 'string' || !isDigits(amount_minor)) {
    throw new ProviderError('returned an outcome without reference, amount or currency')
  }
  // No order can have this amount, so settling with it would fail at every attempt.
  if (!isPayable(BigInt(amount_minor), currency_code))
    throw new ProviderError('returned an outcome with an impossible amount')
  return {
    outcome,
    reference,
    amountMinor: BigInt(amount_minor),
    currencyCode: currency_code,
    details: readDetails(fieldsOf(details)),
  }
}

export function readRefunds({ status, body }: HttpResponse): RefundAtProvider[] {
  const { refunds } = fieldsOf(body)
  if (status !== 200 || !Array.isArray(refunds)) throw new ProviderError(`returned status ${status} without a list`)
  return refunds.map((refund): RefundAtProvider => {
    const verdict = readVerdict({ status, body: refund })
    const { key, at } = fieldsOf(refund)
    if (verdict.outcome !== 'succeeded' || typeof key !== 'string' || typeof at !== 'string') {
      throw new ProviderError('listed a refund that cannot be read')
    }
    const { outcome, reference, amountMinor, currencyCode, details } = verdict
    const transactionId = details.psp_transaction_id
    if (transactionId === null) throw new ProviderError('listed a refund without its id')
    return { key, reference, transactionId, status: outcome, amountMinor, currencyCode, at, details }
  })
}

function readDetails(fields: Record<string, unknown>): PaymentDetails {
  const known = Object.keys(noDetails).filter((name) => isScalar(fields[name]))
  return { ...noDetails, ...Object.fromEntries(known.map((name) => [name, fields[name]])) }
}

export function readMovement(line: string): Movement {
  const fields = fieldsOf(parse(line))
  const { type, key, reference, amount_minor, currency_code, psp_transaction_id, at } = fields
  if (
    (type !== 'charge' && type !== 'refund') ||
    typeof key !== 'string' ||
    typeof reference !== 'string' ||
    !isDigits(amount_minor) ||
    typeof currency_code !== 'string' ||
    typeof psp_transaction_id !== 'string' ||
    typeof at !== 'string'
  ) {
    throw new ProviderError('listed a movement that cannot be read')
  }
  const amountMinor = BigInt(amount_minor)
  const movement = { type, key, reference, amountMinor, currencyCode: currency_code, at } as const
  const charge = fields.charge_transaction_id
  return {
    ...movement,
    transactionId: psp_transaction_id,
    ...(typeof charge === 'string' && { chargeTransactionId: charge }),
  }
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line.replace(/,$/, ''))
  } catch {
    throw new ProviderError('listed something that is not JSON')
  }
}

function isPayable(amountMinor: bigint, currencyCode: string): boolean {
  return amountMinor > 0n && amountMinor <= MAX_MINOR && readCurrency(currencyCode) === currencyCode
}

function isDigits(value: unknown): value is string {
  return typeof value === 'string' && /^[0-9]{1,30}$/.test(value)
}

function isScalar(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'boolean'
}
