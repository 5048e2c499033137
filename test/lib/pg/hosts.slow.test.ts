// Several hosts in DATABASE_URL: the primary is found among them, at the start and after a failover.
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { mistakesIn } from '../../../src/lib/pg/database-url.ts'
import { readHosts } from '../../../src/lib/pg/hosts.ts'
import { tundish } from '../../support/cli.ts'
import { openReplicated, type Replicated } from '../../support/replica.ts'
import { type Project, startTestServer, type TestServer } from '../../support/server.ts'
import { until } from '../../support/time.ts'

describe('an address with several hosts', () => {
  for (const [address, hosts, target, first] of [
    [
      'postgres://u:p@one:5433,two/db?target_session_attrs=primary',
      ['one:5433', 'two:5432'],
      'primary',
      'postgres://u:p@one:5433/db?',
    ],
    [
      'postgresql://u:p@[::1]:1,[::2]/db?sslmode=require',
      ['[::1]:1', '[::2]:5432'],
      'any',
      'postgresql://u:p@[::1]:1/db?sslmode=require',
    ],
    ['postgres://u:p@/db?host=/a,/b&port=7', ['/a:7', '/b:7'], 'any', 'postgres://u:p@localhost/db?host=%2Fa&port=7'],
    ['postgres://u:p@one/db?target_session_attrs=standby', ['one:5432'], 'standby', 'postgres://u:p@one:5432/db?'],
  ] as const) {
    test(`is read: ${address}`, () => {
      const list = readHosts(address)!
      assert.deepEqual(
        list.hosts.map(({ host, port }) => `${host}:${port}`),
        hosts,
      )
      assert.deepEqual([list.target, list.at(list.hosts[0]!)], [target, first])
      assert.deepEqual(mistakesIn(address), [])
    })
  }

  test('is not treated as several with one host and no target', () =>
    assert.equal(readHosts('postgres://u:p@one:5433/db'), undefined))

  test('with an unknown target is refused in a sentence', () => {
    const [mistake] = mistakesIn('postgres://u:p@one,two/db?target_session_attrs=master')
    assert.match(mistake!, /^must have a target_session_attrs that is one of any, read-write, /)
  })
})

describe('a server with a standby and a primary in DATABASE_URL', { timeout: 240_000 }, () => {
  let databases: Replicated
  let server: TestServer
  let project: Project
  before(async () => {
    databases = await openReplicated()
    const { primary, replica } = databases
    const hosts = encodeURIComponent(`${replica.sockets()},${primary.sockets()}`)
    const own = encodeURIComponent(primary.sockets())
    server = await startTestServer({
      DATABASE_URL: `${primary.url.replace(own, hosts)}&target_session_attrs=read-write`,
    })
    project = await server.project()
  })
  after(async () => {
    await server.stop()
    await databases.close()
  })

  const write = async () => (await project.post('/profiles/anonymize', { profile_ids: ['nobody'] })).status
  const read = async () => (await project.get('/funnels')).status

  test('writes to the primary, though the standby is named first', async () => {
    assert.deepEqual([await read(), await write()], [200, 404])
  })

  test('reads at the primary too: a horizon that is written there passes', async () => {
    const { status, headers } = await project.get('/profiles', { 'filter[updated_at.from]': '2020-01-01T00:00:00Z' })
    assert.deepEqual([status, typeof headers['x-sync-horizon']], [200, 'string'])
  })

  test('is warned of by the doctor while commits wait for no standby', async () => {
    const { stdout } = await tundish(['doctor', '--json'], server.env)
    const finding = JSON.parse(stdout).findings.find(({ check }: { check: string }) => check === 'replication')
    assert.deepEqual(
      [finding.level, finding.message],
      ['warning', 'Commits do not wait for a standby: synchronous_standby_names is empty.'],
    )
  })

  test('503 while there is no primary, and finds the standby that became one', async () => {
    await databases.replica.catchUp()
    await databases.primary.stop('SIGQUIT')
    await until('503', async () => (await write()) === 503)
    await databases.replica.promote()
    await until('the new primary', async () => (await write()) === 404 && (await read()) === 200, 60_000)
    const made = await server.project()
    assert.equal((await made.get('/funnels')).status, 200)
  })
})
