// Any settings and any request: what is charged is what the rules allow, and what is refused names the first broken rule.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { startShop } from '../../support/billing.ts'
import { addRow } from '../../support/data.ts'

const PLACES: Record<string, number> = { USD: 2, EUR: 2, JPY: 0, KWD: 3 }
/** Merchant accounts and the currencies they name; `unknown` is described by nobody. */
const OFFERS = { all: [], narrow: ['EUR', 'JPY'], unknown: undefined }

type Offer = keyof typeof OFFERS
type Card = 'nobody' | 'unpaid' | 'unsaved' | 'elsewhere' | Offer

interface Case {
  isEnabled: boolean
  limits: Record<string, string | number | null>
  units: number
  places: number
  currency: string
  card: Card
}

const users = new Map<Card, string>([['nobody', 'nobody']])
const { billing, shop } = await startShop()
users.set('unpaid', await shop.customer({ status: 'failed' }))
users.set('unsaved', await shop.customer({ token: null }))
users.set('elsewhere', await shop.customer({ psp: 'elsewhere', merchantId: 'narrow' }))
for (const [offer, currencies] of Object.entries(OFFERS)) {
  users.set(offer as Offer, await shop.customer({ merchantId: offer }))
  if (!currencies) continue
  for (const psp of ['simulator', 'elsewhere'])
    await addRow(billing.db, 'merchant_accounts', { organization_id: shop.id, psp, psp_merchant_id: offer, currencies })
}

/** The rules once more, in whole numbers: thousandths of a unit. */
function expected({ isEnabled, limits, units, places, currency, card }: Case): RegExp | 'succeeded' {
  const thousandths = units * 10 ** (3 - places)
  const most = Math.round(Number(limits[currency] ?? limits['*'] ?? 0) * 1000)
  if (!isEnabled) return /not enabled/
  if (units === 0) return /must be greater than 0/
  if (!(currency in PLACES)) return /is not a currency/
  if (thousandths % 10 ** (3 - PLACES[currency]!) !== 0) return /decimal places in/
  if (thousandths > most) return /, the organization's maximum, got /
  if (card === 'nobody') return /no customer/
  if (card === 'unpaid') return /no successful payment/
  if (card === 'unsaved') return /no saved card/
  if (card === 'elsewhere') return /provider "elsewhere"/
  const offered: string[] = OFFERS[card] ?? []
  return offered.length === 0 || offered.includes(currency) ? 'succeeded' : /is not offered/
}

const maximum = fc.oneof(fc.constantFrom('20', '20.5', '0', '0.005', '1000'), fc.constantFrom(20, 20.5, 0, null))
const cases: fc.Arbitrary<Case> = fc.record({
  isEnabled: fc.constantFrom(true, true, false),
  limits: fc.oneof(
    fc.constant({ '*': '1000' }),
    fc.dictionary(fc.constantFrom('*', 'USD', 'JPY', 'EUR', 'KWD'), maximum, { maxKeys: 3, noNullPrototype: true }),
  ),
  // Around the maxima, with any number of places.
  units: fc.oneof(fc.nat(30), fc.integer({ min: 1999, max: 2052 }), fc.integer({ min: 19_999, max: 20_501 })),
  places: fc.constantFrom(0, 1, 2, 2, 3),
  currency: fc.constantFrom('USD', 'USD', 'EUR', 'EUR', 'JPY', 'KWD', 'ZZZ'),
  card: fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom<Card>('all', 'narrow', 'unknown') },
    { weight: 1, arbitrary: fc.constantFrom<Card>('nobody', 'unpaid', 'unsaved', 'elsewhere') },
  ),
})

test('any combination of rules: charged once, or refused with the first that is broken and nothing stored', async () => {
  const counts = { charged: 0, refused: 0 }
  await fc.assert(
    fc.asyncProperty(cases, async (one) => {
      await billing.db.query(
        'update organizations set one_off_charge_enabled = $2, one_off_charge_max_amount = $3 where id = $1',
        [shop.id, one.isEnabled, JSON.stringify(one.limits)],
      )
      const before = await orders()
      const amount = (one.units / 10 ** one.places).toFixed(one.places)
      const { status, body } = await shop.charge(users.get(one.card)!, { amount, currency_code: one.currency })
      const wanted = expected(one)
      if (wanted === 'succeeded') {
        assert.deepEqual([status, body.checkout_status], [200, 'succeeded'], body.message)
        assert.equal((await billing.ledger(body.order_id)).length, 1)
        counts.charged += 1
      } else {
        assert.equal(status, 400)
        assert.match(body.message, wanted)
        counts.refused += 1
      }
      assert.equal(await orders(), before + (wanted === 'succeeded' ? 1 : 0))
    }),
    { numRuns: 300 },
  )
  assert.ok(counts.charged > 10 && counts.refused > 100, JSON.stringify(counts))
})

async function orders(): Promise<number> {
  const [row] = await billing.db.query('select count(*) as n from orders')
  return Number(row!.n)
}
