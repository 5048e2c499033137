// Card numbers: what is caught in callers' metadata and in logs, and what must pass although it looks a little alike.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { findCardNumber, maskDigits } from '../../src/lib/card-data.ts'
import { readJson } from '../../src/lib/json/read.ts'

const CARDS = {
  visa: '4242424242424242',
  visa13: '4222222222222',
  visa19: '4000000000000000006',
  mastercard: '5555555555554444',
  mastercard2: '2223003122003222',
  amex: '378282246310005',
  discover: '6011111111111117',
  diners: '3056930009020004',
  diners14: '36227206271667',
  jcb: '3566002020360505',
  unionpay: '6200000000000005',
  maestro: '6759649826438453',
  mir: '2200000000000004',
}
const VISA = CARDS.visa
const find = (json: string) => findCardNumber(readJson(json, { exact: true }))

describe('findCardNumber', () => {
  test('every network, as a string and as a number', () => {
    for (const [network, number] of Object.entries(CARDS)) {
      assert.equal(find(`{"card":"${number}"}`), 'card', network)
      assert.equal(find(`{"card":${number}}`), 'card', network)
    }
  })

  test('with spaces or dashes, within text, and as a number written oddly', () => {
    for (const text of ['4242 4242 4242 4242', '4242-4242-4242-4242', '3782 822463 10005', ' 4242424242424242 ']) {
      assert.equal(find(JSON.stringify({ card: text })), 'card', text)
    }
    assert.equal(find('{"card":"Visa 4242 4242 4242 4242, 12/30"}'), 'card')
    assert.equal(find('{"card":4242424242424242.0}'), 'card')
    assert.equal(find('{"card":4.242424242424242e15}'), 'card')
  })

  test('in the digits of any script, and with what people and forms put between them', () => {
    const written = [
      '4242\u00a04242\u00a04242\u00a04242',
      '4242  4242  4242  4242',
      '4242 - 4242 - 4242 - 4242',
      '4242\u20134242\u20134242\u20134242',
      '4242.4242.4242.4242',
      '4242/4242/4242/4242',
      '4242_4242_4242_4242',
      '3782.822463.10005',
      '42424242\u200b42424242',
      '\uff14\uff12'.repeat(8),
      '\u0664\u0662'.repeat(8),
      '\u096a\u0968'.repeat(8),
      '\u{1d7d2}\u{1d7d0}'.repeat(8),
    ]
    for (const text of written) assert.equal(find(JSON.stringify({ card: `Visa ${text}.` })), 'card', text)
    // Decimal numbers, addresses and versions.
    for (const text of ['4.242424242424242', '42424242.42424242', '1.4242.4242.4242.4242', '4242.42424242.4242'])
      assert.equal(find(JSON.stringify({ number: text })), undefined, text)
  })

  test('a card number is found under every key with a word for a card, in any spelling', () => {
    const words = ['card', 'pan', 'cc', 'number', 'account']
    const compounds = [
      'cardNumber',
      'card_number',
      'card-number',
      'CARD_NO',
      'myCC',
      'CCNumber',
      'cc2',
      'pan1',
      'accountNo',
      'PANs',
    ]
    for (const key of [...words, ...compounds, 'Cards', 'creditcard', 'card.number', 'Kreditkarte (card)']) {
      assert.notEqual(find(JSON.stringify({ [key]: VISA })), undefined, key)
    }
  })

  test('keys with words that only resemble those for a card are not searched', () => {
    const keys = [
      'user_id',
      'userId',
      'order',
      'phone',
      'discard',
      'cardinal',
      'company',
      'panel',
      'accountant',
      'success',
    ]
    for (const key of [...keys, 'numbered', 'account_id', 'accountId', 'cardIds', 'ID', '', '№']) {
      assert.equal(find(JSON.stringify({ [key]: VISA })), undefined, key)
    }
  })

  test('a key counts for all values below it, except those of ids', () => {
    assert.equal(find(`{"card":{"a":[{},{"b":["x","${VISA}"]}]}}`), 'card.a[1].b[1]')
    assert.equal(find(`{"a":{"card":{"digits":"${VISA}"}}}`), 'a.card.digits')
    assert.equal(find(`{"account":{"id":"${VISA}","owner_id":${VISA}}}`), undefined)
    assert.equal(find(`{"account":{"id":{"number":"${VISA}"}}}`), 'account.id.number')
    assert.equal(find(`[{"card":true,"user":{"ref":"${VISA}"}}]`), undefined)
  })

  test('a card number as a key is found, and masked in its path', () => {
    assert.equal(find(`{"cards":{"${VISA}":{"exp":"12/30"}}}`), 'cards.****************')
  })

  test('other digits and ids are accepted under the key of a card', () => {
    const values = [
      '4242424242424241',
      '1234567812345670',
      '424242424242',
      '42424242424242424242',
      '**** 4242',
      '+4222222222222',
    ]
    const ids = [
      `acct_${VISA}`,
      `x${VISA}`,
      `${VISA}x`,
      '42424242-4242-4242-8242-424242424242',
      '42 42 a 42',
      '2026-01-31 23',
    ]
    for (const value of [...values, ...ids, '', true, null, 42, 0.42]) {
      assert.equal(find(JSON.stringify({ card: value, number: [value] })), undefined, String(value))
    }
  })

  test('numeric user ids that pass Luhn are not examined', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...Object.values(CARDS)),
        fc.constantFrom('user_id', 'uid', 'customer', 'playerId'),
        (id, key) => {
          assert.equal(find(`{"${key}":${id},"nested":{"${key}":["${id}"]}}`), undefined)
        },
      ),
    )
  })
})

