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

test('a seed plays again exactly as before', async () => {
  const other = await freshDatabase()
  const again = await world.Database.open(other.url)
  try {
    for (const seed of [9, 10]) assert.deepEqual(await simulate(again, seed), await simulate(database, seed))
  } finally {
    await again.close()
    await other.drop()
  }
})
