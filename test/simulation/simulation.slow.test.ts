// Seeds of the simulation, and proof that it finds planted bugs. More seeds: npm run test:deep simulation.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const main = new URL('main.ts', import.meta.url).pathname

const SEEDS = 26
// One bug for each part: the lease, the look, the sync guarantee, the consumable, the sums of refunds. All others: npm run test:deep mutants.
const PLANTED = [
  'lease-forgotten',
  'cancelled-without-refusal',
  'settled-without-write-lock',
  'consumable-doubled',
  'refund-by-old-sums',
  'soft-refund-revokes',
]

test(`${SEEDS} seeds keep every rule`, async () => {
  const { stdout } = await run(process.execPath, [main, '--from', '1000', '--seeds', String(SEEDS)])
  assert.match(stdout, /^\d+ seeds without a violation/m)
})

describe('planted bugs are found', () => {
  for (const name of PLANTED) {
    test(name, async () => {
      const found = await run(process.execPath, [main, '--seeds', '100', '--mutant', name]).catch((error) => error)
      assert.equal(found.code, 1, found.stdout)
      assert.match(found.stdout, /^Seed \d+ \(number \d+\): /m)
    })
  }
})
