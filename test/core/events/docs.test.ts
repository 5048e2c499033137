// The page about webhooks tells every kind, with a sample body that has the fields of a real one.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { eventTypes } from '../../../src/core/events/catalogue.ts'
import { WAITS_SECONDS } from '../../../src/core/events/schedule.ts'
import { subscriptionDetail } from '../../../src/core/records/subscription.ts'

const page = readFileSync(new URL('../../../docs/webhooks.md', import.meta.url), 'utf8')

test('every kind has a row that names its sample, and every sample is a whole body', () => {
  const rows = [...page.matchAll(/^\| `(\w+\.\w+)` \| .{9,} \| \[\w+\]\(#(\w+)\) \|$/gm)]
  assert.deepEqual(rows.map(([, kind]) => kind).sort(), [...eventTypes].sort())
  const samples = new Map([...page.matchAll(/^### (\S+)\n\n```json\n([\s\S]+?)\n```/gm)].map((m) => [m[1], m[2]]))
  assert.deepEqual([...samples.keys()].sort(), [...new Set(rows.map(([, , sample]) => sample))].sort())
  for (const [object, text] of samples) {
    const body = JSON.parse(text!)
    assert.deepEqual(Object.keys(body), ['id', 'type', 'created_at', 'project_id', 'sequence', 'data'], object)
    assert.equal(rows.find(([, kind]) => kind === body.type)?.[2], object)
    if (object !== 'subscription') continue
    const { properties } = subscriptionDetail.schema as unknown as { properties: object }
    assert.deepEqual(Object.keys(body.data), Object.keys(properties))
  }
})

test('docs/webhooks.md has the schedule of retries as it is', () => {
  const units = [
    [3600, 'h'],
    [60, 'min'],
    [1, 's'],
  ] as const
  const waits = WAITS_SECONDS.map((seconds) => {
    const [size, unit] = units.find(([size]) => seconds >= size)!
    return `${seconds / size} ${unit}`
  })
  const told = /tried again after ([\s\S]+?), and then/.exec(page)![1]!.replaceAll('\n', ' ')
  assert.deepEqual(told.split(/, | and /), waits)
})
