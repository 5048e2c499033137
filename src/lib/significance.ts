// Compares two groups: shares by the two-proportion z-test, amounts by Welch's t-test, and sizes by the chi-square test.
import library from 'jstat'

const { normal, studentt, chisquare } = library.jStat

// Of the interval.
const LEVEL = 0.95
/** The probability with which a real difference is to be found. */
const WANTED_POWER = 0.8
const Z = normal.inv(1 - (1 - LEVEL) / 2, 0, 1)

export interface Difference {
  /** That of the second group less that of the first. */
  difference: number
  /** The bounds of the 95 % interval. */
  low: number
  high: number
  p: number
}

export interface Share {
  count: number
  of: number
}

/** Two-sided, with the pooled variance for p and the separate ones for the interval; null without anybody, or without a variance. */
export function compareShares(first: Share, second: Share): Difference | null {
  if (first.of === 0 || second.of === 0) return null
  const [a, b] = [first.count / first.of, second.count / second.of]
  const pooled = (first.count + second.count) / (first.of + second.of)
  const error = Math.sqrt(pooled * (1 - pooled) * (1 / first.of + 1 / second.of))
  if (error === 0) return null
  const margin = Z * Math.sqrt((a * (1 - a)) / first.of + (b * (1 - b)) / second.of)
  const difference = b - a
  return {
    difference,
    low: difference - margin,
    high: difference + margin,
    p: 2 * normal.cdf(-Math.abs(difference / error), 0, 1),
  }
}

export interface Amounts {
  count: number
  sum: number
  sumOfSquares: number
}

/** Two-sided, for unequal variances; null without two in each group, or without a variance. */
export function compareMeans(first: Amounts, second: Amounts): Difference | null {
  if (first.count < 2 || second.count < 2) return null
  const [a, b] = [errorOf(first), errorOf(second)]
  const both = a + b
  if (!(both > 0)) return null
  const freedom = both ** 2 / (a ** 2 / (first.count - 1) + b ** 2 / (second.count - 1))
  const difference = second.sum / second.count - first.sum / first.count
  const error = Math.sqrt(both)
  const margin = studentt.inv(1 - (1 - LEVEL) / 2, freedom) * error
  return {
    difference,
    low: difference - margin,
    high: difference + margin,
    p: 2 * studentt.cdf(-Math.abs(difference / error), freedom),
  }
}

/** The squared standard error of the mean. */
const errorOf = ({ count, sum, sumOfSquares }: Amounts) => (sumOfSquares - sum ** 2 / count) / (count - 1) / count

/** The probability of the sizes, or less likely ones, if each was to be the same; null without at least two groups. */
export function splitProbability(sizes: readonly number[]): number | null {
  const all = sizes.reduce((sum, size) => sum + size, 0)
  if (sizes.length < 2 || all === 0) return null
  const expected = all / sizes.length
  const square = sizes.reduce((sum, size) => sum + (size - expected) ** 2 / expected, 0)
  return 1 - chisquare.cdf(square, sizes.length - 1)
}

/** The probability of finding the difference between two shares in groups of these sizes. */
export function powerOf(a: number, b: number, sizes: readonly [number, number]): number | null {
  const mean = (a + b) / 2
  const each = 1 / sizes[0] + 1 / sizes[1]
  const error = Math.sqrt((a * (1 - a)) / sizes[0] + (b * (1 - b)) / sizes[1])
  if (!(error > 0) || !Number.isFinite(error)) return null
  return normal.cdf((Math.abs(a - b) - Z * Math.sqrt(mean * (1 - mean) * each)) / error, 0, 1)
}

/** How many each group needs so that the difference between two shares is found with `power`; null if there is none. */
export function sizeFor(a: number, b: number, power = WANTED_POWER): number | null {
  if (a === b) return null
  const mean = (a + b) / 2
  const found = normal.inv(power, 0, 1) * Math.sqrt(a * (1 - a) + b * (1 - b))
  return ((Z * Math.sqrt(2 * mean * (1 - mean)) + found) / (a - b)) ** 2
}
