// Files of exchange rates in every form we promise, and what is wrong with others.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Refusal } from '../../../src/lib/errors.ts'
import { readRates as readFile } from '../../../src/payments/billing/rates/rate-files.ts'
import { zipOf } from './zip.ts'

const readRates = (text: string, name: string) => readFile(Buffer.from(text), name)

const rate = (day: string, currencyCode: string, perEuro: string) => ({ day, currencyCode, perEuro })

test("the ECB's history: a column a currency, N/A where there was no rate, a comma at the end of each line", () => {
  const text = 'Date,USD,JPY,CYP,\n2026-01-30,1.1920,183.59,N/A,\n2026-01-29,1.1968,183.11,0.5853,\n'
  assert.deepEqual(readRates(text, 'f'), [
    rate('2026-01-30', 'USD', '1.1920'),
    rate('2026-01-30', 'JPY', '183.59'),
    rate('2026-01-29', 'USD', '1.1968'),
    rate('2026-01-29', 'JPY', '183.11'),
    rate('2026-01-29', 'CYP', '0.5853'),
  ])
})

test("the ECB's file of one day: blanks after the commas, the month by its name, lines ended as on Windows", () => {
  const text = 'Date, USD, JPY, \r\n30 January 2026, 1.1920, 183.59, \r\n'
  assert.deepEqual(readRates(text, 'f'), [rate('2026-01-30', 'USD', '1.1920'), rate('2026-01-30', 'JPY', '183.59')])
  assert.deepEqual(readRates('Date, USD\n3 May 2026, 1.1', 'f'), [rate('2026-05-03', 'USD', '1.1')])
})

test("the ECB's XML, of one day or many, in either kind of quotes", () => {
  const text = `<?xml version="1.0" encoding="UTF-8"?>
<gesmes:Envelope xmlns:gesmes="http://www.gesmes.org/xml/2002-08-01" xmlns="http://www.ecb.int/vocabulary/2002-08-01/eurofxref">
  <gesmes:subject>Reference rates</gesmes:subject>
  <Cube>
    <Cube time='2026-01-30'><Cube currency='USD' rate='1.1920'/><Cube currency='JPY' rate='183.59'/></Cube>
    <Cube time="2026-01-29"><Cube currency="USD" rate="1.1968"/></Cube>
  </Cube>
</gesmes:Envelope>`
  assert.deepEqual(readRates(text, 'f'), [
    rate('2026-01-30', 'USD', '1.1920'),
    rate('2026-01-30', 'JPY', '183.59'),
    rate('2026-01-29', 'USD', '1.1968'),
  ])
})

test('a plain CSV, also behind a byte order mark', () => {
  const text = '\ufeffdate,currency,per_euro\n2026-01-30,USD,1.1920\n\n2026-01-30,GBP,0.86\n'
  assert.deepEqual(readRates(text, 'f'), [rate('2026-01-30', 'USD', '1.1920'), rate('2026-01-30', 'GBP', '0.86')])
})

describe("the ECB's ZIP", () => {
  const csv = 'Date,USD,JPY,\n2026-01-30,1.1920,183.59,\n'
  const rates = [rate('2026-01-30', 'USD', '1.1920'), rate('2026-01-30', 'JPY', '183.59')]

  test('of one file, packed or stored, with a comment after it', () => {
    assert.deepEqual(readFile(zipOf({ 'eurofxref-hist.csv': csv }), 'f'), rates)
    assert.deepEqual(readFile(zipOf({ 'eurofxref-hist.csv': csv }, { stored: true }), 'f'), rates)
    assert.deepEqual(readFile(zipOf({ 'eurofxref-hist.csv': csv }, { comment: 'from the bank' }), 'f'), rates)
  })

  const whole = zipOf({ 'eurofxref-hist.csv': csv })
  const changed = (at: number, value: number) => {
    const copy = Buffer.from(whole)
    copy[at] = value
    return copy
  }
  const directory = whole.lastIndexOf('PK\x01\x02', undefined, 'latin1')
  const huge = zipOf({ 'a.csv': 'x'.repeat(33 * 1024 * 1024) })
  // The size that the archive names is a lie.
  const lying = Buffer.from(huge)
  lying.writeUInt32LE(5, lying.lastIndexOf('PK\x01\x02', undefined, 'latin1') + 24)
  for (const [what, bytes, message] of [
    ['cut off', whole.subarray(0, -25), /^f is a ZIP archive that is not whole: give the CSV or XML that is in it\.$/],
    ['of two files', zipOf({ 'a.csv': csv, 'b.csv': csv }), /of several files/],
    ['encrypted', changed(directory + 8, 1), /encrypted/],
    ['of another method', changed(directory + 10, 12), /unusual format/],
    ['with other bytes', changed(30 + 'eurofxref-hist.csv'.length + 8, 0x7a), /that (is damaged|cannot be read)/],
    ['whose directory is elsewhere', changed(whole.length - 5, 0xff), /that cannot be read/],
    ['whose file is too large', huge, /whose file exceeds 32 MiB/],
    ['whose file is larger than it says', lying, /that cannot be read/],
    ['of another file', zipOf({ 'a.txt': 'hello' }), /f is no file of exchange rates/],
  ] as const)
    test(`a Refusal for one ${what}`, () => {
      assert.throws(
        () => readFile(bytes, 'f'),
        (error) => error instanceof Refusal && message.test(error.message),
      )
    })
})

describe('a Refusal that names the place', () => {
  for (const [text, message] of [
    ['', /f is no file of exchange rates/],
    ['a,b\n1,2', /f is no file of exchange rates/],
    ['date,currency,per_euro\n2026-01-30,USD', /f:2: three values/],
    ['date,currency,per_euro\n2026-01-30,usd,1', /f:2: "usd" is not a currency code/],
    ['date,currency,per_euro\n2026-02-30,USD,1', /f:2: "2026-02-30" is not a date/],
    ['date,currency,per_euro\n2026-01-30,USD,1\n2026-01-30,EEK,-1', /f:3: "-1" is not a rate/],
    ['Date,USD\n2026-01-30,0', /f:2: "0" is not a rate/],
    ['Date,USD\n2026-01-30,1e3', /f:2: "1e3" is not a rate/],
    ['Date,USD\n2026-01-30,0.000', /f:2: "0.000" is not a rate/],
    ['date,currency,per_euro\n0000-01-01,USD,1', /f:2: "0000-01-01" is not a date/],
    ['date,currency,per_euro\n2026-01-30,EUR,1.0\n2026-01-31,EUR,0.92', /f:3: the rate of EUR must be 1, got "0.92"/],
    ['Date,USD\n30 Januar 2026,1', /f:2: "30 Januar 2026" is not a date/],
    ['Date,USD\n2026-01-30,1,2', /f:2: "" is not a currency code/],
    ['<html></html>', /f is XML without exchange rates/],
    ['<Cube currency="USD" rate="1"/>', /comes before any date/],
  ] as [string, RegExp][]) {
    test(JSON.stringify(text), () => {
      assert.throws(
        () => readRates(text, 'f'),
        (error) => error instanceof Refusal && message.test(error.message),
      )
    })
  }
})
