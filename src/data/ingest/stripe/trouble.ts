// Which calls to Stripe are repeated, and why, by their responses.
import { ProviderError } from '../../../payments/providers/provider.ts'
import type { Fields, StripeResponse } from '../../../payments/providers/stripe/api.ts'

/** Why the call has to be repeated; undefined if it has not. */
export function troubleOf(
  response: StripeResponse | ProviderError,
  isWhole: (body: Fields) => boolean,
): string | undefined {
  if (response instanceof ProviderError) return response.message
  if (isPassing(response.status)) return `returned status ${response.status}`
  const isOwn = response.status === 200 ? isWhole(response.body) : typeof response.error['type'] === 'string'
  return isOwn ? undefined : `returned status ${response.status} with a body of another form`
}

/** Whether the call may succeed later: too many calls, a lock, or an error at Stripe. */
const isPassing = (status: number) => status === 409 || status === 429 || status >= 500
