// Connections that the server ends, as in a failover or by an operator: a statement fails, and the program goes on.
import assert from 'node:assert/strict'
import { type AddressInfo, connect, createServer } from 'node:net'
import { after, test } from 'node:test'
import { openDb } from '../../../src/lib/pg/db.ts'
import { isUnavailable } from '../../../src/lib/pg/errors.ts'
import { freshDatabase } from '../../support/postgres.ts'

const database = await freshDatabase()
after(() => database.drop())

const READY = Buffer.from('Z\0\0\0\x05I', 'latin1')
const FIELDS = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'
const ENDED = Buffer.concat([Buffer.from('E'), Buffer.alloc(4), Buffer.from(FIELDS)])
ENDED.writeInt32BE(ENDED.length - 1, 1)

/** A way to the database on which the server's farewell arrives together with its first readiness. */
async function openEnding() {
  const { searchParams, hostname, port } = new URL(database.url)
  const host = searchParams.get('host') ?? hostname
  const server = createServer((near) => {
    const far = host.startsWith('/') ? connect(`${host}/.s.PGSQL.${port || 5432}`) : connect(Number(port || 5432), host)
    near.on('error', () => {}).pipe(far)
    far.on('data', (bytes: Buffer) => {
      if (!bytes.subarray(-READY.length).equals(READY)) return void near.write(bytes)
      near.end(Buffer.concat([bytes, ENDED]))
      far.destroy()
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`
  const url = Object.assign(new URL(database.url), { host: address, search: '' }).href
  return { url, close: () => new Promise((resolve) => server.close(resolve)) }
}

test('a connection that is ended while it is handed over fails its statement alone', { timeout: 60_000 }, async () => {
  const way = await openEnding()
  const db = openDb({ url: way.url, applicationName: 'test' })
  try {
    for (let n = 0; n < 3; n++) await assert.rejects(db.query('select 1'), isUnavailable)
    await assert.rejects(
      db.tx((query) => query('select 1')),
      isUnavailable,
    )
  } finally {
    await db.close()
    await way.close()
  }
})
