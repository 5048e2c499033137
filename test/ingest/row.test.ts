// The rules of a line: what each field takes, what it becomes, and what is said of a bad one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { columnsOf, readRow } from '../../src/ingest/row.ts'
import { BadLine } from '../../src/records/import/fields.ts'
import { KINDS } from '../../src/records/records.ts'
import { line, T } from '../support/imports.ts'

const reading = { latest: '2026-06-01T00:00:00.000000Z' }

/** The columns of a line as COPY gets them. */
function columns(text: string): Record<string, string> {
  const row = readRow(text, reading)
  const values = row.text.split('\t')
  return Object.fromEntries(columnsOf(row.kind).map(({ name }, n) => [name, values[n]!]))
}

function problem(text: string): string {
  try {
    readRow(text, reading)
  } catch (error) {
    if (error instanceof BadLine) return error.message
    throw error
  }
  return 'none'
}

type Builder = (data?: Record<string, unknown>) => object
const problemOf = (kind: Builder, data: Record<string, unknown>) => problem(JSON.stringify(kind(data)))
const columnsFor = (kind: Builder, data: Record<string, unknown> = {}) => columns(JSON.stringify(kind(data)))

test('a line is an object with a known record and its data, and nothing else', () => {
  const known = KINDS.map(({ name }) => name).join(', ')
  assert.equal(problem('[]'), 'a line must be an object with "record" and "data"')
  assert.equal(problem('{"data": {}}'), `"record" must be one of ${known}`)
  assert.equal(problem('{"record": "constructor", "data": {}}'), `"record" must be one of ${known}`)
  assert.equal(problem('{"record": "profile"}'), '"data" is missing')
  assert.equal(problem('{"record": "profile", "data": []}'), 'profile must be an object')
  assert.equal(
    problem('{"record": "profile", "data": {}, "when": 1}'),
    'unknown property "when" beside "record" and "data"',
  )
})

test('what is no JSON, or JSON that loses something, is told with its place', () => {
  assert.equal(problem('{"record": "profile", }'), 'column 23: expected a name in double quotes')
  assert.match(problem('{"record": "profile", "record": "profile", "data": {}}'), /"record" comes twice/)
  assert.match(problem('{"record": "profile", "data": {"id": "\\u0000"}}'), /U\+0000/)
  assert.match(problem('{"record": "profile", "data": {"id": "\\ud800"}}'), /unpaired surrogate/)
})

test('the least of each kind is enough, and every required field is', () => {
  for (const [name, kind] of Object.entries(line)) {
    const least = (kind as Builder)() as { data: Record<string, unknown> }
    assert.equal(problem(JSON.stringify(least)), 'none', name)
    for (const field of Object.keys(least.data)) {
      assert.equal(problemOf(kind as Builder, { [field]: undefined }), `${name}.${field} is missing`)
      assert.equal(problemOf(kind as Builder, { [field]: null }), `${name}.${field} must not be null`)
    }
  }
})

test('required parts of a reply', () => {
  assert.equal(problemOf(line.reply, { element: { id: 'a' } }), 'reply.element.type is missing')
  assert.equal(problemOf(line.reply, { element: { type: 'a' } }), 'reply.element.id is missing')
  assert.equal(problemOf(line.reply, { screen: { id: 'a' } }), 'reply.screen.index is missing')
  assert.equal(problemOf(line.reply, { screen: { index: 0 } }), 'reply.screen.id is missing')
  assert.equal(problemOf(line.reply, { screen: 'a' }), 'reply.screen must be an object')
})

test('an unknown field of any object is named', () => {
  assert.equal(problemOf(line.profile, { mail: 'x' }), 'profile has no field "mail"')
  assert.equal(problemOf(line.customer, { created_at: T }), 'customer has no field "created_at"')
  assert.equal(problemOf(line.reply, { screen: { id: 'a', index: 0, name: 1 } }), 'reply.screen has no field "name"')
  const price = { id: 'a', type: 'one_time', amount: 1, currency: 'USD', vat: 1 }
  assert.equal(problemOf(line.product, { prices: [price] }), 'product.prices[0] has no field "vat"')
  assert.equal(
    problem(`{"record":"profile","data":{"id":"a","created_at":"${T}","__proto__":1}}`),
    'profile has no field "__proto__"',
  )
})

test('ids are 1 to 64 visible ASCII characters', () => {
  for (const id of ['', 'a b', 'ä', 'x'.repeat(65), 5])
    assert.equal(problemOf(line.profile, { id }), 'profile.id must be 1 to 64 visible ASCII characters')
  assert.equal(columnsFor(line.profile, { id: '!~"\\'.padEnd(64, 'x') }).id, '!~"\\\\'.padEnd(65, 'x'))
})

