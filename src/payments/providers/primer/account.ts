// Tries an API key. Primer has no resource for the account, so neither its id nor its currencies are known.
import type { AccountDescription, NotBegun, Unknown } from '../outcomes.ts'
import { causeOfRejection } from '../transport.ts'
import { type PrimerApi, responseError } from './api.ts'
import { primerCurrencies } from './money.ts'

/** The mode is that of the host which takes the key: a key of the other mode is rejected there. */
export async function describeAccount(
  api: PrimerApi,
  isSandbox: boolean,
  signal: AbortSignal,
): Promise<AccountDescription | NotBegun | Unknown> {
  const { status, error } = await api.get('/payments', { limit: '1' }, signal)
  const cause = causeOfRejection(status)
  if (cause) return { outcome: 'not_begun', why: responseError(status, error).message, cause }
  if (status !== 200) throw responseError(status, error)
  return {
    outcome: 'described',
    accountId: null,
    displayName: null,
    country: null,
    isSandbox,
    chargesEnabled: true,
    currencies: [...primerCurrencies],
    missingPermissions: [],
  }
}
