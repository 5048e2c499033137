// Tests of significance are equal to published results of R, scipy and statsmodels.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compareMeans, compareShares, powerOf, sizeFor, splitProbability } from '../../src/lib/significance.ts'

const near = (found: number | null, expected: number, digits: number) =>
  assert.ok(found !== null && Math.abs(found - expected) < 10 ** -digits / 2 + 1e-15, `${found} is not ${expected}`)

const amounts = (all: number[]) => ({
  count: all.length,
  sum: all.reduce((sum, one) => sum + one, 0),
  sumOfSquares: all.reduce((sum, one) => sum + one ** 2, 0),
})

test('Welch as t.test(extra ~ group, data = sleep) of R: t = -1.8608, df = 17.776, p = 0.07939', () => {
  const first = amounts([0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0, 2])
  const second = amounts([1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4])
  const found = compareMeans(first, second)!
  near(found.p, 0.07939, 5)
  near(found.low, -0.2054832, 7)
  near(found.high, 3.3654832, 7)
  near(found.difference, 1.58, 10)
})

test('two proportions as proportions_ztest([5, 12], [83, 99]) of statsmodels: p = 0.159', () => {
  near(compareShares({ count: 5, of: 83 }, { count: 12, of: 99 })!.p, 0.159, 3)
})

test('the interval of two proportions by hand: 0.2 ± 1.959964 · √(0.3·0.7/50 + 0.5·0.5/50)', () => {
  const found = compareShares({ count: 15, of: 50 }, { count: 25, of: 50 })!
  near(found.low, 0.012007, 6)
  near(found.high, 0.387993, 6)
})

test('chi-square as scipy.stats.chisquare([16, 18, 16, 14, 12, 12]): p = 0.84914503608460956', () => {
  near(splitProbability([16, 18, 16, 14, 12, 12]), 0.84914503608460956, 12)
})

test('power as power.prop.test(n = 50, p1 = 0.50, p2 = 0.75) of R: 0.7401659', () => {
  near(powerOf(0.5, 0.75, [50, 50]), 0.7401659, 6)
})

test('size as power.prop.test(p1 = 0.50, p2 = 0.75, power = 0.90) of R: n = 76.7', () => {
  near(sizeFor(0.5, 0.75, 0.9), 76.7, 1)
})

test('no result for no people, for one person, or of a share that all have', () => {
  assert.equal(compareShares({ count: 0, of: 0 }, { count: 1, of: 2 }), null)
  assert.equal(compareShares({ count: 2, of: 2 }, { count: 3, of: 3 }), null)
  assert.equal(compareMeans(amounts([1]), amounts([2, 3])), null)
  assert.equal(compareMeans(amounts([2, 2]), amounts([2, 2])), null)
  assert.equal(splitProbability([5]), null)
  assert.equal(powerOf(0, 0, [5, 5]), null)
  assert.equal(sizeFor(0.1, 0.1), null)
})
