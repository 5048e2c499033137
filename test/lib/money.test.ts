// Money: the table of currencies, and amounts that are exact in every form they may be written in.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import Big from 'big.js'
import fc from 'fast-check'
import { currencies, historicCurrencies } from '../../src/lib/currencies.ts'
import { JsonNumber, readJson } from '../../src/lib/json/read.ts'
import {
  convertMinor,
  formatMinor,
  MoneyError,
  minorUnits,
  readAmount,
  readAnyCurrency,
  readCurrency,
  readDecimal,
  readMinor,
  toMinor,
} from '../../src/lib/money.ts'

const refusal = (value: string | number | JsonNumber, currency: string): string => {
  try {
    return `accepted as ${readMinor(value, currency)}`
  } catch (error) {
    assert.ok(error instanceof MoneyError, String(error))
    return error.message
  }
}
const anyCurrency = fc.constantFrom(...currencies.keys())

describe('currencies', () => {
  test('minor units are those of ISO 4217, not those in everyday use', () => {
    const known = {
      USD: 2,
      EUR: 2,
      JPY: 0,
      KRW: 0,
      HUF: 2,
      IQD: 3,
      KWD: 3,
      CLF: 4,
      UYW: 4,
      UGX: 0,
      ISK: 0,
      MGA: 2,
      XCG: 2,
    }
    for (const [code, units] of Object.entries(known)) assert.equal(minorUnits(code), units, code)
    assert.equal(currencies.size, 165)
    for (const code of currencies.keys()) assert.match(code, /^[A-Z]{3}$/)
  })

  test('withdrawn codes and codes without minor units are unknown', () => {
    for (const code of ['BGN', 'HRK', 'ANG', 'CUC', 'SLL', 'ZWL', 'DEM', 'XAU', 'XDR', 'XTS', 'XXX', 'XSU', 'BTC']) {
      assert.equal(readCurrency(code), undefined, code)
    }
  })

  test('withdrawn codes are known in history, each with the decimals that it had', () => {
    const had = { BGN: 2, HRK: 2, ANG: 2, DEM: 2, CUC: 2, BYR: 0, ITL: 0, ESP: 0, TRL: 0, ZWL: 2 }
    for (const [code, units] of Object.entries(had))
      assert.deepEqual([readAnyCurrency(code.toLowerCase()), minorUnits(code)], [code, units])
    for (const code of ['XAU', 'XXX', 'BTC', 'ﬅd']) assert.equal(readAnyCurrency(code), undefined, code)
    for (const code of historicCurrencies.keys()) assert.ok(!currencies.has(code), code)
    assert.equal(formatMinor(1050n, 'HRK'), '10.50')
  })

  test('a code is read in any case, in ASCII letters only', () => {
    assert.equal(readCurrency('uSd'), 'USD')
    for (const text of ['uſd', 'US', 'USDX', ' USD', 'USD\n', '', 'ＵＳＤ'])
      assert.equal(readCurrency(text), undefined, text)
  })
})

describe('readMinor', () => {
  test('the same value in every form', () => {
    for (const value of ['10.5', '10.50', '10.500000000', '0010.5', 10.5, new JsonNumber('10.50')]) {
      assert.equal(readMinor(value, 'USD'), 1050n)
    }
    assert.equal(readMinor(500, 'JPY'), 500n)
    assert.equal(readMinor('500.000', 'JPY'), 500n)
    assert.equal(readMinor('1.2345', 'CLF'), 12345n)
  })

  test('decimals are judged on the text, never on a float', () => {
    const tooMany = 'must have at most 2 decimal places in USD'
    assert.equal(refusal(readJson('19.999999999999999999', { exact: true }) as JsonNumber, 'USD'), tooMany)
    assert.equal(refusal('10.001', 'USD'), tooMany)
    assert.equal(refusal(10.001, 'USD'), tooMany)
    assert.equal(refusal('0.1', 'JPY'), 'must have no decimal places in JPY')
  })

  test('must be greater than 0', () => {
    for (const value of [0, -1, -0.01, '0', '0.00', '000', new JsonNumber('-0'), new JsonNumber('0.000')]) {
      assert.equal(refusal(value, 'USD'), 'must be greater than 0', String(value))
    }
  })

  test('no exponents', () => {
    for (const text of ['1e2', '1E2', '1e-7', '10e0']) {
      assert.equal(refusal(new JsonNumber(text), 'USD'), 'must be written without an exponent', text)
    }
    assert.equal(refusal(1e21, 'USD'), 'must be written without an exponent')
    assert.match(refusal('1e2', 'USD'), /must be a decimal number/)
  })

  test('no other text', () => {
    const texts = [
      '',
      '.5',
      '5.',
      '+5',
      '-5',
      ' 5',
      '5\n',
      '1,000',
      '1.2.3',
      '$5',
      '٥',
      '1'.repeat(16),
      `1.${'0'.repeat(10)}`,
    ]
    for (const text of texts) assert.match(refusal(text, 'USD'), /^must be a decimal number with at most/, text)
  })

  test('at most 15 digits before the point as a number, too', () => {
    assert.equal(readMinor('999999999999999.99', 'USD'), 99_999_999_999_999_999n)
    assert.equal(readMinor(new JsonNumber('999999999999999.99'), 'USD'), 99_999_999_999_999_999n)
    assert.equal(refusal(new JsonNumber('1000000000000000'), 'USD'), 'must have at most 15 digits before the point')
  })

  test('any currency, decimals and form against an exact model', () => {
    const whole = fc.bigInt({ min: 0n, max: 10n ** 15n - 1n })
    const fraction = fc.stringMatching(/^[0-9]{0,5}$/)
    const form = fc.constantFrom<(text: string) => string | number | JsonNumber>(
      (text) => text,
      (text) => new JsonNumber(text),
      (text) => readJson(text, { exact: true }) as number | JsonNumber,
    )
    fc.assert(
      fc.property(anyCurrency, whole, fraction, form, (currency, major, decimals, write) => {
        const text = decimals === '' ? String(major) : `${major}.${decimals}`
        const minor = new Big(text).times(new Big(10).pow(minorUnits(currency)!))
        const response = refusal(write(text), currency)
        if (minor.eq(0)) assert.equal(response, 'must be greater than 0')
        else if (minor.eq(minor.round())) assert.equal(response, `accepted as ${minor.toFixed(0)}`)
        else assert.match(response, /^must have (no|at most \d) decimal places in/)
      }),
      { numRuns: 3000 },
    )
  })
})

