// The amounts that Stripe accepts. Written from its page "Supported currencies" independently of the adapter's table, to test it.
import { invalid } from './errors.ts'

const MAX_AMOUNT = 99_999_999
const ZERO_DECIMALS = words('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf')
// Sent with two decimals that must be zero, although they have none.
const EMPTY_DECIMALS = words('isk ugx')
const THREE_DECIMALS = words('bhd jod kwd omr tnd')
const OTHERS =
  words(`aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd bwp byn bzd cad cdf chf
  cny cop crc cve czk dkk dop dzd egp etb eur fjd fkp gbp gel gip gmd gtq gyd hkd hnl htg huf idr ils inr jmd kes kgs
  khr kyd kzt lak lbp lkr lrd lsl mad mdl mkd mmk mnt mop mur mvr mwk mxn myr mzn nad ngn nio nok npr nzd pab pen pgk
  php pkr pln qar ron rsd rub sar sbd scr sek sgd shp sle sos srd std szl thb tjs top try ttd twd tzs uah usd uyu uzs
  wst xcd xcg yer zar zmw`)
export const CURRENCIES = [...ZERO_DECIMALS, ...EMPTY_DECIMALS, ...THREE_DECIMALS, ...OTHERS].sort()
const SMALLEST: Record<string, number> = {
  usd: 50,
  eur: 50,
  gbp: 30,
  jpy: 50,
  chf: 50,
  dkk: 250,
  nok: 300,
  sek: 300,
  huf: 17500,
}

/** How many decimals Stripe's amounts in a currency have. */
export function decimalsOf(currency: string): number {
  return ZERO_DECIMALS.includes(currency) ? 0 : THREE_DECIMALS.includes(currency) ? 3 : 2
}

/** Throws Stripe's error for an amount or a currency that it does not accept. */
export function checkAmount(amount: number, currency: string): void {
  if (!CURRENCIES.includes(currency)) {
    throw invalid(`Invalid currency: ${currency}.`, { param: 'currency' })
  }
  if (amount < 1) {
    throw invalid('This value must be greater than or equal to 1.', {
      code: 'parameter_invalid_integer',
      param: 'amount',
    })
  }
  if (amount > MAX_AMOUNT) {
    throw invalid('Amount must be no more than 99,999,999', { code: 'amount_too_large', param: 'amount' })
  }
  if (EMPTY_DECIMALS.includes(currency) && amount % 100 !== 0) {
    throw invalid(`Invalid amount for ${currency}: must be evenly divisible by 100.`, { param: 'amount' })
  }
  if (THREE_DECIMALS.includes(currency) && amount % 10 !== 0) {
    throw invalid(`Invalid amount for ${currency}: the last digit must be 0.`, { param: 'amount' })
  }
  if (amount < (SMALLEST[currency] ?? 1)) {
    throw invalid('Amount is below the minimum charge amount.', { code: 'amount_too_small', param: 'amount' })
  }
}

function words(text: string): string[] {
  return text.split(/\s+/)
}
