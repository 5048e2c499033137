// Files of exchange rates in every form we promise, and what is wrong with others.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Refusal } from '../../../src/lib/errors.ts'
import { readRates } from '../../../src/payments/billing/rates/rate-files.ts'

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
