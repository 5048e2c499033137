// Date-times: what RFC 3339 allows, what a calendar has, and that no microsecond is lost on the way.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import {
  instantFromMicros,
  instantFromPg,
  microsFromInstant,
  microsFromPg,
  readInstant,
  readQueryInstant,
  TimeError,
} from '../../src/lib/time.ts'

const FIRST = -62_135_596_800_000_000n
const LAST = 253_402_300_799_999_999n
const anyMicros = fc.bigInt({ min: FIRST, max: LAST })

const refusal = (text: string): string => {
  try {
    return `accepted as ${readInstant(text)}`
  } catch (error) {
    assert.ok(error instanceof TimeError, String(error))
    return error.message
  }
}

describe('readInstant', () => {
  test('one canonical form for every way to write a time', () => {
    const forms = {
      '2026-01-31T23:59:59Z': '2026-01-31T23:59:59.000000Z',
      '2026-01-31t23:59:59.1z': '2026-01-31T23:59:59.100000Z',
      '2026-01-31T23:59:59.123456-00:00': '2026-01-31T23:59:59.123456Z',
      '2026-01-31T23:59:59.000001+00:20': '2026-01-31T23:39:59.000001Z',
      '2026-01-31T23:59:59.5-08:00': '2026-02-01T07:59:59.500000Z',
      '2024-02-29T00:30:00+01:00': '2024-02-28T23:30:00.000000Z',
      '2024-03-01T00:30:00+23:59': '2024-02-29T00:31:00.000000Z',
      '0050-01-01T00:00:00+01:00': '0049-12-31T23:00:00.000000Z',
      '0000-12-31T23:30:00-01:00': '0001-01-01T00:30:00.000000Z',
      '9999-12-31T23:59:59.999999Z': '9999-12-31T23:59:59.999999Z',
    }
    for (const [text, instant] of Object.entries(forms)) assert.equal(readInstant(text), instant)
  })

  test('a leap second is the second that follows, at the end of a month in UTC only', () => {
    assert.equal(readInstant('2016-12-31T23:59:60Z'), '2017-01-01T00:00:00.000000Z')
    assert.equal(readInstant('1990-06-30T15:59:60.25-08:00'), '1990-07-01T00:00:00.250000Z')
    assert.equal(readInstant('2017-01-01T08:59:60+09:00'), '2017-01-01T00:00:00.000000Z')
    const wrong = 'has second 60, but does not end a month in UTC'
    for (const text of [
      '2016-12-31T23:58:60Z',
      '2017-01-01T00:59:60Z',
      '2016-12-31T22:59:60Z',
      '2016-12-30T23:59:60Z',
      '2016-12-31T23:59:60+01:00',
    ]) {
      assert.equal(refusal(text), wrong, text)
    }
    assert.equal(refusal('2016-12-31T23:59:61Z'), 'has an impossible time of day')
    assert.equal(refusal('9999-12-31T23:59:60Z'), 'is outside the years 0001 to 9999')
  })

  test('no day that no calendar has', () => {
    for (const day of [
      '2026-02-29',
      '1900-02-29',
      '2026-04-31',
      '2026-13-01',
      '2026-00-10',
      '2026-01-00',
      '2026-01-32',
    ]) {
      assert.equal(refusal(`${day}T00:00:00Z`), 'has an impossible date', day)
      assert.equal(refusal(day), 'has an impossible date', day)
    }
    assert.match(refusal('2000-02-29T00:00:00Z'), /^accepted/)
  })

  test('no time of day and no offset that no clock shows', () => {
    for (const time of ['24:00:00', '23:60:00', '99:00:00']) {
      assert.equal(refusal(`2026-01-01T${time}Z`), 'has an impossible time of day', time)
    }
    for (const offset of ['+24:00', '-00:60']) {
      assert.equal(refusal(`2026-01-01T00:00:00${offset}`), 'has an impossible offset', offset)
    }
  })

  test('no fraction digit is dropped in silence', () => {
    assert.equal(refusal('2026-01-01T00:00:00.1234567Z'), 'has more than 6 fraction digits')
    assert.equal(refusal('2026-01-01T00:00:00.1000000Z'), 'has more than 6 fraction digits')
  })

  test('no year outside 0001 to 9999 in UTC', () => {
    for (const text of ['0000-06-01T00:00:00Z', '0001-01-01T00:30:00+01:00', '9999-12-31T23:30:00-01:00']) {
      assert.equal(refusal(text), 'is outside the years 0001 to 9999', text)
    }
  })

  test('nothing else of ISO 8601', () => {
    const others = [
      '2026-01-31',
      '2026-01-31T23:59Z',
      '2026-01-31 23:59:59Z',
      '2026-01-31T23:59:59',
      '20260131T235959Z',
    ]
    const odd = ['2026-01-31T23:59:59,5Z', '2026-01-31T23:59:59.Z', '+02026-01-31T00:00:00Z', '2026-01-31T23:59:59Z\n']
    const offsets = [
      '2026-01-31T23:59:59+01',
      '2026-01-31T23:59:59+0100',
      '2026-01-31T23:59:59+01:00Z',
      '2026-01-3৪T00:00:00Z',
    ]
    for (const text of [...others, ...odd, ...offsets, '2026-W05-6T00:00:00Z', ' 2026-01-31T23:59:59Z', '']) {
      const example = text === '2026-01-31' ? '2026-01-31T00:00:00Z' : '2026-01-31T23:59:59Z'
      assert.equal(refusal(text), `must be an RFC 3339 date-time such as ${example}`, text)
    }
  })

  test('agrees with Date for any moment, offset and number of digits', () => {
    const offsetMinutes = fc.integer({ min: -1439, max: 1439 })
    fc.assert(
      fc.property(anyMicros, offsetMinutes, fc.nat({ max: 6 }), (micros, offset, digits) => {
        const kept =
          micros - (((micros % 10n ** BigInt(6 - digits)) + 10n ** BigInt(6 - digits)) % 10n ** BigInt(6 - digits))
        const local = kept + BigInt(offset) * 60_000_000n
        fc.pre(local >= FIRST && local <= LAST && kept >= FIRST)
        const sign = offset < 0 ? '-' : '+'
        const [hours, minutes] = [Math.trunc(Math.abs(offset) / 60), Math.abs(offset) % 60]
        const zone = `${sign}${String(hours).padStart(2, '0')}:${String(minutes).padStart(2, '0')}`
        const text = modelInstant(local).slice(0, digits === 0 ? 19 : 20 + digits)
        assert.equal(readInstant(text + zone), modelInstant(kept))
      }),
      { numRuns: 2000 },
    )
  })

  test('accepts a day exactly when Date has it', () => {
    const part = fc.nat({ max: 99 })
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 9999 }), part, part, (year, month, day) => {
        const text = `${String(year).padStart(4, '0')}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}`
        const date = new Date(Date.parse('0001-01-01T00:00:00Z'))
        date.setUTCFullYear(year, month - 1, day)
        const exists = date.toISOString().slice(0, 10) === text
        assert.equal(refusal(`${text}T00:00:00Z`).startsWith('accepted'), exists, text)
      }),
      { numRuns: 5000 },
    )
  })
})

