// The reader of a sync's lines: numbers of free-form objects are written again with the digits that came.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readExact } from '../../../src/lib/json/exact.ts'

test('every number keeps its digits, wherever it is', () => {
  for (const text of [
    '{"a":1.10}',
    '{"a":[1,2.50]}',
    '[-0]',
    '{"a":{"b":-0}}',
    '{"a":-0.0}',
    '9007199254740993',
    '{"a":-12345678901234567890}',
    '{"a":123456789012345}',
    '{"a":"1.10","b":"-0"}',
  ])
    assert.equal(JSON.stringify(readExact(text)), text)
})
