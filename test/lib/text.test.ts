// Case folding against what Unicode says, and the counting and quoting of characters.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { countCharacters, fold, hasControlCharacters, isId, isVisibleAscii, shorten } from '../../src/lib/text.ts'

const unit = fc.string({ unit: 'binary', maxLength: 20 })
const cased = fc
  .oneof(
    fc.integer({ min: 0x41, max: 0x24ff }),
    fc.integer({ min: 0xa640, max: 0xabff }),
    fc.integer({ min: 0xfb00, max: 0xffff }),
    fc.integer({ min: 0x10400, max: 0x10fff }),
    fc.integer({ min: 0x16e00, max: 0x1e9ff }),
  )
  .filter((code) => code < 0xd800 || code > 0xdfff)
  .map((code) => String.fromCodePoint(code))

describe('fold', () => {
  test('letters whose case depends on the language, and those where toLowerCase() differs from folding', () => {
    const known = {
      'Jane.DOE@Example.COM': 'jane.doe@example.com',
      'STRASSE Straße STRAẞE': 'strasse straße straße',
      'ΟΔΥΣΣΕΥΣ Οδυσσεύς': 'οδυσσευσ οδυσσεύσ',
      'I İ ı i': 'i İ ı i',
      '\u212a\u212b': 'kå',
      'ﬁ ﬃ ﬅ ﬆ ŉ \u01f0': 'ﬁ ﬃ ﬆ ﬆ ŉ \u01f0',
      'ᾈ ᾀ ῼ': 'ᾀ ᾀ ῳ',
      'ſ µ ϐ ẛ': 's μ β ṡ',
      '\u0390 \u1fd3': '\u0390 \u0390',
      'Ꭰ\uab70 \u13f8Ᏸ': 'ᎠᎠ ᏰᏰ',
      'Ა ა': 'ა ა',
      𐐀𐐨: '𐐨𐐨',
      'ДЖ Ǆ ǅ ǆ': 'дж ǆ ǆ ǆ',
      '日本 é É': '日本 é é',
    }
    for (const [text, folded] of Object.entries(known)) assert.equal(fold(text), folded, text)
  })

  test('two characters are equal exactly when the engine matches them without case', () => {
    const pair = fc.tuple(cased, cased, fc.nat({ max: 3 })).map(([one, other, way]) => {
      const variants = [one.toUpperCase(), one.toLowerCase(), one.toUpperCase().toLowerCase(), other]
      return [one, variants[way]!] as const
    })
    fc.assert(
      fc.property(pair, ([one, other]) => {
        // A pattern compares single characters only.
        fc.pre([...other].length === 1)
        const same = new RegExp(`^\\u{${one.codePointAt(0)!.toString(16)}}$`, 'iu').test(other)
        assert.equal(fold(one) === fold(other), same, `${one} ${other}`)
      }),
      { numRuns: 20_000 },
    )
  })

  test('every letter folds to one letter', () => {
    for (let code = 0; code < 0x1f000; code++) {
      if (code >= 0xd800 && code <= 0xdfff) continue
      const letter = String.fromCodePoint(code)
      assert.equal([...fold(letter)].length, 1, letter)
    }
  })

  test('a letter folds the same at every position, and folding twice equals folding once', () => {
    const texts = fc.array(fc.oneof(cased, fc.constantFrom('Σ', 'σ', 'ς', 'ı', 'İ', ' ', '.', '\u0307')), {
      maxLength: 8,
    })
    fc.assert(
      fc.property(texts, (letters) => {
        assert.equal(fold(letters.join('')), letters.map(fold).join(''))
        assert.equal(fold(fold(letters.join(''))), fold(letters.join('')))
      }),
      { numRuns: 5000 },
    )
  })
})

test('isVisibleAscii: false for spaces, control characters, other characters than ASCII, and the empty text', () => {
  for (const text of ['a', '!~', 'pro_01J8-x']) assert.ok(isVisibleAscii(text), text)
  for (const text of ['', ' ', 'a b', 'a\n', '\x7f', 'é', 'a\0']) assert.ok(!isVisibleAscii(text), text)
})

test('isId: 1 to 64 visible ASCII characters', () => {
  for (const text of ['1', 'a'.repeat(64), 'a/b?c']) assert.ok(isId(text), text)
  for (const text of ['', 'a'.repeat(65), 'a b', 'é']) assert.ok(!isId(text), text)
})

test('countCharacters counts code points, not units', () => {
  assert.equal(countCharacters('a😀é'), 3)
  fc.assert(fc.property(unit, (text) => assert.equal(countCharacters(text), [...text].length)))
})

test('hasControlCharacters: C0, DEL and C1, nothing else', () => {
  for (const text of ['a\0', '\n', '\x1f', '\x7f', '\x80', '\x9f']) assert.ok(hasControlCharacters(text))
  for (const text of ['', ' ~', '\u00a0', '\u200b', '\u2028', '😀']) assert.ok(!hasControlCharacters(text))
})

test('shorten keeps whole characters and shows that something is missing', () => {
  assert.equal(shorten('abcdef', 6), 'abcdef')
  assert.equal(shorten('abcdefg', 6), 'abcde…')
  assert.equal(shorten('😀😀😀', 3), '😀😀😀')
  assert.equal(shorten('😀😀😀😀', 3), '😀😀…')
  fc.assert(
    fc.property(unit, fc.integer({ min: 1, max: 25 }), (text, max) => {
      const short = shorten(text, max)
      assert.ok([...short].length <= max)
      assert.equal(short === text, [...text].length <= max || text === short)
    }),
  )
})
