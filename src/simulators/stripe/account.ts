// The account: its country and capabilities, its balance, and the currencies of a country.
import type { Stripe } from 'stripe'
import { CURRENCIES } from './amounts.ts'
import { ACCOUNT_CURRENCY } from './balance-transactions.ts'
import { type Dialect, route } from './call.ts'
import { missing } from './errors.ts'

const ID = 'acct_1TundishDialect0'

export const accountRoutes = [
  route('GET', '/v1/account', [], () => account),
  route('GET', '/v1/balance', [], (dialect) => balance(dialect)),
  route('GET', '/v1/country_specs/:id', [], (_dialect, call) => {
    if (call.id !== 'US') throw missing('country_spec', call.id, 'country', 404)
    return countrySpec
  }),
]

/** Another account, which has no objects. */
export const accountOf = (id: string): Stripe.Account => ({ ...account, id })

const account: Stripe.Account = {
  id: ID,
  object: 'account',
  business_type: 'company',
  capabilities: { card_payments: 'active', transfers: 'active' },
  charges_enabled: true,
  controller: { type: 'account' },
  country: 'US',
  created: 1_700_000_000,
  default_currency: ACCOUNT_CURRENCY,
  details_submitted: true,
  email: 'owner@example.com',
  metadata: {},
  payouts_enabled: true,
  type: 'standard',
}

const countrySpec = {
  id: 'US',
  object: 'country_spec',
  default_currency: 'usd',
  supported_bank_account_currencies: { usd: ['US'] },
  supported_payment_currencies: CURRENCIES,
  supported_payment_methods: ['ach', 'card', 'stripe'],
  supported_transfer_countries: ['US'],
  verification_fields: {
    company: { additional: [], minimum: [] },
    individual: { additional: [], minimum: [] },
  },
} satisfies Omit<Stripe.CountrySpec, 'object'> & { object: 'country_spec' }

function balance({ state, livemode }: Dialect): Stripe.Balance {
  const currency = ACCOUNT_CURRENCY
  const amount = state.all('balance_transaction').reduce((sum, { net }) => sum + net, 0)
  const available = [{ amount, currency, source_types: { card: amount } }]
  return { object: 'balance', available, livemode, pending: [{ amount: 0, currency }] }
}
