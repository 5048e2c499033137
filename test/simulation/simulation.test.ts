// A few hundred seeds of the simulation, proof that a seed plays again the same way, and that planted bugs are found.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import type { Database } from './database.ts'
import { replaceSources } from './hooks.ts'
import { plants } from './plants.ts'

replaceSources()
const { simulate } = await import('./world.ts')
const world = await import('./database.ts')

const SEEDS = 200

let fresh: FreshDatabase
let database: Database
before(async () => {
  fresh = await freshDatabase()
  database = await world.Database.open(fresh.url)
})
after(async () => {
  await database.close()
  await fresh.drop()
})

test(`${SEEDS} seeds keep every rule`, async () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const { violation, story } = await simulate(database, seed)
    assert.equal(violation, undefined, `seed ${seed}: ${violation}\n${story.join('\n')}`)
  }
})

test('a seed plays again exactly as before', async () => {
  const other = await freshDatabase()
  const again = await world.Database.open(other.url)
  try {
    for (let seed = SEEDS + 1; seed <= SEEDS + 10; seed++) {
      assert.deepEqual(await simulate(again, seed), await simulate(database, seed))
    }
  } finally {
    await again.close()
    await other.drop()
  }
})

describe('planted bugs are found', () => {
  const run = promisify(execFile)
  const main = new URL('main.ts', import.meta.url).pathname
  for (const name of Object.keys(plants)) {
    test(name, async () => {
      const found = await run(process.execPath, [main, '--seeds', '100', '--plant', name]).catch((error) => error)
      assert.equal(found.code, 1, found.stdout)
      assert.match(found.stdout, /^Seed \d+ \(number \d+\): /m)
    })
  }
})