test('readQueryInstant takes a space for a plus that was not encoded', () => {
  assert.equal(readQueryInstant('2026-01-31T23:59:59 01:00'), '2026-01-31T22:59:59.000000Z')
  assert.equal(readQueryInstant('2026-01-31T23:59:59+01:00'), '2026-01-31T22:59:59.000000Z')
  assert.throws(() => readQueryInstant('2026-01-31 23:59:59Z'), TimeError)
  assert.throws(() => readQueryInstant('2026-01-31 01:00'), TimeError)
})

describe('times of the database', () => {
  test('any number of fraction digits', () => {
    for (const digits of ['', '.1', '.12', '.123', '.1234', '.12345', '.123456']) {
      const fraction = digits.slice(1).padEnd(6, '0')
      assert.equal(instantFromPg(`2026-01-31 23:59:59${digits}+00`), `2026-01-31T23:59:59.${fraction}Z`)
    }
    assert.equal(microsFromPg('1970-01-01 00:00:01.5+00'), 1_500_000n)
  })

  test('any other text is reported as a bug', () => {
    const wrong = [
      '0044-03-15 00:00:00+00 BC',
      '10000-01-01 00:00:00+00',
      'infinity',
      '-infinity',
      '2026-01-31 23:59:59+02',
    ]
    for (const text of [...wrong, '2026-01-31 23:59:59', '2026-01-31T23:59:59.1+00', '']) {
      assert.throws(() => instantFromPg(text), /Bug: the database wrote the time/, text)
    }
  })
})

describe('microseconds', () => {
  test('an instant is converted to microseconds and back without a change, also before 1970', () => {
    fc.assert(
      fc.property(anyMicros, (micros) => {
        assert.equal(instantFromMicros(micros), modelInstant(micros))
        assert.equal(microsFromInstant(modelInstant(micros)), micros)
      }),
      { numRuns: 2000 },
    )
  })

  test('not outside the years 0001 to 9999', () => {
    assert.equal(instantFromMicros(FIRST), '0001-01-01T00:00:00.000000Z')
    assert.equal(instantFromMicros(LAST), '9999-12-31T23:59:59.999999Z')
    for (const micros of [FIRST - 1n, LAST + 1n, 10n ** 30n]) assert.throws(() => instantFromMicros(micros), TimeError)
  })
})

/** Whole seconds through Date, the fraction by arithmetic. */
function modelInstant(micros: bigint): string {
  const seconds = Number((micros - FIRST) / 1_000_000n) + Number(FIRST / 1_000_000n)
  const fraction = String((micros - FIRST) % 1_000_000n).padStart(6, '0')
  return `${new Date(seconds * 1000).toISOString().slice(0, 19)}.${fraction}Z`
}
