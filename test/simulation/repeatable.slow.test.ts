// A seed of the simulation plays the same on any database, also after other seeds.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { freshDatabase } from '../support/postgres.ts'
import { replaceSources } from './hooks.ts'

replaceSources()
const { simulate } = await import('./world.ts')
const world = await import('./database.ts')

const fresh = await freshDatabase()
const database = await world.Database.open(fresh.url)
after(async () => {
  await database.close()
  await fresh.drop()
})

const FIRST = 14
const PLAYED = 2

test('a seed plays again exactly as before', async () => {
  const other = await freshDatabase()
  const again = await world.Database.open(other.url)
  try {
    for (let seed = FIRST, played = 0; played < PLAYED; seed += 1) {
      const first = await simulate(database, seed)
      if (database.hasTie) continue
      assert.deepEqual(await simulate(again, seed), first)
      played += 1
    }
  } finally {
    await again.close()
    await other.drop()
  }
})
