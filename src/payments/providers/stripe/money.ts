// Converts between ISO 4217 minor units and Stripe's, which differ for some currencies, and checks Stripe's limits.
import { currencies } from '../../../lib/currencies.ts'
import { formatMinor } from '../../../lib/money.ts'

// The currencies for card payments on Stripe's page "Supported currencies", by the number of decimals of Stripe's amounts.
const DECIMALS: Record<number, string> = {
  0: 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF',
  2: `AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF CNY COP CRC CVE
      CZK DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR ISK JMD KES KGS KHR KYD
      KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP
      PKR PLN QAR RON RSD RUB SAR SBD SCR SEK SGD SHP SLE SOS SRD SZL THB TJS TOP TRY TTD TWD TZS UAH USD UYU UZS WST XCD
      XCG YER ZAR ZMW`,
  3: 'BHD JOD KWD OMR TND',
}
// Historic currencies that Stripe took while they were legal tender, each with two decimals.
const HISTORIC = 'BGN EEK HRK LTL LVL MRO SLL STD VEF ZMK'
// UGX is missing because Stripe's pages contradict each other: one gives it no decimals, another two.

/** Currencies whose amounts must be multiples of more than Stripe's minor unit: their last digits must be 0. */
const STEP: Record<string, bigint> = { ISK: 100n, BHD: 10n, JOD: 10n, KWD: 10n, OMR: 10n, TND: 10n }

/** Decimals of ISO 4217 where they differ from Stripe's. */
const ISO_DECIMALS: Record<string, number> = { ISK: 0, MGA: 2 }

// Stripe's smallest amounts, in its minor units. For other currencies Stripe converts 0.50 USD at a rate we do not know.
const SMALLEST: Record<string, bigint> = {
  AED: 200n,
  AUD: 50n,
  BRL: 50n,
  CAD: 50n,
  CHF: 50n,
  CZK: 1500n,
  DKK: 250n,
  EUR: 50n,
  GBP: 30n,
  HKD: 400n,
  HUF: 17500n,
  INR: 50n,
  JPY: 50n,
  MXN: 1000n,
  MYR: 200n,
  NOK: 300n,
  NZD: 50n,
  PLN: 200n,
  RON: 200n,
  SEK: 300n,
  SGD: 50n,
  THB: 1000n,
  USD: 50n,
}
const LARGEST = 99_999_999n

const decimals = new Map(
  Object.entries({ ...DECIMALS, 2: `${DECIMALS[2]} ${HISTORIC}` }).flatMap(([places, codes]) =>
    codes.split(/\s+/).map((code): [string, number] => [code, Number(places)]),
  ),
)

/** The currencies that Stripe can charge, in capitals. */
export const stripeCurrencies: readonly string[] = [...decimals.keys()].filter((code) => currencies.has(code)).sort()

/** Whether amounts can be converted, also those of a historic currency. */
export const isConvertible = (currencyCode: string): boolean => decimals.has(currencyCode)

/** A sentence that says why Stripe cannot pay back this amount; undefined if it can. `amountMinor` is in units of ISO 4217. */
export function refundRefusal(amountMinor: bigint, currencyCode: string): string | undefined {
  if (!isConvertible(currencyCode)) return `currency_code ${currencyCode} cannot be refunded through Stripe.`
  return toStripeAmount(amountMinor, currencyCode) === undefined ? notAStep(currencyCode) : undefined
}

function notAStep(currencyCode: string): string {
  const step = formatMinor(fromStripeAmount(STEP[currencyCode] ?? 1n, currencyCode)!, currencyCode)
  return `amount must be a multiple of ${step} ${currencyCode}, which is Stripe's smallest step.`
}

/** A sentence that says why Stripe cannot charge this amount; undefined if it can. `amountMinor` is in units of ISO 4217. */
export function refusal(amountMinor: bigint, currencyCode: string): string | undefined {
  if (!isConvertible(currencyCode) || !currencies.has(currencyCode))
    return `currency_code ${currencyCode} cannot be charged through Stripe.`
  const amount = toStripeAmount(amountMinor, currencyCode)
  if (amount === undefined) return notAStep(currencyCode)
  if (amount > LARGEST) return `amount must be at most ${shown(largest(currencyCode), currencyCode)} with Stripe.`
  const smallest = SMALLEST[currencyCode] ?? 0n
  return amount < smallest ? `amount must be at least ${shown(smallest, currencyCode)} with Stripe.` : undefined
}

/** Converts minor units of ISO 4217 to Stripe's; undefined if that is not exact or Stripe does not have the currency. */
export function toStripeAmount(amountMinor: bigint, currencyCode: string): bigint | undefined {
  const shift = shiftOf(currencyCode)
  if (shift === undefined) return undefined
  const amount = shift >= 0 ? amountMinor * 10n ** BigInt(shift) : divideExactly(amountMinor, 10n ** BigInt(-shift))
  if (amount === undefined || amount % (STEP[currencyCode] ?? 1n) !== 0n) return undefined
  return amount
}

/**
 * Converts Stripe's minor units to those of ISO 4217; undefined if that is not exact. It does not check `STEP`, which limits
 * only the amounts that are sent to Stripe.
 */
export function fromStripeAmount(amount: bigint, currencyCode: string): bigint | undefined {
  const shift = shiftOf(currencyCode)
  if (shift === undefined) return undefined
  return shift >= 0 ? divideExactly(amount, 10n ** BigInt(shift)) : amount * 10n ** BigInt(-shift)
}

/** The nearest amount in Stripe's units that can be converted to those of ISO 4217. */
export function nearestStripeAmount(amount: number, currencyCode: string): number {
  const step = 10 ** Math.max(0, shiftOf(currencyCode) ?? 0)
  return Math.round(amount / step) * step
}

/** The number of decimals of Stripe's amounts minus that of ISO 4217; undefined for a currency that cannot be converted. */
export function shiftOf(currencyCode: string): number | undefined {
  const places = decimals.get(currencyCode)
  return places === undefined ? undefined : places - (ISO_DECIMALS[currencyCode] ?? places)
}

function largest(currencyCode: string): bigint {
  return LARGEST - (LARGEST % (STEP[currencyCode] ?? 1n))
}

function shown(amount: bigint, currencyCode: string): string {
  return `${formatMinor(fromStripeAmount(amount, currencyCode)!, currencyCode)} ${currencyCode}`
}

function divideExactly(dividend: bigint, divisor: bigint): bigint | undefined {
  return dividend % divisor === 0n ? dividend / divisor : undefined
}
