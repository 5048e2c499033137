// The values of JSON as they are read: plain, or exact, so that no number loses a digit.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { isJsonObject, JsonNumber, numberText, readJson, roundNumbers } from '../../../src/lib/json/read.ts'

describe('what the value is', () => {
  test('plain numbers, unless asked to be exact', () => {
    assert.deepEqual(readJson('[10.50,1e2,12345678901234567890]'), [10.5, 100, 12345678901234567000])
  })

  test('exact: a number whose text JavaScript would change keeps its text', () => {
    const texts = [
      '10.50',
      '-0',
      '1e2',
      '19.999999999999999999',
      '12345678901234567890',
      '9007199254740993',
      '1.0',
      '0.0000001',
    ]
    const value = readJson(`{"a":[${texts.join(' ,')}],"b":1.5}`, { exact: true })
    assert.deepEqual(value, { a: texts.map((text) => new JsonNumber(text)), b: 1.5 })
    assert.deepEqual(readJson('10.50', { exact: true }), new JsonNumber('10.50'))
  })

  test('exact: strings that look like numbers stay strings', () => {
    const value = readJson('{"10.50":"10.50","n":10.50,"u":"\\\\u000010.50"}', { exact: true })
    assert.deepEqual(value, { '10.50': '10.50', n: new JsonNumber('10.50'), u: '\\u000010.50' })
  })

  test('exact: written again, every number has its own text', () => {
    const number = fc
      .tuple(
        fc.constantFrom('', '-'),
        fc.bigInt({ min: 0n, max: 10n ** 30n }),
        fc.constantFrom('', '.', 'e', '.e'),
        fc.nat(),
      )
      .map(([sign, whole, form, rest]) => {
        const fraction = form.includes('.') ? `.${rest}0` : ''
        const exponent = form.includes('e') ? `e-${rest % 40}` : ''
        return `${sign}${whole}${fraction}${exponent}`
      })
    fc.assert(
      fc.property(fc.array(number), (numbers) => {
        const text = `{"list":[${numbers}],"__proto__":{"text":"1.0"}}`
        assert.equal(JSON.stringify(readJson(text, { exact: true })), text)
        const { list } = readJson(text, { exact: true }) as { list: (number | JsonNumber)[] }
        assert.deepEqual(list.map(numberText), numbers)
      }),
    )
  })

  test('__proto__ is a property like any other', () => {
    const value = readJson('{"__proto__":{"admin":true,"n":1.0},"constructor":1}', { exact: true })
    assert.ok(isJsonObject(value))
    assert.deepEqual(Object.keys(value), ['__proto__', 'constructor'])
    assert.equal(value['admin'], undefined)
    assert.equal(Object.getPrototypeOf(value), Object.prototype)
  })

  test('an object is neither a list, null nor a number with its text', () => {
    assert.deepEqual([{}, [], null, new JsonNumber('1.0'), 'a', undefined].map(isJsonObject), [
      true,
      false,
      false,
      false,
      false,
      false,
    ])
  })
})

test('rounding the numbers gives what a plain read gives, and the same value where nothing is rounded', () => {
  const odd = '{"a": 10.50, "b": [1, 19.999999999999999999, {"c": 1e2}], "__proto__": {"d": 1.0}, "e": null}'
  assert.deepEqual(roundNumbers(readJson(odd, { exact: true })), readJson(odd))
  const even = readJson('{"a": [1, {"b": "x"}], "c": 2.5}', { exact: true })
  assert.equal(roundNumbers(even), even)
})
