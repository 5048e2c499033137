// Stripe's minor units: every currency of ISO 4217 against the rules that Stripe publishes, then the odd ones by name.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { currencies } from '../../../../src/lib/currencies.ts'
import {
  fromStripeAmount,
  refusal,
  stripeCurrencies,
  toStripeAmount,
} from '../../../../src/payments/providers/stripe/money.ts'

const words = (text: string) => new Set(text.split(' '))
// Written here a second time, from Stripe's page, so that a slip in the adapter's table shows.
const zeroDecimal = words('BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF')
const threeDecimal = words('BHD JOD KWD OMR TND')
const notCharged = words(
  'BHN BOV BTN CHE CHW CLF COU CUP ERN GHS IQD IRR KPW LYD MRU MXV SDG SSP STN SVC SYP TMT USN UYI UYW VED VES XAD ZWG UGX',
)

for (const [code, places] of currencies) {
  test(`${code} with ${places} decimals goes to Stripe and back exactly, or is refused`, () => {
    const charged = stripeCurrencies.includes(code)
    assert.equal(charged, !notCharged.has(code))
    for (const minor of [1n, 5n, 10n, 99n, 100n, 101n, 1000n, 1050n, 12_340n, 999_900n]) {
      const sent = toStripeAmount(minor, code)
      const expected = charged ? expectedAmount(minor, code, places) : undefined
      assert.equal(sent, expected, `${minor} ${code}`)
      if (sent !== undefined) assert.equal(fromStripeAmount(sent, code), minor)
      else assert.match(refusal(minor, code) ?? '', /^(amount|currency_code) .*\.$/)
    }
  })
}

/** The value in major units is the same on both sides; steps that Stripe does not take are refused. */
function expectedAmount(minor: bigint, code: string, isoPlaces: number): bigint | undefined {
  const places = zeroDecimal.has(code) ? 0 : threeDecimal.has(code) ? 3 : 2
  const scaled = minor * 1000n * 10n ** BigInt(places)
  const divisor = 1000n * 10n ** BigInt(isoPlaces)
  if (scaled % divisor !== 0n) return undefined
  const amount = scaled / divisor
  if (threeDecimal.has(code) && amount % 10n !== 0n) return undefined
  return amount
}

const byName: [what: string, minor: bigint, code: string, sent: bigint | undefined][] = [
  ['1,500 ISK is sent with two decimals', 1500n, 'ISK', 150_000n],
  ['10.00 MGA is sent as 10', 1000n, 'MGA', 10n],
  ['10.20 MGA is refused', 1020n, 'MGA', undefined],
  ['1.230 KWD is sent as 1230', 1230n, 'KWD', 1230n],
  ['1.234 KWD is refused, not rounded', 1234n, 'KWD', undefined],
  ['UGX is refused', 5000n, 'UGX', undefined],
  ['500 JPY is sent as 500', 500n, 'JPY', 500n],
  ['10.50 USD is sent as 1050', 1050n, 'USD', 1050n],
  ['175 HUF is sent with two decimals', 17_500n, 'HUF', 17_500n],
]
for (const [what, minor, code, sent] of byName) {
  test(what, () => assert.equal(toStripeAmount(minor, code), sent))
}

test('a currency that is no longer legal tender is converted in history, and cannot be charged', () => {
  for (const code of ['BGN', 'HRK', 'ANG']) {
    assert.equal(fromStripeAmount(1050n, code), 1050n)
    assert.equal(refusal(1050n, code), `currency_code ${code} cannot be charged through Stripe.`)
    assert.ok(!stripeCurrencies.includes(code))
  }
})

const limits: [minor: bigint, code: string, sentence: string | undefined][] = [
  [50n, 'USD', undefined],
  [49n, 'USD', 'amount must be at least 0.50 USD with Stripe.'],
  [49n, 'JPY', 'amount must be at least 50 JPY with Stripe.'],
  [17_499n, 'HUF', 'amount must be at least 175.00 HUF with Stripe.'],
  [99_999_999n, 'USD', undefined],
  [100_000_000n, 'USD', 'amount must be at most 999999.99 USD with Stripe.'],
  [999_999n, 'ISK', undefined],
  [1_000_000n, 'ISK', 'amount must be at most 999999 ISK with Stripe.'],
  [99_999_990n, 'KWD', undefined],
  [100_000_000n, 'KWD', 'amount must be at most 99999.990 KWD with Stripe.'],
  [9_999_999_900n, 'MGA', undefined],
  [10_000_000_000n, 'MGA', 'amount must be at most 99999999.00 MGA with Stripe.'],
  [1234n, 'KWD', "amount must be a multiple of 0.010 KWD, which is Stripe's smallest step."],
  [1020n, 'MGA', "amount must be a multiple of 1.00 MGA, which is Stripe's smallest step."],
  [5000n, 'UGX', 'currency_code UGX cannot be charged through Stripe.'],
]
for (const [minor, code, sentence] of limits) {
  test(`${minor} minor units of ${code}: ${sentence ?? 'accepted'}`, () => assert.equal(refusal(minor, code), sentence))
}

test('an amount of Stripe that ISO cannot hold is not rounded', () => {
  assert.equal(fromStripeAmount(150_050n, 'ISK'), undefined)
  assert.equal(fromStripeAmount(150_000n, 'ISK'), 1500n)
  assert.equal(fromStripeAmount(10n, 'MGA'), 1000n)
})
