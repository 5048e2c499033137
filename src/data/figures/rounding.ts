// Numbers of figures without floating-point errors.
import { allCurrencies } from '../../lib/currencies.ts'

/** How many minor units one of a currency has: stored amounts are in minor units. */
export const minorUnitsOf = (currency: string) => 10 ** (allCurrencies.get(currency) ?? 2)

/** Stored values have at most six decimals. */
export const rounded = (value: number) => Math.round(value * 1e6) / 1e6

/** A part of a whole; null without a whole. */
export const share = (part: number | null, whole: number | null): number | null =>
  whole && whole > 0 ? rounded((part ?? 0) / whole) : null
