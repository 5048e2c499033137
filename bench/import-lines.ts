// Records for an import: people with sessions, subscriptions and transactions, as a source would write them.
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'

const FUNNELS = 20
const PRODUCTS = 50
const STATUSES = ['active', 'active', 'active', 'trialing', 'cancelled', 'expired']
const START_MS = Date.UTC(2024, 0)
const CHUNK = 1000

const at = (n: number) => new Date(START_MS + n * 7000).toISOString()
const id = (prefix: string, n: number) => `${prefix}_${String(n).padStart(12, '0')}`

/** Writes this many lines: funnels, products, then ten records for each person. */
export async function writeLines(file: string, records: number): Promise<void> {
  const out = createWriteStream(file)
  let chunk: string[] = []
  for (let n = 0; n < records; n += 1) {
    chunk.push(JSON.stringify(recordOf(n)))
    if (chunk.length < CHUNK && n < records - 1) continue
    if (!out.write(`${chunk.join('\n')}\n`)) await new Promise<void>((resolve) => out.once('drain', resolve))
    chunk = []
  }
  out.end()
  await finished(out)
}

function recordOf(n: number): { record: string; data: object } {
  if (n < FUNNELS) return { record: 'funnel', data: { id: `funnel_${n}`, title: `Funnel ${n}`, created_at: at(0) } }
  if (n < FUNNELS + PRODUCTS) {
    const product = n - FUNNELS
    const data = { id: `product_${product}`, name: `Product ${product}`, status: 'active', created_at: at(0) }
    return { record: 'product', data }
  }
  const person = Math.floor((n - FUNNELS - PRODUCTS) / 10)
  const part = (n - FUNNELS - PRODUCTS) % 10
  const shared = { created_at: at(n), updated_at: at(n), funnel_id: `funnel_${person % FUNNELS}` }
  if (part === 0) return { record: 'profile', data: { id: id('pro', person), ...shared, ...profileOf(person) } }
  const profile_id = id('pro', person)
  if (part === 1) return { record: 'session', data: { id: id('ses', person), ...shared, profile_id, ...VISIT } }
  const refers = { ...shared, profile_id, session_id: id('ses', person) }
  return part < 6
    ? { record: 'subscription', data: { id: id('sub', n), ...refers, ...subscriptionOf(n) } }
    : { record: 'transaction', data: { id: id('trn', n), ...refers, currency: 'USD', price: 1999, price_usd: 1999 } }
}

const profileOf = (n: number) => ({ email: `person${n}@example.com`, country: 'DE', locale: 'de' })
const VISIT = {
  funnel_version: 3,
  locale: 'de',
  origin: 'https://example.com/quiz?utm_source=x',
  user_agent: 'Mozilla/5.0',
  query_params: { utm_source: 'x' },
  ip: '192.0.2.1',
  country: 'DE',
  timezone: 'Europe/Berlin',
}
const subscriptionOf = (n: number) => ({
  psp_id: `psp_${n}`,
  status: STATUSES[n % STATUSES.length],
  renews: true,
  payment_provider: 'stripe',
  billing_interval: 'month',
  billing_interval_count: 1,
  price: 1999,
  currency: 'USD',
  price_usd: 1999,
  product_id: `product_${n % PRODUCTS}`,
  period_starts_at: at(n),
  period_ends_at: at(n + 370_000),
})
