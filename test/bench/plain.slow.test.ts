// The server that the benchmark compares with returns what ours returns: else it would be no comparison.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { generate } from '../../bench/generate.ts'
import { compare, findMiddle, requestCases } from '../../bench/requests.ts'
import { fill, openRig, type Program, type Rig, startOurs, startReference } from '../../bench/rig.ts'
import { checkCounts } from '../../src/operator/doctor/records.ts'

const SIZE = 3000

describe('the plain server of the benchmark', () => {
  let rig: Rig
  let ours: Program
  let plain: Program
  before(async () => {
    rig = await openRig({ say: () => {} })
    await fill(rig, (query) => generate(query, { size: SIZE }))
    ours = await startOurs(rig)
    plain = await startReference(rig, 'plain.ts')
  })
  after(() => rig?.close())

  for (const { name, path, later } of requestCases(SIZE)) {
    test(`${name}: both return the same`, async () => {
      const headers = { 'Service-Secret': rig.key }
      const place = later ? await findMiddle(ours.url, headers, path, SIZE) : { ours: '', plain: '' }
      const body = await compare(
        `${ours.url}/public/v1${path}${place.ours}`,
        headers,
        `${plain.url}${path}${place.plain}`,
      )
      assert.ok(body.length > 200, body)
      if (path.includes('limit=')) assert.ok(JSON.parse(body).data.length >= 20)
    })
  }

  test('the counters of its project agree with a recount', async () => {
    const findings = await checkCounts(rig.app.db)
    assert.deepEqual(
      findings.map(({ level }) => level),
      ['ok'],
      JSON.stringify(findings),
    )
  })
})
