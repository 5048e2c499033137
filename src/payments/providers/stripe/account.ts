// Reads the account that a secret key belongs to: its mode, its country and the currencies that it can charge.
import type { AccountDescription, NotBegun, Unknown } from '../outcomes.ts'
import { causeOfRejection, fieldsOf, textOf } from '../transport.ts'
import { pathOf, responseError, type StripeApi } from './api.ts'
import { stripeCurrencies } from './money.ts'
import { LISTS, notPermitted } from './permissions.ts'

/** Returns `not_begun` with the cause `credentials` if the key is wrong, revoked, or lacks the permission to read the account. */
export async function describeAccount(
  api: StripeApi,
  signal: AbortSignal,
): Promise<AccountDescription | NotBegun | Unknown> {
  const account = await api.get('/v1/account', {}, signal)
  const balance = await api.get('/v1/balance', {}, signal)
  const responses = { '/v1/account': account, '/v1/balance': balance }
  for (const [path, { status, error }] of Object.entries(responses)) {
    const cause = causeOfRejection(status)
    const problem = status === 403 ? notPermitted(path, error) : responseError(status, error)
    if (cause) return { outcome: 'not_begun', why: problem.message, cause }
    if (status !== 200) throw problem
  }
  const { id, country, charges_enabled, settings, business_profile } = account.body
  const names = [fieldsOf(fieldsOf(settings)['dashboard'])['display_name'], fieldsOf(business_profile)['name']]
  return {
    outcome: 'described',
    accountId: String(id),
    displayName: names.map(textOf).find((name) => name !== null) ?? null,
    country: textOf(country),
    isSandbox: balance.body['livemode'] !== true,
    chargesEnabled: charges_enabled === true,
    currencies: await currenciesOf(api, textOf(country), signal),
    missingPermissions: await missingPermissions(api, signal),
  }
}

/** The currencies that Stripe lists for the country, or all convertible ones if Stripe has no list for it. */
async function currenciesOf(api: StripeApi, country: string | null, signal: AbortSignal): Promise<string[]> {
  if (country === null) return [...stripeCurrencies]
  const { status, body } = await api.get(pathOf('country_specs', country), {}, signal)
  const listed = status === 200 ? body['supported_payment_currencies'] : undefined
  if (!Array.isArray(listed)) return [...stripeCurrencies]
  const codes = new Set(listed.map((code) => String(code).toUpperCase()))
  return stripeCurrencies.filter((code) => codes.has(code))
}

/** The lists that a restricted key may not read. Permissions to write cannot be tried without writing. */
async function missingPermissions(api: StripeApi, signal: AbortSignal): Promise<string[]> {
  if (!api.isRestricted) return []
  const read = async (path: string) => ({ path, response: await api.get(path, { limit: 1 }, signal) })
  const all = await Promise.all(Object.keys(LISTS).map(read))
  return all
    .filter(({ response }) => response.status === 403)
    .map(({ path, response }) => notPermitted(path, response.error).permission)
}
