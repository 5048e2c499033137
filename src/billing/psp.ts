// The refusals of a payment provider that this process does not have, or that keeps failing.
import { ApiError, tryLater } from '../lib/errors.ts'
import type { Provider, Providers } from '../providers/provider.ts'

// What the circuit of a provider rests before it lets somebody try again.
const REST_SECONDS = 5

/** The provider that holds the customer's card, or a 400. */
export async function providerOf(
  providers: Providers,
  organizationId: string,
  { psp, psp_merchant_id }: { psp: string; psp_merchant_id: string | null },
): Promise<Provider> {
  const provider = await providers.of(organizationId, psp, psp_merchant_id)
  if (provider) return provider
  throw new ApiError(
    400,
    'provider_not_set_up',
    `The saved card belongs to the payment provider "${psp}", which is not set up here.`,
  )
}

/** The provider keeps failing: nothing is begun, so the key stays free. */
export function unreachable(): ApiError {
  const sentence = 'The payment provider cannot be reached at the moment: nothing was begun, try again.'
  return tryLater('provider_unavailable', sentence, REST_SECONDS)
}
