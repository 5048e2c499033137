// A database behind TLS: every way of ours to it is encrypted, loses no byte, and leads to nobody but the one that was meant.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { Billing, Organization } from '../../support/billing.ts'
import { succeeded, tundish } from '../../support/cli.ts'
import { textOf } from '../../support/imports.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { openProxy } from '../../support/proxy.ts'
import { walk } from '../../support/walk.ts'
import { type CrowdedShop, openCrowdedShop } from './crowded-shop.ts'
import { openTlsProxy, type TlsProxy } from './tls-proxy.ts'

const PEOPLE = 300
// Rows of some KB: a page of them comes in many records of TLS.
const nameOf = (n: number) => `${String(n).padStart(3, '0')}-${'äbc '.repeat(1000)}@example.com`

describe('a database behind TLS', { timeout: 120_000 }, () => {
  let database: FreshDatabase
  let proxy: TlsProxy
  let billing: Billing
  let shop: Organization
  let get: CrowdedShop['get']
  before(async () => {
    database = await freshDatabase()
    proxy = await openTlsProxy(database.url)
    const people = Array.from({ length: PEOPLE }, (_, n) => ({ id: `person-${n}`, email: nameOf(n) }))
    ;({ billing, shop, get } = await openCrowdedShop({ DATABASE_URL: proxy.url() }, people))
  })
  after(async () => {
    await billing?.stop()
    await proxy?.close()
    await database?.drop()
  })

  test('gives every page whole, of any size and many at once', async () => {
    const wanted = Array.from({ length: PEOPLE }, (_, n) => [`person-${n}`, nameOf(n)]).sort()
    const walks = ['7', '100', '500'].map((limit) => walk({ get }, '/profiles', { limit }))
    for (const found of await Promise.all(walks)) {
      const people = found.filter(({ id }) => id.startsWith('person-')).map(({ id, email }) => [id, email])
      assert.deepEqual(people.sort(), wanted)
    }
    assert.ok(proxy.encrypted() > 0)
  })

  test('charges and refunds', async () => {
    const customers = await Promise.all(Array.from({ length: 5 }, () => shop.customer()))
    const charged = await Promise.all(customers.map((customer) => shop.charge(customer)))
    for (const { body } of charged) assert.equal(body.checkout_status, 'succeeded')
    const refunded = await shop.refund(customers[0]!, charged[0]!.body.order_id)
    assert.equal(refunded.body.refund_status, 'succeeded')
    assert.equal((await billing.ledger()).length, customers.length + 1)
  })

  test('takes an import', async () => {
    const times = { created_at: '2026-01-01T00:00:00Z', updated_at: '2026-01-01T00:00:00Z' }
    const lines = Array.from({ length: 1000 }, (_, n) => ({
      record: 'profile',
      data: { id: `imported-${n}`, ...times, email: `${'ä'.repeat(100)}${n}@example.com` },
    }))
    await succeeded(tundish(['import', '--project', shop.projectId, '-'], billing.server.env, textOf(lines)))
    for (const { data } of [lines[0]!, lines.at(-1)!]) {
      assert.equal((await get(`/profiles/${data.id}`)).body.email, data.email)
    }
  })
})

describe('the command line refuses', { timeout: 60_000 }, () => {
  let database: FreshDatabase
  let proxy: TlsProxy
  before(async () => {
    database = await freshDatabase()
    proxy = await openTlsProxy(database.url)
  })
  after(async () => {
    await proxy?.close()
    await database?.drop()
  })
  const list = (url: string) =>
    tundish(['org', 'list'], { DATABASE_URL: url, MASTER_KEY: randomBytes(32).toString('base64') })
  async function refused(url: string, reason: RegExp): Promise<void> {
    const { code, stdout, stderr } = await list(url)
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, reason)
    assert.equal(stderr.trim().split('\n').length, 1, stderr)
  }

  test('a database whose certificate has no trusted authority, unless its authority is configured', async () => {
    await refused(
      proxy.untrustedUrl,
      /^The database of DATABASE_URL cannot be trusted \(self-signed certificate\): .+sslrootcert/,
    )
    assert.equal((await list(proxy.url('no-verify'))).code, 0)
  })

  test('one with the certificate of another host', () =>
    refused(proxy.url('verify-full', '127.0.0.1'), /cannot be trusted \(Hostname\/IP does not match/))

  test('one that does not speak TLS', async () => {
    const plain = await openProxy(database.url)
    try {
      await refused(
        `${plain.url}?sslmode=verify-full`,
        /cannot be trusted \(The server does not support SSL connections\)/,
      )
    } finally {
      await plain.cut()
    }
  })
})