test('types are not coerced', () => {
  assert.equal(problemOf(line.profile, { email: 5 }), 'profile.email must be a text')
  assert.equal(problemOf(line.profile, { preview: 'true' }), 'profile.preview must be true or false')
  assert.equal(problemOf(line.profile, { integrations: [] }), 'profile.integrations must be an object')
  assert.equal(problemOf(line.funnel, { tags: ['a', 1] }), 'funnel.tags[1] must be a text')
  assert.equal(problemOf(line.funnel, { tags: 'a' }), 'funnel.tags must be a list')
  assert.equal(problemOf(line.reply, { value: { a: 1 } }), 'reply.value must be a text, a list of texts or null')
  assert.equal(problemOf(line.reply, { value: [['a']] }), 'reply.value[0] must be a text')
  assert.equal(problemOf(line.payment, { amount: '10' }), 'payment.amount must be a number')
  assert.equal(problemOf(line.payment, { order_id: 'x' }), 'payment.order_id must be a UUID')
})

test('whole numbers stay in range and are written like ones', () => {
  const rule = 'must be a whole number from'
  assert.equal(problemOf(line.funnel, { version: -1 }), `funnel.version ${rule} 0 to 2147483647`)
  assert.equal(problemOf(line.funnel, { version: 2147483648 }), `funnel.version ${rule} 0 to 2147483647`)
  assert.equal(
    problemOf(line.subscription, { billing_interval_count: 0 }),
    `subscription.billing_interval_count ${rule} 1 to 2147483647`,
  )
  assert.match(problemOf(line.transaction, { price: 19.99 }), /^transaction\.price must be a whole number/)
  const priced = (price: string) => JSON.stringify(line.transaction({ price: '#' })).replace('"#"', price)
  for (const price of ['1.0', '1e3', '-0', '9007199254740992'])
    assert.match(problem(priced(price)), /price must be a whole/)
  assert.equal(columns(priced('-9007199254740991')).price, '-9007199254740991')
})

test('a word of a fixed list is told with the list', () => {
  assert.equal(
    problemOf(line.product, { status: 'sold' }),
    'product.status must be one of active, archived, got "sold"',
  )
  assert.match(problemOf(line.subscription, { status: 'Active' }), /must be one of created, trialing/)
  assert.match(problemOf(line.subscription, { billing_interval: 'months' }), /must be one of day, week, month, year/)
  assert.match(problemOf(line.payment, { status: 'success' }), /must be one of succeeded, failed, refunded/)
})

test('times are exact, and those that cannot lie ahead do not', () => {
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
    /^profile\.created_at is not an RFC 3339 date-time/,
  )
  assert.match(problemOf(line.profile, { created_at: `2026-01-02T00:00:00.1234567Z` }), /more than 6 fraction digits/)
  const ahead = '2026-06-01T00:00:00.000001Z'
  for (const [kind, field] of [
    [line.profile, 'created_at'],
    [line.profile, 'updated_at'],
    [line.payment, 'trx_created_at'],
  ] as [Builder, string][]) {
    assert.match(problemOf(kind, { [field]: ahead }), /more than 5 minutes ahead of the database's clock$/)
    assert.equal(problemOf(kind, { [field]: reading.latest }), 'none')
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
  const { email, email_folded } = columnsFor(line.profile, { email: 'Straße\\\t\r\n@X' })
  assert.deepEqual([email, email_folded], ['Straße\\\\\\t\\r\\n@X', 'strasse\\\\\\t\\r\\n@x'])
  assert.equal(columnsFor(line.funnel, { title: 'ÀB' }).title_folded, 'àb')
  assert.equal(columnsFor(line.funnel, { title: '' }).title_folded, '')
})

test('a text that stands in an index has a limit in characters', () => {
  assert.equal(problemOf(line.profile, { email: '😀'.repeat(320) }), 'none')
  assert.equal(problemOf(line.profile, { email: 'x'.repeat(321) }), 'profile.email must have at most 320 characters')
  assert.equal(problemOf(line.customer, { email: '😀'.repeat(320) }), 'none')
  assert.equal(problemOf(line.customer, { email: 'x'.repeat(321) }), 'customer.email must have at most 320 characters')
  assert.equal(problemOf(line.funnel, { alias: '😀'.repeat(256) }), 'none')
  assert.equal(problemOf(line.funnel, { alias: 'x'.repeat(257) }), 'funnel.alias must have at most 256 characters')
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

test('prices have every field in the order of the answer', () => {
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
  assert.equal(
    problemOf(line.payment, { amount_usd: 1.005 }),
    'payment.amount_usd has more decimal places than USD allows',
  )
})

test('currencies are those of ISO 4217, in capitals; history may have withdrawn ones', () => {
  assert.equal(columnsFor(line.transaction, { currency: 'eur' }).currency, 'EUR')
  assert.equal(columnsFor(line.payment, { currency_code: 'HRK', amount: 1.5 }).amount, '1.50')
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

test('card digits are digits', () => {
  assert.equal(
    problemOf(line.payment, { pm_data_first6: '42424' }),
    'payment.pm_data_first6 must be a text of 6 digits',
  )
  assert.equal(problemOf(line.payment, { pm_data_last4: '42a2' }), 'payment.pm_data_last4 must be a text of 4 digits')
})

test('no problem repeats what somebody wrote about a person', () => {
  const marker = 'marker@example.com'
  for (const field of ['phone', 'email', 'country', 'integrations', 'preview', 'created_at', 'funnel_id'])
    assert.ok(!problemOf(line.profile, { [field]: [marker] }).includes(marker), field)
  assert.ok(!problem(`{"record": "profile", "data": {"email": "${marker}" }`).includes(marker))
})
