// Trace context: a valid traceparent goes on under our own part, anything else begins a trace.
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { traceOf } from '../../../src/lib/http/trace.ts'

const ID = '0af7651916cd43dd8448eb211c80319c'
const PARENT = 'b7ad6b7169203331'

describe('a trace', () => {
  for (const flags of ['00', '01', '03', 'ff']) {
    test(`continues with the flags ${flags}`, () => {
      const { traceId, traceparent } = traceOf(`00-${ID}-${PARENT}-${flags}`)
      assert.equal(traceId, ID)
      const sampled = flags === '00' ? '00' : '01'
      assert.match(traceparent, new RegExp(`^00-${ID}-(?!${PARENT})[0-9a-f]{16}-${sampled}$`))
    })
  }

  test('continues from a header of a later version with more fields', () => {
    assert.equal(traceOf(`cc-${ID}-${PARENT}-01-what-ever`).traceId, ID)
    assert.match(traceOf(`cc-${ID}-${PARENT}-01`).traceparent, /^00-/)
  })

  for (const [name, header] of [
    ['nothing', undefined],
    ['two headers', `00-${ID}-${PARENT}-01, 00-${ID}-${PARENT}-01`],
    ['version ff', `ff-${ID}-${PARENT}-01`],
    ['more than version 00 has', `00-${ID}-${PARENT}-01-more`],
    ['upper case', `00-${ID.toUpperCase()}-${PARENT}-01`],
    ['a trace id of zeros', `00-${'0'.repeat(32)}-${PARENT}-01`],
    ['a parent id of zeros', `00-${ID}-${'0'.repeat(16)}-01`],
    ['a short trace id', `00-${ID.slice(1)}-${PARENT}-01`],
    ['no flags', `00-${ID}-${PARENT}`],
  ] as const) {
    test(`begins with ${name}`, () => {
      const { traceId, traceparent } = traceOf(header)
      assert.notEqual(traceId, ID)
      assert.match(traceparent, new RegExp(`^00-${traceId}-[0-9a-f]{16}-00$`))
    })
  }

  test('no two have one id', () => {
    const traces = Array.from({ length: 5000 }, () => traceOf(undefined))
    assert.equal(new Set(traces.map(({ traceId }) => traceId)).size, 5000)
    assert.equal(new Set(traces.map(({ traceparent }) => traceparent)).size, 5000)
  })
})
