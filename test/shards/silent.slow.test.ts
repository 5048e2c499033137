// A shard that does not respond: the others get their entries and their commands, its own entries stay, and it is named.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import pg from 'pg'
import { spawnTundish, tundish } from '../support/cli.ts'
import { runStatement } from '../support/postgres.ts'
import { type DatabaseProxy, openProxy } from '../support/proxy.ts'
import { until } from '../support/time.ts'
import { setUpShards } from './databases.ts'

const { folder, settings, databases, envOf, write, create } = setUpShards({}, cutIn)
let way: DatabaseProxy

async function cutIn(): Promise<void> {
  way = await openProxy(databases.north.url)
  for (const name of ['north', 'south'] as const) await create(name, `${name}-org`)
  write('north', { ...envOf('north'), DATABASE_URL: way.url })
}
after(() => way.cut())

const mapOf = (name: string) => readFileSync(join(folder, 'maps', `${name}.map`), 'utf8')
const keysOn = (shard: string) => mapOf('keys').match(new RegExp(` ${shard}$`, 'gm'))?.length
const words = (...more: string[]) => ['shards', 'directory', '--in', settings, '--to', join(folder, 'maps'), ...more]

test('--follow continues for the other shards, whenever one stops responding', async () => {
  const log: string[] = []
  const follower = spawnTundish(words('--follow'), {}, ['ignore', 'pipe', 'inherit'])
  follower.stdout!.setEncoding('utf8').on('data', (text) => log.push(text))
  const ended = once(follower, 'close')
  await until('the first maps', () => log.join('').includes('The maps are current.'))
  way.freeze()
  await create('south', 'second-org')
  await until('the new organization', () => /^second-org south$/m.test(mapOf('organizations')))
  assert.match(mapOf('organizations'), /^north-org north$/m)
  await until('the silent shard to be named', () =>
    log.join('').includes('The shard north cannot be reached (no response within 10 seconds).'),
  )
  follower.kill('SIGTERM')
  assert.equal((await ended)[0], 0)
})

test('1, with the entries of the silent shard and what is new on the others; an organization that moved there is refused', async () => {
  await create('south', 'third-org')
  // As if the maps had been written before a move to the silent shard began, and while another one was under way.
  const more = 'gone-org south\nunderway-org moving\n'
  writeFileSync(join(folder, 'maps/organizations.map'), `${mapOf('organizations')}${more}`)
  const { code, stdout } = await tundish(words('--json'))
  assert.equal(code, 1)
  assert.deepEqual(JSON.parse(stdout), {
    shards: 2,
    organizations: 6,
    projects: 4,
    keys: 8,
    conflicts: [],
    unreachable: ['The shard north cannot be reached (no response within 10 seconds). Its entries stay as they were.'],
    not_loaded: [],
  })
  const expected = [
    'gone-org moving',
    'north-org north',
    'second-org south',
    'south-org south',
    'third-org south',
    'underway-org moving',
  ]
  assert.equal(mapOf('organizations'), expected.map((line) => `${line}\n`).join(''))
  assert.deepEqual([keysOn('north'), keysOn('south')], [2, 6])
  const projects = ['north-org-north north', 'second-org-south south', 'south-org-south south', 'third-org-south south']
  assert.equal(mapOf('projects'), projects.map((line) => `${line}\n`).join(''))
})

test('an organization that the silent shard had is refused, unless a mark says where it is', async () => {
  const { url } = databases.south
  await create('south', 'north-org')
  await create('south', 'back-org')
  writeFileSync(join(folder, 'maps/organizations.map'), `${mapOf('organizations')}back-org north\n`)
  await runStatement(url, `insert into instance (name, value) values ('move back-org', '{"to": "north", "keys": {}}')`)
  assert.equal((await tundish(words())).code, 1)
  assert.match(mapOf('organizations'), /^back-org north\n(.*\n)*north-org moving$/m)
})

test('run leaves out the silent shard, and names it', async () => {
  const { code, stdout, stderr } = await tundish(['shards', 'run', '--in', settings, '--', 'org', 'list'])
  assert.equal(code, 1)
  assert.match(stdout, /^north:\nsouth:\n.*third-org/s)
  assert.match(
    stderr,
    /^The shard north cannot be reached \(no response within 10 seconds\): the command was not finished there\.$/m,
  )
})

test('a command during which its shard stops to respond is ended, and the next shard has its turn', async () => {
  await way.cut()
  await way.mend()
  const holder = new pg.Client({ connectionString: databases.north.url })
  await holder.connect()
  await holder.query('begin; lock table products in access exclusive mode')
  const running = tundish(['shards', 'run', '--in', settings, '--', 'backup', join(folder, '{shard}.backup')])
  await until('the backup to wait for the lock', async () => {
    const { rows } = await holder.query(`select 1 from pg_locks where not granted and relation = 'products'::regclass`)
    return rows.length > 0
  })
  way.freeze()
  const { code, stdout, stderr } = await running.finally(() => holder.end())
  assert.equal(code, 1)
  assert.match(stdout, /^north:\n.*south:\nSaved /s)
  assert.match(stderr, /^The shard north cannot be reached/m)
})

test('a shard whose database refuses connections keeps its entries too', async () => {
  await way.cut()
  const { code, stdout } = await tundish(words())
  await way.mend()
  assert.equal(code, 1)
  assert.match(stdout, /The shard north cannot be reached \(.*ECONNREFUSED.*Its entries stay as they were\./)
  // Its own, and those of the organization that is on its way to it.
  assert.equal(keysOn('north'), 4)
})
