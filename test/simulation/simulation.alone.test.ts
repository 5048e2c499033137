// A few seeds of the simulation, and proof that a seed is repeatable. More: simulation.slow.test.ts.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import type { Database } from './database.ts'
import { replaceSources } from './hooks.ts'

replaceSources()
const { simulate } = await import('./world.ts')
const world = await import('./database.ts')

const SEEDS = 8

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
    for (const seed of [SEEDS + 1, SEEDS + 2]) {
      assert.deepEqual(await simulate(again, seed), await simulate(database, seed))
    }
  } finally {
    await again.close()
    await other.drop()
  }
})
