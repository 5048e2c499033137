// Clients generated from /openapi.json compile strictly and read what the server returns.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { EXPECTED, openTrial, type Trial } from './run.ts'
import { heyApi, openapiTypescript } from './typescript.ts'

describe('a client generated from the description', () => {
  let trial: Trial
  before(async () => {
    trial = await openTrial()
  })
  after(() => trial.stop())

  for (const [name, generate] of Object.entries({ openapiTypescript, heyApi })) {
    test(`${name}: no warning, strict types, and a call`, async () => {
      const { warnings, read } = await generate(trial)
      assert.deepEqual(warnings, [])
      assert.deepEqual(read, EXPECTED)
    })
  }
})
