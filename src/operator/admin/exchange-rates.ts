// The exchange rates of an organization: how new they are, and whether they are fetched.
import { Type } from '../../lib/shape/schema.ts'
import { instantFromPg } from '../../lib/time.ts'
import { reading } from './operation.ts'

const get = reading({
  id: 'getExchangeRates',
  right: 'figures',
  command: 'rates show',
  path: '/organizations/:organization_id/exchange-rates',
  tag: 'Finance',
  summary: 'Get how new the exchange rates of an organization are',
  response: Type.Named('ExchangeRates', {
    organization_id: Type.String({ description: 'The organization.' }),
    newest_day: Type.OrNull(Type.String(), 'The newest day with rates; null if none are loaded.'),
    source: Type.OrNull(Type.String(), 'The host that they are fetched from; null if they are loaded by hand.'),
    fetched_at: Type.OrNull(
      Type.String({ format: 'date-time' }),
      'The last fetch that succeeded, also without a change.',
    ),
    error: Type.OrNull(Type.String(), 'Why the last fetch failed.'),
  }),
  async run({ db, config }, { params }) {
    const id = params.organization_id
    const [rates] = await db.query(RATES, [id])
    const url = config.ratesUrl
    const [fetch] = url === undefined ? [] : await db.query(FETCH, [url])
    return {
      organization_id: id,
      newest_day: rates?.day ?? null,
      source: url === undefined ? null : new URL(url).host,
      fetched_at: fetch?.fetched_at ? instantFromPg(fetch.fetched_at) : null,
      error: fetch?.error ?? null,
    }
  },
})

const RATES = `select max(day)::text as day from exchange_rates where organization_id = $1 and currency_code = 'USD'`
const FETCH = 'select fetched_at, error from rates_fetch where url = $1'

export const exchangeRates = [get] as const
