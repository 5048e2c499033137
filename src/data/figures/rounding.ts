// Numbers of figures without floating-point errors.
import { allCurrencies } from '../../lib/currencies.ts'

/** How many minor units one of a currency has: stored amounts are in minor units. */
export const minorUnitsOf = (currency: string) => 10 ** (allCurrencies.get(currency) ?? 2)

/** Stored values have at most six decimals. */
export const rounded = (value: number) => Math.round(value * 1e6) / 1e6

/** A part of a whole; null without a whole. */
export const share = (part: number | null, whole: number | null): number | null =>
  whole && whole > 0 ? rounded((part ?? 0) / whole) : null

/** An amount without a value in the reporting currency, in its own, in major units. */
export interface Unvalued {
  currency: string
  amount: number
}

/** The amounts of rows with a currency each, in minor units in this column; those of 0 are left out. */
export const unvaluedOf = (rows: readonly Record<string, string | null>[] = [], column: string): Unvalued[] =>
  rows
    .map((row) => ({
      currency: row['currency']!,
      amount: rounded(Number(row[column]) / minorUnitsOf(row['currency']!)),
    }))
    .filter(({ amount }) => amount !== 0)