describe('maskDigits', () => {
  test('every card number, at any place', () => {
    for (const number of Object.values(CARDS)) {
      assert.equal(maskDigits(`pan=${number};`), `pan=${'*'.repeat(number.length)};`)
      assert.equal(maskDigits(`x${number}y`), `x${'*'.repeat(number.length)}y`)
    }
    assert.equal(maskDigits('4242 4242 4242 4242'), '**** **** **** ****')
    assert.equal(maskDigits(`${VISA} and ${CARDS.amex}`), `${'*'.repeat(16)} and ${'*'.repeat(15)}`)
  })

  test('a card number among other groups of digits', () => {
    assert.equal(maskDigits('order 12 4242-4242-4242-4242 12/30'), 'order 12 ****-****-****-**** 12/30')
    assert.equal(maskDigits('1999 3782 822463 10005 840'), '1999 **** ****** ***** 840')
  })

  test('a line of JSON is still JSON', () => {
    const line = JSON.stringify({ pan: Number(VISA), list: [Number(VISA), 1], text: `a:${VISA},`, note: VISA })
    const masked = JSON.parse(maskDigits(line))
    assert.deepEqual(masked, { pan: null, list: [null, 1], text: 'a:null,', note: '*'.repeat(16) })
  })

  test('times, ids and short numbers pass', () => {
    const texts = [
      '2026-01-31T23:59:59.123456Z 2026-02-28 23:59:59+00',
      '{"time":1767225599123,"micros":1767225599123456,"nanos":1767225599123456789}',
      '01890a5d-ac96-774b-bcce-b302099a8057 42424242-4242-4242-8242-424242424242',
      'pro_01J8XK4Z9QW3E5R7T9Y1V3X5Z7 sub_01ARZ3NDEKTSV4RRFFQ69G5FAV',
      '4242 4242 4242 | 42424242424242424242 | 4242424242424241 | 127.0.0.1:54321',
    ]
    for (const text of texts) assert.equal(maskDigits(text), text)
  })

  test('any number with a known prefix, length and check digit, in any usual grouping', () => {
    const body = fc.stringMatching(/^4[0-9]{14}$|^5[1-5][0-9]{13}$|^3[47][0-9]{12}$|^62[0-9]{14,15}$/)
    const grouping = fc.array(fc.integer({ min: 3, max: 6 }), { minLength: 6, maxLength: 6 })
    fc.assert(
      fc.property(body, grouping, fc.constantFrom('', ' ', '-'), (digits, sizes, separator) => {
        const number = withCheckDigit(digits)
        const groups = sizes.map((size, at) => number.slice(sum(sizes.slice(0, at)), sum(sizes.slice(0, at)) + size))
        const written = groups.filter((group) => group !== '').join(separator)
        assert.doesNotMatch(maskDigits(`paid with ${written} today`), /\d/)
        assert.equal(findCardNumber({ card: written }), 'card')
      }),
      { numRuns: 2000 },
    )
  })

  test('stays quick on long hostile text', () => {
    for (const piece of ['1', '1 ', '1234 ', '4242 4242 ', '12345678-1234-']) {
      const before = process.cpuUsage()
      maskDigits(piece.repeat(100_000 / piece.length))
      assert.ok(process.cpuUsage(before).user < 1_000_000, piece)
    }
  })
})

function withCheckDigit(digits: string): string {
  const doubled = [...digits].reverse().map((digit, at) => Number(digit) * (at % 2 === 0 ? 2 : 1))
  return digits + ((10 - (sum(doubled.map((value) => (value > 9 ? value - 9 : value))) % 10)) % 10)
}

function sum(numbers: number[]): number {
  return numbers.reduce((total, value) => total + value, 0)
}
