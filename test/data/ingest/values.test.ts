// The values of a line: what each type takes, and what it becomes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { line } from '../../support/imports.ts'
import { type Builder, columns, columnsFor, LATEST, problem, problemOf } from './import-rows.ts'

test('times are exact, and times that cannot be in the future are not', () => {
  assert.equal(
    columnsFor(line.profile, { created_at: '2026-01-31t23:59:60+00:00' }).created_at,
    '2026-02-01T00:00:00.000000Z',
  )
  assert.equal(
    columnsFor(line.profile, { created_at: '2026-01-02T01:00:00.5+02:00' }).created_at,
    '2026-01-01T23:00:00.500000Z',
  )
  assert.match(
    problemOf(line.profile, { created_at: '2026-01-02' }),
    /^profile\.created_at must be an RFC 3339 date-time/,
  )
  assert.match(problemOf(line.profile, { created_at: `2026-01-02T00:00:00.1234567Z` }), /more than 6 fraction digits/)
  const ahead = '2026-06-01T00:00:00.000001Z'
  for (const [kind, field] of [
    [line.profile, 'created_at'],
    [line.profile, 'updated_at'],
    [line.payment, 'trx_created_at'],
  ] as [Builder, string][]) {
    assert.match(problemOf(kind, { [field]: ahead }), /more than 5 minutes ahead of the database's clock$/)
    assert.equal(problemOf(kind, { [field]: LATEST }), 'none')
  }
  assert.equal(problemOf(line.subscription, { period_ends_at: ahead }), 'none')
})

test('left out is the default, and null is left out', () => {
  for (const data of [{}, { type: null, version: null, tags: null, alias: null }]) {
    const { type, status, environment, version, variation_count, tags, alias } = columnsFor(line.funnel, data)
    assert.deepEqual(
      [type, status, environment, version, variation_count, tags, alias],
      ['default', 'draft', 'production', '1', '1', '[]', '\\N'],
    )
  }
  const { preview, integrations, email, email_folded } = columnsFor(line.profile)
  assert.deepEqual([preview, integrations, email, email_folded], ['false', '{}', '\\N', '\\N'])
  assert.equal(columnsFor(line.reply).value, 'null')
  assert.equal(columnsFor(line.product).prices, '[]')
})

test('texts are kept whole and folded for comparison', () => {
  const { email, email_folded } = columnsFor(line.profile, { email: 'STRAẞE\\\t\r\n@X' })
  assert.deepEqual([email, email_folded], ['STRAẞE\\\\\\t\\r\\n@X', 'straße\\\\\\t\\r\\n@x'])
  assert.equal(columnsFor(line.funnel, { title: 'ÀB' }).title_folded, 'àb')
  assert.equal(columnsFor(line.funnel, { title: '' }).title_folded, '')
})

test('the id of a customer has a limit in characters, as in charges', () => {
  assert.equal(problemOf(line.customer, { external_id: '😀'.repeat(256) }), 'none')
  for (const external_id of ['', 'x'.repeat(257), 'a\u0007'])
    assert.equal(
      problemOf(line.customer, { external_id }),
      'customer.external_id must have 1 to 256 characters and no control characters',
    )
})

test('JSON is kept to the digit, compact', () => {
  const text = JSON.stringify(line.profile({ integrations: '#' }))
  const given = '{ "n": 1.50, "big": 12345678901234567890, "e": 1E2, "a": [ true, null ], "__proto__": {"x": 1} }'
  assert.equal(
    columns(text.replace('"#"', given)).integrations,
    '{"n":1.50,"big":12345678901234567890,"e":1E2,"a":[true,null],"__proto__":{"x":1}}',
  )
})

test('prices have every field in the order of the response', () => {
  const prices = [
    {
      currency: 'usd',
      amount: 1999,
      type: 'recurring',
      id: 'a',
      created_at: '2026-01-02T00:00:00Z',
      interval: 'month',
      trial: { price: 100 },
    },
    { id: 'b', type: 'one_time', amount: 0, currency: 'JPY' },
  ]
  assert.equal(
    columnsFor(line.product, { prices }).prices,
    '[{"id":"a","external_id":null,"type":"recurring","amount":1999,"currency":"USD","status":null,' +
      '"created_at":"2026-01-02T00:00:00.000000Z","interval":"month","interval_count":null,"trial_type":null,' +
      '"trial":{"type":null,"duration_interval":null,"duration_count":null,"price":100,"currency":null}},' +
      '{"id":"b","external_id":null,"type":"one_time","amount":0,"currency":"JPY","status":null,"created_at":null,' +
      '"interval":null,"interval_count":null,"trial_type":null,"trial":null}]',
  )
  assert.equal(problemOf(line.product, { prices: [prices[1], { id: 'c' }] }), 'product.prices[1].type is missing')
  assert.equal(
    problemOf(line.product, { prices: [{ ...prices[0], trial: { price: 'x' } }] }).slice(0, 29),
    'product.prices[0].trial.price',
  )
})

test('amounts are exact, with the decimals of their currency', () => {
  const amount = (text: string, currency_code = 'USD') =>
    JSON.stringify(line.payment({ amount: '#', currency_code })).replace('"#"', text)
  assert.equal(columns(amount('10.5')).amount, '10.50')
  assert.equal(columns(amount('10.500')).amount, '10.50')
  assert.equal(columns(amount('0')).amount, '0.00')
  assert.equal(columns(amount('500', 'jpy')).amount, '500')
  assert.equal(columns(amount('1.234', 'KWD')).amount, '1.234')
  assert.equal(columns(amount('999999999999999.99')).amount, '999999999999999.99')
  assert.equal(problem(amount('19.999999999999999999')), 'payment.amount has more decimal places than USD allows')
  assert.equal(problem(amount('0.5', 'JPY')), 'payment.amount has more decimal places than JPY allows')
  assert.equal(problem(amount('-1')), 'payment.amount must not be below 0')
  assert.equal(problem(amount('1e2')), 'payment.amount must be written without an exponent')
  assert.equal(problem(amount('1e400')), 'data.amount must be written without an exponent')
  assert.equal(
    problemOf(line.payment, { amount_usd: 1.005 }),
    'payment.amount_usd has more decimal places than USD allows',
  )
})

test('currencies are those of ISO 4217, in capitals; history may have withdrawn ones', () => {
  assert.equal(columnsFor(line.transaction, { currency: 'eur' }).currency, 'EUR')
  assert.equal(columnsFor(line.payment, { currency_code: 'HRK', amount: 1.5 }).amount, '1.50')
  assert.equal(columnsFor(line.payment, { currency_code: 'BYR', amount: 1500 }).amount, '1500')
  for (const currency of ['XXX', 'US', 'ﬅd', 'EURO'])
    assert.equal(
      problemOf(line.transaction, { currency }),
      `transaction.currency must be a currency of ISO 4217, got "${currency}"`,
    )
  assert.equal(
    problemOf(line.merchant_account, { currencies: ['USD', 'x'] }),
    'merchant_account.currencies[1] must be a currency of ISO 4217, got "x"',
  )
  assert.equal(columnsFor(line.merchant_account, { currencies: ['usd'] }).currencies, '["USD"]')
})

test('a saved card is a token, never a card number', () => {
  for (const payment_method_token of ['4242424242424242', '4242 4242 4242 4242', '3782-822463-10005'])
    assert.equal(
      problemOf(line.payment, { payment_method_token }),
      "payment.payment_method_token must be the payment provider's token, not a card number",
    )
  for (const payment_method_token of ['', ' '])
    assert.equal(
      problemOf(line.payment, { payment_method_token }),
      'payment.payment_method_token must not be empty: it is null if the card is not saved',
    )
  for (const payment_method_token of ['pm_4242424242424242', '4242424242424241', '1234', '8 4 2'])
    assert.equal(columnsFor(line.payment, { payment_method_token }).payment_method_token, payment_method_token)
})

test('a provider, its account and the type of a payment are not empty', () => {
  for (const psp_merchant_id of ['', ' '])
    assert.equal(
      problemOf(line.merchant_account, { psp_merchant_id }),
      'merchant_account.psp_merchant_id must not be empty',
    )
  assert.equal(problemOf(line.merchant_account, { psp: '' }), 'merchant_account.psp must not be empty')
  assert.equal(problemOf(line.payment, { psp: '' }), 'payment.psp must not be empty')
  assert.equal(problemOf(line.payment, { psp_transaction_type: '' }), 'payment.psp_transaction_type must not be empty')
})

test('the digits of a card are digits only', () => {
  assert.equal(
    problemOf(line.payment, { pm_data_first6: '42424' }),
    'payment.pm_data_first6 must be a string of 6 digits',
  )
  assert.equal(problemOf(line.payment, { pm_data_last4: '42a2' }), 'payment.pm_data_last4 must be a string of 4 digits')
})
