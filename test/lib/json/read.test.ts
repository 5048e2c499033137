// The strict JSON reader against the engine's own parser, and everything it refuses beyond that.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { JsonError, readJson } from '../../../src/lib/json/read.ts'

const bytes = (...values: number[]) => Uint8Array.from(values)
const refusal = (input: Uint8Array | string): string => {
  try {
    readJson(input)
  } catch (error) {
    assert.ok(error instanceof JsonError, String(error))
    return error.message
  }
  return 'accepted'
}

describe('what is JSON', () => {
  test('any value, with space around it, from text and from bytes', () => {
    const text = ' {"a" : [1, -2.5, true, false, null, "ö\\n\\u00f6\\ud83d\\ude00"], "b":{}, "":[] }\r\n\t'
    assert.deepEqual(readJson(text), JSON.parse(text))
    assert.deepEqual(readJson(new TextEncoder().encode(text)), JSON.parse(text))
  })

  test('the same as for the engine, on any value and however it is broken', () => {
    const piece = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '\\',
      '0',
      '-',
      '.',
      'e',
      'u',
      ' ',
      '\n',
      'null',
      '\x07',
    )
    const broken = fc.tuple(fc.json({ maxDepth: 4 }), fc.nat(), fc.nat({ max: 3 }), fc.array(piece, { maxLength: 2 }))
    fc.assert(
      fc.property(broken, ([text, place, removed, added]) => {
        const at = place % (text.length + 1)
        const input = (text.slice(0, at) + added.join('') + text.slice(at + removed)).toWellFormed()
        let expected: unknown
        try {
          expected = JSON.parse(input)
        } catch {
          assert.notEqual(refusal(input), 'accepted', input)
          return
        }
        const response = refusal(input)
        if (response === 'accepted') assert.deepEqual(readJson(input), expected)
        else assert.match(response, /appears twice|U\+0000|surrogate|out of range/, input)
      }),
      { numRuns: 3000 },
    )
  })

  test('nothing before or after the value', () => {
    assert.equal(refusal(''), 'column 1: the text ends where a value is expected')
    assert.equal(refusal('{"a":1,}'), 'column 8: expected a name in double quotes')
    assert.equal(refusal('[1,]'), 'column 4: expected a value')
    assert.equal(refusal('[1 2]'), 'column 4: expected "," or "]"')
    assert.equal(refusal('{"a" 1}'), 'column 6: expected ":"')
    assert.equal(refusal('{"a":1]'), 'column 7: expected "," or "}"')
    assert.equal(refusal('{} x'), 'column 4: unexpected text after the value')
    assert.equal(refusal('"a\tb"'), 'column 3: control character in a string')
    assert.equal(refusal('"ab'), 'column 4: the text ends within a string')
    assert.equal(refusal('"\\x"'), 'column 2: invalid escape in a string')
    for (const number of ['01', '-', '+1', '1.', '.5', '1e', '-01', '0x1', '1.2.3', 'NaN', '١']) {
      assert.notEqual(refusal(number), 'accepted', number)
    }
  })

  test('the place is counted in lines and characters', () => {
    assert.equal(refusal('{"a": 1,\n "😀": x}'), 'line 2, column 7: expected a value')
  })
})

