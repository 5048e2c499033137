// The rules of a line: its kind, its fields, and what is said of a bad one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KINDS } from '../../../src/core/records/records.ts'
import { line, T } from '../../support/imports.ts'
import { type Builder, columns, columnsFor, problem, problemOf } from './import-rows.ts'

test('a line is an object with a known record and its data, and nothing else', () => {
  const known = KINDS.map(({ name }) => name).join(', ')
  assert.equal(problem('[]'), 'a line must be an object with "record" and "data"')
  assert.equal(problem('{"data": {}}'), `"record" must be one of ${known}`)
  assert.equal(problem('{"record": "constructor", "data": {}}'), `"record" must be one of ${known}, got "constructor"`)
  assert.equal(problem('{"record": "profile"}'), '"data" is missing')
  assert.equal(problem('{"record": "profile", "data": []}'), 'profile must be an object')
  assert.equal(
    problem('{"record": "profile", "data": {}, "when": 1}'),
    'unknown property "when" next to "record" and "data"',
  )
})

test('invalid JSON, and JSON that would lose something, is reported with its column', () => {
  assert.equal(problem('{"record": "profile", }'), 'not JSON: column 23: expected a name in double quotes')
  assert.match(problem('{"record": "profile", "record": "profile", "data": {}}'), /"record" appears twice/)
  assert.match(problem('{"record": "profile", "data": {"id": "\\u0000"}}'), /U\+0000/)
  assert.match(problem('{"record": "profile", "data": {"id": "\\ud800"}}'), /unpaired surrogate/)
})

test('the required fields of each kind are enough, and each of them is needed', () => {
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
  assert.equal(problemOf(line.profile, { email: 5 }), 'profile.email must be a string')
  assert.equal(problemOf(line.profile, { preview: 'true' }), 'profile.preview must be true or false')
  assert.equal(problemOf(line.profile, { integrations: [] }), 'profile.integrations must be an object')
  assert.equal(problemOf(line.funnel, { tags: ['a', 1] }), 'funnel.tags[1] must be a string')
  assert.equal(problemOf(line.funnel, { tags: 'a' }), 'funnel.tags must be an array')
  assert.equal(problemOf(line.reply, { value: { a: 1 } }), 'reply.value must be a string, an array of strings or null')
  assert.equal(problemOf(line.reply, { value: [['a']] }), 'reply.value[0] must be a string')
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

test('a value that is not in a fixed list is reported with the list', () => {
  assert.equal(
    problemOf(line.product, { status: 'sold' }),
    'product.status must be one of active, archived, got "sold"',
  )
  assert.match(problemOf(line.subscription, { status: 'Active' }), /must be one of created, trialing/)
  assert.match(problemOf(line.subscription, { billing_interval: 'months' }), /must be one of day, week, month, year/)
  assert.match(problemOf(line.payment, { status: 'success' }), /must be one of succeeded, failed, refunded/)
})

test('no message repeats personal data', () => {
  const marker = 'marker@example.com'
  for (const field of ['phone', 'email', 'country', 'integrations', 'preview', 'created_at', 'funnel_id'])
    assert.ok(!problemOf(line.profile, { [field]: [marker] }).includes(marker), field)
  assert.ok(!problem(`{"record": "profile", "data": {"email": "${marker}" }`).includes(marker))
})
