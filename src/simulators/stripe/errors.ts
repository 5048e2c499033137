// Errors in the form of Stripe's API: a status and an `error` object.
import { DialectError } from '../dialect.ts'

/** The fields of the `error` object. */
export interface ErrorBody {
  type: 'api_error' | 'card_error' | 'idempotency_error' | 'invalid_request_error'
  message: string
  code?: string
  param?: string
  decline_code?: string
  advice_code?: string
  charge?: string
  payment_intent?: object
  payment_method?: object
}

/** Ends a call with this response. */
export class StripeError extends DialectError<ErrorBody> {
  /** Kept under the idempotency key and replayed; false where the call was turned away before it began. */
  readonly isOutcome: boolean

  constructor(status: number, body: ErrorBody, { isOutcome = false } = {}) {
    super(status, body, body.message)
    this.isOutcome = isOutcome
  }
}

export function invalid(
  message: string,
  more: { code?: string; param?: string; payment_intent?: object } = {},
): StripeError {
  return new StripeError(400, { type: 'invalid_request_error', message, ...more }, { isOutcome: true })
}

export function missing(kind: string, id: string, param: string, status: number): StripeError {
  const message = `No such ${kind === 'payment_method' ? 'PaymentMethod' : kind}: '${id}'`
  return new StripeError(status, { type: 'invalid_request_error', code: 'resource_missing', message, param })
}

/** The error of a restricted key without the permission, which Stripe names. */
export function forbidden(permission?: string): StripeError {
  const named = permission ? ` Having the '${permission}' permission would allow this request to continue.` : ''
  const message = `The provided key does not have the required permissions for this endpoint.${named}`
  return new StripeError(403, { type: 'invalid_request_error', message })
}

/** The errors of an unhealthy API: 409, 429 and 5xx. */
export function unavailable(status: number, code?: string): StripeError {
  if (status === 409) {
    const message = 'There is currently another in-progress request using this idempotency key.'
    return new StripeError(409, { type: 'idempotency_error', code: 'idempotency_key_in_use', message })
  }
  if (status === 429) {
    const message =
      code === 'lock_timeout' ? 'This object cannot be accessed right now.' : 'Request rate limit exceeded.'
    return new StripeError(429, { type: 'invalid_request_error', code: code ?? 'rate_limit', message })
  }
  return new StripeError(status, { type: 'api_error', message: 'An unknown error occurred.' }, { isOutcome: true })
}
