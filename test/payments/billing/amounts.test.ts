// Every active currency × 0 to 5 decimals × number and text, against an exact model of what may be charged.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { currencies } from '../../../src/lib/currencies.ts'
import { startShop } from '../../support/billing.ts'

const MAX_AMOUNT = 1_000_000n

const { billing, shop } = await startShop()
const user = await shop.customer()
await shop.set('one_off_charge_max_amount', '{"*": "1000000"}')

/** The model: what an amount of `digits` with `scale` decimals is worth in a currency, and what the response must be. */
function expected(digits: bigint, scale: number, units: number): { status: number; amount?: string } {
  let value = digits
  let left = scale
  while (left > 0 && value % 10n === 0n) {
    value /= 10n
    left -= 1
  }
  if (value <= 0n || left > units) return { status: 400 }
  if (value > MAX_AMOUNT * 10n ** BigInt(left)) return { status: 400 }
  return { status: 200, amount: write(value * 10n ** BigInt(units - left), units) }
}

function write(minor: bigint, units: number): string {
  const text = String(minor).padStart(units + 1, '0')
  return units === 0 ? text : `${text.slice(0, -units)}.${text.slice(-units)}`
}

async function send(amount: string, currency: string, customer = user) {
  const key = `${currency} ${amount} ${Math.random()}`
  const body = `{"external_id":"${customer}","amount":${amount},"currency_code":"${currency}","idempotency_key":${JSON.stringify(key)}}`
  const response = await shop.post('/payment/one_off_charge', body)
  const [order] = await billing.db.query(
    'select amount, currency_code from orders where organization_id = $1 and external_id = $2 and idempotency_key = $3',
    [shop.id, customer, key],
  )
  return { response, order }
}

test('every active currency, 0 to 5 decimals, as a number and as a text', async () => {
  const customers = await Promise.all([0, 1, 2, 3, 4, 5].map(() => shop.customer()))
  let n = 0
  for (const [currency, units] of currencies) {
    n++
    await Promise.all(
      customers.map(async (customer, scale) => {
        const digits = BigInt(1 + (n % 9)) * 10n ** BigInt(scale) + BigInt(scale === 0 ? 0 : 1)
        const text = write(digits, scale)
        const form = (n + scale) % 2 === 0 ? text : `"${text}"`
        const { response, order } = await send(form, currency, customer)
        const right = expected(digits, scale, units)
        assert.equal(response.status, right.status, `${form} ${currency}: ${response.text}`)
        assert.deepEqual(order, right.amount && { amount: right.amount, currency_code: currency })
      }),
    )
  }
  assert.equal(n, currencies.size)
})

test('any amount in any form, against the model', async () => {
  const amount = fc.record({
    digits: fc.bigInt({ min: 0n, max: 20_000_000n * 100_000n }),
    scale: fc.integer({ min: 0, max: 9 }),
    currency: fc.constantFrom(...currencies.keys()),
    isText: fc.boolean(),
    lower: fc.boolean(),
  })
  await fc.assert(
    fc.asyncProperty(amount, async ({ digits, scale, currency, isText, lower }) => {
      const text = write(digits, scale)
      const code = lower ? currency.toLowerCase() : currency
      const { response, order } = await send(isText ? `"${text}"` : text, code)
      const right = expected(digits, scale, currencies.get(currency)!)
      assert.equal(response.status, right.status, `${text} ${currency}: ${response.text}`)
      assert.equal(order?.amount, right.amount)
    }),
    { numRuns: 300 },
  )
})
