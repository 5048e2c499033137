// Seeds of the simulation, and proof that it finds planted bugs. More seeds: npm run test:deep simulation.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { describe, test } from 'node:test'
import { promisify } from 'node:util'

const run = promisify(execFile)
const main = new URL('main.ts', import.meta.url).pathname

const SEEDS = 26
// One bug for each part: the lease, the look, the sync guarantee, the consumable, the sums of refunds. All others: npm run test:deep mutants.
// The search begins with the first seed that found it: if the simulation changes, one of the next hundred does.
const PLANTED = {
  'lease-forgotten': 4,
  'cancelled-without-refusal': 3,
  'settled-without-write-lock': 12,
  'consumable-doubled': 1,
  'refund-by-old-sums': 8,
  'soft-refund-revokes': 1,
}

test(`${SEEDS} seeds keep every rule`, async () => {
  const half = SEEDS / 2
  const played = [1000, 1000 + half].map((from) =>
    run(process.execPath, [main, '--from', `${from}`, '--seeds', `${half}`]),
  )
  for (const { stdout } of await Promise.all(played))
    assert.match(stdout, new RegExp(`^${half} seeds without a violation`, 'm'))
})

describe('planted bugs are found', { concurrency: 2 }, () => {
  for (const [name, from] of Object.entries(PLANTED)) {
    test(name, async () => {
      const found = await run(process.execPath, [main, '--from', `${from}`, '--seeds', '100', '--mutant', name]).catch(
        (error) => error,
      )
      assert.equal(found.code, 1, found.stdout)
      assert.match(found.stdout, /^Seed \d+ \(number \d+\): /m)
    })
  }
})
