// Provider keys: the same whenever the same is asked, and never the same for two different things.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { chargeKey } from '../../../src/payments/billing/charge/row.ts'
import { nthRefundKey, refundKey } from '../../../src/payments/billing/refund/row.ts'

test('the key of a charge never changes, so that it is the same after a restore and in later versions', () => {
  assert.equal(chargeKey('shop', 'ada', 'k'), 'fa1594cda7a137957f2250d1812782013789b4911fc13e506ead81c5224a34f6')
})

test('different charges and refunds have different keys', () => {
  const keys = [
    chargeKey('shop', 'ada', 'k'),
    chargeKey('shop', 'adak', ''),
    chargeKey('shop', 'ad', 'ak'),
    chargeKey('shopada', '', 'k'),
    chargeKey('shop', 'ada","k', ''),
    refundKey('shop', 'ada', 'k'),
    refundKey('shop', 'ada', 'l'),
    chargeKey('shop', 'ada', 'refund'),
    nthRefundKey('shop', 'order', 0),
    nthRefundKey('shop', 'order', 1),
    nthRefundKey('shop', 'other', 0),
    refundKey('shop', 'order', '0'),
  ]
  assert.equal(new Set(keys).size, keys.length)
  for (const key of keys) assert.match(key, /^[0-9a-f]{64}$/)
})