describe('JSON that is refused although many parsers accept it', () => {
  test('a name twice in one object, at any depth and however it is written', () => {
    assert.equal(refusal('{"a":1,"b":2,"a":1}'), 'column 14: the name "a" appears twice in one object')
    assert.equal(refusal('[{"x":{"a":1,"\\u0061":2}}]'), 'column 14: the name "a" appears twice in one object')
    assert.equal(
      refusal('{"__proto__":1,"__proto__":1}'),
      'column 16: the name "__proto__" appears twice in one object',
    )
    assert.match(refusal('{"a":{"b":1},"a":{"b":1,"c":{"d":2}}}'), /appears twice/)
    assert.equal(refusal('{"a":{"a":1},"b":[{"a":1},{"a":1}]}'), 'accepted')
  })

  test('a long name is quoted in part only', () => {
    const name = 'x'.repeat(100)
    assert.equal(
      refusal(`{"${name}":1,"${name}":1}`),
      `column 107: the name "${'x'.repeat(63)}…" appears twice in one object`,
    )
  })

  test('exactly when the engine would drop a member', () => {
    const object: fc.Arbitrary<string> = fc.letrec<{ value: string; object: string }>((tie) => ({
      value: fc.oneof({ depthSize: 'small' }, fc.constantFrom('1', '"a:b"', '[]'), tie('object')),
      object: fc
        .array(fc.tuple(fc.constantFrom('"a"', '"b"', '"c"', '"\\u0061"', '"1"', '"__proto__"'), tie('value')), {
          maxLength: 4,
        })
        .map((members) => `{${members.map((member) => member.join(':')).join(',')}}`),
    })).object
    fc.assert(
      fc.property(object, (text) => {
        const written = (text.match(/"(?:[abc1]|__proto__|\\u0061)":/g) ?? []).length
        const kept = (JSON.stringify(JSON.parse(text)).match(/"(?:[abc1]|__proto__)":/g) ?? []).length
        assert.equal(refusal(text) !== 'accepted', kept < written, text)
      }),
      { numRuns: 2000 },
    )
  })

  test('U+0000 and unpaired surrogates, raw or escaped, in names and in values', () => {
    assert.equal(refusal('"\\u0000"'), 'column 2: the character U+0000 is not allowed')
    assert.equal(refusal('{"a\\u0000":1}'), 'column 4: the character U+0000 is not allowed')
    assert.equal(refusal('"\0"'), 'column 2: control character in a string')
    for (const text of [
      '"\\ud800"',
      '"\\udc00"',
      '"\\ud800x"',
      '"\\ud800\\ud800"',
      '"\\udc00\\ud800"',
      '"\\udc00\\udc00"',
      '"\\ud800\\n"',
    ]) {
      assert.equal(refusal(text), 'column 2: unpaired surrogate', text)
    }
    assert.equal(refusal('{"\\uD83D":1}'), 'column 3: unpaired surrogate')
    assert.equal(refusal('"a\ud800"'), 'column 3: unpaired surrogate')
    assert.equal(readJson('"\\uD83D\\uDE00"'), '😀')
    assert.equal(readJson('"\\\\u0000"'), '\\u0000')
  })

  test('bytes that are not UTF-8, with their place', () => {
    assert.equal(refusal(bytes(0x22, 0xff, 0x22)), 'byte 2: invalid UTF-8')
    assert.equal(refusal(bytes(0xff)), 'byte 1: invalid UTF-8')
    assert.equal(refusal(bytes(0x22, 0xc3, 0xb6, 0xed, 0xa0, 0x80, 0x22)), 'byte 5: invalid UTF-8')
    assert.equal(refusal(bytes(0x22, 0xc3)), 'byte 2: invalid UTF-8')
  })

  test('a byte order mark', () => {
    assert.equal(refusal(bytes(0xef, 0xbb, 0xbf, 0x31)), 'column 1: a byte order mark is not allowed')
  })

  test('more than 32 levels', () => {
    assert.equal(refusal('['.repeat(32) + ']'.repeat(32)), 'accepted')
    assert.equal(refusal(`[${'[],{},'.repeat(40)}1]`), 'accepted')
    assert.equal(refusal('['.repeat(33) + ']'.repeat(33)), 'column 33: nested deeper than 32 levels')
    assert.equal(refusal('{"a":'.repeat(100_000)), 'column 161: nested deeper than 32 levels')
  })

  test('numbers that no double can hold, and endless ones', () => {
    for (const number of ['1e400', '-1e400', '1e-400', '0e99999', `1${'0'.repeat(400)}`]) {
      assert.equal(refusal(`[${number}]`), 'column 2: a number out of range', number)
    }
    assert.equal(refusal(`0.${'1'.repeat(998)}`), 'accepted')
    assert.equal(refusal(`0.${'1'.repeat(999)}`), 'column 1: a number of more than 1000 characters')
    for (const number of ['0', '-0', '0e0', '0.0e9', '1e308', '5e-324', '1E+2']) {
      assert.equal(refusal(number), 'accepted', number)
    }
  })

  test('no value is ever repeated in the message', () => {
    for (const text of ['{"email":"jane@example.com",}', '["4242424242424242" 1]', '{"a":"jane@example.com"']) {
      assert.doesNotMatch(refusal(text), /jane|4242/)
    }
  })
})
