// The resident program of tests fails a command with a sentence when it ends, and is started again for the next one.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { after, before, test } from 'node:test'
import { killResident, tundishAgain } from '../../support/resident.ts'

// Takes connections and says nothing, so that a command waits for it.
const database = createServer(() => {})
before(async () => {
  database.listen(0, '127.0.0.1')
  await once(database, 'listening')
})
after(() => database.close())

const isFine = async () => assert.equal((await tundishAgain(['--version'])).code, 0)

test('killed in the middle of a command: this one fails, the next one runs', async () => {
  // What an earlier command has written is not told of this one.
  assert.notEqual((await tundishAgain(['nothing'])).stderr, '')
  const { port } = database.address() as AddressInfo
  const url = `postgresql://x:y@127.0.0.1:${port}/none`
  const running = tundishAgain(['org', 'list'], { DATABASE_URL: url, MASTER_KEY: Buffer.alloc(32).toString('base64') })
  const failed = assert.rejects(running, /^Error: tundish org list: the resident program has ended by SIGKILL\.$/)
  await once(database, 'connection')
  await killResident()
  await failed
  await isFine()
})

test('killed between two commands: the next one fails, and the one after it runs', async () => {
  await isFine()
  await killResident()
  await assert.rejects(
    tundishAgain(['--version']),
    /^Error: tundish --version: the resident program has ended by SIGKILL/,
  )
  await isFine()
})