test('an amount can be read before its currency is known', () => {
  assert.deepEqual(readAmount('10.50'), { digits: 105n, scale: 1 })
  assert.deepEqual(readAmount(-3), { digits: -3n, scale: 0 })
  assert.equal(toMinor(readAmount('10.50'), 'JPY'), undefined)
  assert.equal(toMinor(readAmount('10.50'), 'KWD'), 10_500n)
  assert.throws(() => toMinor(readAmount('10'), 'XXX'), /Bug: the currency "XXX" was not checked/)
})

describe('formatMinor', () => {
  test('all decimals of the currency', () => {
    assert.equal(formatMinor(1050n, 'USD'), '10.50')
    assert.equal(formatMinor(5n, 'USD'), '0.05')
    assert.equal(formatMinor(0n, 'KWD'), '0.000')
    assert.equal(formatMinor(500n, 'JPY'), '500')
    assert.equal(formatMinor(-5n, 'CLF'), '-0.0005')
  })

  test('is read back as the same amount', () => {
    fc.assert(
      fc.property(anyCurrency, fc.bigInt({ min: 1n, max: 10n ** 15n - 1n }), (currency, minor) => {
        assert.equal(readMinor(formatMinor(minor, currency), currency), minor)
      }),
    )
  })
})

describe('convertMinor', () => {
  const rate = (text: string) => readDecimal(text)!

  test('halves go to the even neighbour', () => {
    const halves: [bigint, bigint][] = [
      [1n, 0n],
      [3n, 2n],
      [5n, 2n],
      [7n, 4n],
      [-1n, 0n],
      [-3n, -2n],
    ]
    for (const [minor, usd] of halves) assert.equal(convertMinor(minor, 'EUR', rate('2'), 'USD', rate('1')), usd)
  })

  test('between currencies of different minor units', () => {
    assert.equal(convertMinor(500n, 'JPY', rate('160.00'), 'USD', rate('1.0800')), 338n)
    assert.equal(convertMinor(1999n, 'EUR', rate('1'), 'USD', rate('1.0837')), 2166n)
    assert.equal(convertMinor(1000n, 'KWD', rate('0.3333'), 'JPY', rate('160.5')), 482n)
  })

  test('agrees with exact arithmetic for any amount and rate', () => {
    const anyRate = fc
      .tuple(fc.integer({ min: 1, max: 99_999_999 }), fc.nat({ max: 6 }))
      .map(([digits, scale]) => new Big(digits).div(new Big(10).pow(scale)).toFixed(scale))
    fc.assert(
      fc.property(
        fc.bigInt({ min: 0n, max: 10n ** 15n }),
        anyCurrency,
        anyRate,
        anyRate,
        (minor, from, fromRate, toRate) => {
          const usd = convertMinor(minor, from, rate(fromRate), 'USD', rate(toRate))
          const factor = new Big(10).pow(minorUnits(from)! - 2)
          // minor · toRate = usd · fromRate · factor, as near as a whole number of cents can come.
          const error = new Big(String(minor))
            .times(toRate)
            .minus(new Big(String(usd)).times(fromRate).times(factor))
            .abs()
          const half = new Big(fromRate).times(factor).div(2)
          assert.ok(error.lt(half) || (error.eq(half) && usd % 2n === 0n), `${minor} ${from} ${fromRate} ${toRate}`)
        },
      ),
      { numRuns: 2000 },
    )
  })
})

test('a decimal of any length is read exactly', () => {
  assert.deepEqual(readDecimal('0.10'), { digits: 1n, scale: 1 })
  assert.deepEqual(readDecimal('-12.000'), { digits: -12n, scale: 0 })
  for (const text of ['', '1.', '.1', '1e5', '+1', '1 ']) assert.equal(readDecimal(text), undefined, text)
})
