// The currencies whose amounts can be exchanged with Primer without doubt, and its limits.
import { allCurrencies, currencies } from '../../../lib/currencies.ts'

// Primer's reference has amounts "in minor units" and does not say by which list. These have another number of decimals in the
// list of currencies of Primer's own SDK than in ISO 4217, so a factor of 100 may lie between them: none is charged or read until
// it was tried in a sandbox.
const DOUBTFUL = new Set(
  'AFN ALL AMD COP CRC HUF IDR IQD IRR LBP MGA MMK MUR PKR RSD SOS SYP TZS UZS YER ZMK ZWL'.split(' '),
)
// Missing in the list of the SDK or new, and known to differ between processors.
const UNLISTED = new Set('CLF MRU UYI UYW'.split(' '))

/** More than a JSON number holds exactly; Primer publishes no limit. */
const LARGEST = 999_999_999_999n

/** Whether amounts can be exchanged, also those of a historic currency. */
export const isConvertible = (currencyCode: string): boolean =>
  allCurrencies.has(currencyCode) && !DOUBTFUL.has(currencyCode) && !UNLISTED.has(currencyCode)

/** The currencies that can be charged through Primer, in capitals. */
export const primerCurrencies: readonly string[] = [...currencies.keys()].filter(isConvertible).sort()

/** A sentence that says why Primer cannot be asked to charge this amount; undefined if it can. */
export function refusal(amountMinor: bigint, currencyCode: string): string | undefined {
  if (!currencies.has(currencyCode) || !isConvertible(currencyCode))
    return `currency_code ${currencyCode} cannot be charged through Primer.`
  return refundRefusal(amountMinor, currencyCode)
}

/** The same for a refund. */
export function refundRefusal(amountMinor: bigint, currencyCode: string): string | undefined {
  if (!isConvertible(currencyCode)) return `currency_code ${currencyCode} cannot be refunded through Primer.`
  return amountMinor > LARGEST ? 'amount is more than can be charged through Primer.' : undefined
}
