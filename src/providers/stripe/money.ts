// Amounts in Stripe's API. Its minor units differ from ISO 4217, so this table is separate.
import { formatMinor } from '../../lib/money.ts'

// The currencies for cards from Stripe's page "Supported currencies", by the decimals of Stripe's amounts.
const DECIMALS: Record<number, string> = {
  0: 'BIF CLP DJF GNF JPY KMF KRW MGA PYG RWF VND VUV XAF XOF XPF',
  2: `AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BWP BYN BZD CAD CDF CHF CNY COP CRC CVE
      CZK DKK DOP DZD EGP ETB EUR FJD FKP GBP GEL GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR ISK JMD KES KGS KHR KYD
      KZT LAK LBP LKR LRD LSL MAD MDL MKD MMK MNT MOP MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP
      PKR PLN QAR RON RSD RUB SAR SBD SCR SEK SGD SHP SLE SOS SRD SZL THB TJS TOP TRY TTD TWD TZS UAH USD UYU UZS WST XCD
      XCG YER ZAR ZMW`,
  3: 'BHD JOD KWD OMR TND',
}
// Without UGX: one page of Stripe gives it no decimals, another two.

/** Currencies whose amounts Stripe takes in coarser steps than it counts them: two empty decimals, a last digit of 0. */
const STEP: Record<string, bigint> = { ISK: 100n, BHD: 10n, JOD: 10n, KWD: 10n, OMR: 10n, TND: 10n }

/** Decimals of ISO 4217 where they differ from Stripe's. */
const ISO_DECIMALS: Record<string, number> = { ISK: 0, MGA: 2 }

// Stripe's smallest amounts, in its minor units; for other currencies it converts 0.50 USD, which we cannot know.
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
  Object.entries(DECIMALS).flatMap(([places, codes]) =>
    codes.split(/\s+/).map((code): [string, number] => [code, Number(places)]),
  ),
)

/** The convertible currencies, in capitals. */
export const stripeCurrencies: readonly string[] = [...decimals.keys()].sort()

/** Why Stripe cannot charge this amount, as a sentence; undefined if it can. `amountMinor` is in units of ISO 4217. */
export function refusal(amountMinor: bigint, currencyCode: string): string | undefined {
  if (!decimals.has(currencyCode)) return `currency_code ${currencyCode} cannot be charged through Stripe.`
  const amount = toStripeAmount(amountMinor, currencyCode)
  if (amount === undefined) {
    const step = formatMinor(fromStripeAmount(STEP[currencyCode] ?? 1n, currencyCode)!, currencyCode)
    return `amount must be a multiple of ${step} ${currencyCode}, which is Stripe's smallest step.`
  }
  if (amount > LARGEST) return `amount must be at most ${shown(largest(currencyCode), currencyCode)} with Stripe.`
  const smallest = SMALLEST[currencyCode] ?? 0n
  return amount < smallest ? `amount must be at least ${shown(smallest, currencyCode)} with Stripe.` : undefined
}

/** Minor units of ISO 4217 as Stripe's, exactly; undefined where Stripe has no such amount or not the currency. */
export function toStripeAmount(amountMinor: bigint, currencyCode: string): bigint | undefined {
  const shift = shiftOf(currencyCode)
  if (shift === undefined) return undefined
  const amount = shift >= 0 ? amountMinor * 10n ** BigInt(shift) : divideExactly(amountMinor, 10n ** BigInt(-shift))
  if (amount === undefined || amount % (STEP[currencyCode] ?? 1n) !== 0n) return undefined
  return amount
}

/**
 * Stripe's minor units as those of ISO 4217, exactly; undefined where ISO's cannot hold them. Steps do not count here: what
 * Stripe reports is what it is.
 */
export function fromStripeAmount(amount: bigint, currencyCode: string): bigint | undefined {
  const shift = shiftOf(currencyCode)
  if (shift === undefined) return undefined
  return shift >= 0 ? divideExactly(amount, 10n ** BigInt(shift)) : amount * 10n ** BigInt(-shift)
}

/** By how many decimals Stripe's amounts are finer than ISO's. */
function shiftOf(currencyCode: string): number | undefined {
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
