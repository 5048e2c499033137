// Form-encoded bodies with brackets, there and back.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeForm, encodeForm, FormError } from '../../src/lib/http/form.ts'

test('nested values are written with brackets, and read back', () => {
  const fields = {
    amount: 1050,
    off_session: true,
    left_out: undefined,
    note: 'a & b = ü+',
    metadata: { order: '1', 'odd name': '' },
    expand: ['latest_charge', 'customer'],
    items: [{ price: 'p1' }, { price: 'p2', quantity: 2 }],
  }
  const text = encodeForm(fields)
  assert.ok(text.includes('expand[]=latest_charge&expand[]=customer&items[0][price]=p1'), text)
  assert.deepEqual(JSON.parse(JSON.stringify(decodeForm(text))), {
    amount: '1050',
    off_session: 'true',
    note: 'a & b = ü+',
    metadata: { order: '1', 'odd name': '' },
    expand: ['latest_charge', 'customer'],
    items: [{ price: 'p1' }, { price: 'p2', quantity: '2' }],
  })
})

test('brackets may be percent-encoded, and blanks written as plus', () => {
  assert.deepEqual(JSON.parse(JSON.stringify(decodeForm('created%5Bgte%5D=5&name=Ada+L&empty'))), {
    created: { gte: '5' },
    name: 'Ada L',
    empty: '',
  })
})

for (const text of ['a=1&a=2', 'a=1&a[b]=2', 'a[b]=1&a=2', '[a]=1', 'a[b=1', 'a=%ff', '__proto__[x]=1&__proto__=2']) {
  test(`an error for ${text}`, () => {
    assert.throws(() => decodeForm(text), FormError)
  })
}

test('names of Object.prototype are names like others', () => {
  assert.equal(decodeForm('__proto__[polluted]=1&constructor=2')['constructor'], '2')
  assert.equal(({} as Record<string, unknown>)['polluted'], undefined)
})
