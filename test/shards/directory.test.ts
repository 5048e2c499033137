// The directory of several shards: who has an organization and its keys, what a mistake in the settings says, and every command on each.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { createProject } from '../../src/core/tenants/tenants.ts'
import { follow } from '../../src/operations/shards/follow.ts'
import { readShards } from '../../src/operations/shards/shard.ts'
import { tundish } from '../support/cli.ts'
import { runStatement } from '../support/postgres.ts'
import { tundishAgain } from '../support/resident.ts'
import { until } from '../support/time.ts'
import { setUpShards } from './databases.ts'

const { folder, settings, masterKey, databases, envOf, write, create, withApp } = setUpShards()

const maps = join(folder, 'maps')
const runShards = (...words: string[]) => tundishAgain(['shards', ...words])
const directory = () => runShards('directory', '--in', settings, '--to', maps, '--json')
const mapOf = (name: string) => readFileSync(join(maps, `${name}.map`), 'utf8')
const hashOf = (key: string) => createHash('sha256').update(key).digest('hex').toUpperCase()

test('the maps have every organization, and every key by its hash, with the shard', async () => {
  const keys: Record<string, string[]> = {}
  for (const shard of ['north', 'south'] as const) keys[shard] = await create(shard, `${shard}-org`)
  const { code, stdout } = await directory()
  assert.equal(code, 0)
  assert.deepEqual(JSON.parse(stdout), {
    shards: 2,
    organizations: 2,
    projects: 2,
    keys: 4,
    conflicts: [],
    unreachable: [],
    not_loaded: [],
  })
  assert.equal(mapOf('organizations'), 'north-org north\nsouth-org south\n')
  assert.equal(mapOf('projects'), 'north-org-north north\nsouth-org-south south\n')
  const expected = Object.entries(keys).flatMap(([shard, all]) => all.map((key) => `${hashOf(key)} ${shard}\n`))
  assert.equal(mapOf('keys'), expected.sort().join(''))
})

test('a HAProxy that runs gets the maps without --follow too, and one that does not respond is named', async () => {
  const socket = join(folder, 'haproxy.sock')
  const commands: string[] = []
  const haproxy = await emptyHaproxy(socket, commands)
  const words = ['directory', '--in', settings, '--to', maps, '--haproxy', socket]
  try {
    const { code } = await runShards(...words)
    assert.equal(code, 0)
    assert.match(commands.join(''), /^add map \S+organizations\.map north-org north;add map \S+ south-org south$/m)
  } finally {
    await haproxy.stop()
  }
  const { code, stdout } = await runShards(...words)
  assert.equal(code, 1)
  assert.match(stdout, /^The maps could not be loaded: connect ENOENT \S+haproxy\.sock$/m)
})

test('a HAProxy that was reloaded gets the maps again: it may have read the files before their last change', async () => {
  const socket = join(folder, 'reloaded.sock')
  const commands: string[] = []
  const stopping = new AbortController()
  let isCurrent = false
  const info = () => {
    isCurrent = true
  }
  const log = { info, warn: () => {}, error: () => {} }
  const first = await emptyHaproxy(socket, commands, '1')
  const added = () => commands.filter((one) => one.includes('organizations.map north-org north')).length
  const shards = readShards(settings)
  const following = follow({ shards, folder: maps, sockets: [socket], log, signal: stopping.signal })
  try {
    await until('the maps to be loaded', () => isCurrent)
    const before = added()
    assert.ok(before > 0)
    await first.stop()
    const second = await emptyHaproxy(socket, commands, '2')
    await until('the maps to be loaded again', () => added() > before).finally(second.stop)
  } finally {
    stopping.abort()
    await following
  }
})

/** A server that responds like a HAProxy whose maps are empty. It ends each response by closing. */
async function emptyHaproxy(socket: string, commands: string[], pid = '1') {
  const server = createServer((connection) => {
    connection.once('data', (data) => {
      const text = String(data)
      commands.push(text)
      connection.end(text.startsWith('show info') ? `Name: HAProxy\nPid: ${pid}\n` : '')
    })
  }).listen(socket)
  await once(server, 'listening')
  const stop = async () => {
    server.close()
    await once(server, 'close')
  }
  return { stop }
}

test('a shard that Tundish was never started on is named', async () => {
  const empty = Object.assign(new URL(databases.north.url), { pathname: '/postgres' }).href
  write('empty', { DATABASE_URL: empty, MASTER_KEY: masterKey })
  const { code, stdout } = await directory()
  rmSync(join(settings, 'empty.env'))
  assert.equal(code, 1)
  assert.deepEqual(JSON.parse(stdout).unreachable, [
    'The shard empty has no tables of Tundish: start Tundish there. Its entries stay as they were.',
  ])
})

test('the database of another shard under another address is named, and its organizations are served as before', async () => {
  for (const shard of ['west', 'east']) {
    write(shard, { DATABASE_URL: `${databases.north.url}&application_name=copy`, MASTER_KEY: masterKey })
    const { code, stdout } = await directory()
    rmSync(join(settings, `${shard}.env`))
    assert.equal(code, 1)
    assert.deepEqual(JSON.parse(stdout).conflicts, [
      `The shard ${shard} has the database of north: correct its settings. Its entries stay as they were.`,
    ])
    assert.equal(mapOf('organizations'), 'north-org north\nsouth-org south\n')
    assert.match(mapOf('projects'), /^north-org-north north$/m)
  }
})

test('a shard whose settings lead to the database of another one keeps its organizations', async () => {
  write('south', { DATABASE_URL: `${databases.north.url}&application_name=copy`, MASTER_KEY: masterKey })
  const { code, stdout } = await directory()
  write('south', envOf('south'))
  assert.equal(code, 1)
  assert.deepEqual(JSON.parse(stdout).conflicts, [
    'The shard south has the database of north: correct its settings. Its entries stay as they were.',
  ])
  assert.equal(mapOf('organizations'), 'north-org north\nsouth-org south\n')
})

test('an organization on two shards is served by neither, and is named', async () => {
  for (const shard of ['north', 'south'] as const) await create(shard, 'twin')
  const { code, stdout } = await directory()
  assert.equal(code, 1)
  assert.deepEqual(JSON.parse(stdout).conflicts, ['The organization "twin" is on more than one shard.'])
  assert.match(mapOf('organizations'), /^twin moving$/m)
  assert.match(mapOf('projects'), /^twin-north moving\ntwin-south moving$/m)
  const { stdout: all } = await tundish(['shards', 'run', '--in', settings, '--json', '--', 'org', 'list'])
  const ids = JSON.parse(all).map(({ shard, exit_code, output }: never) => [
    shard,
    exit_code,
    (output as { id: string }[]).map(({ id }) => id).sort(),
  ])
  assert.deepEqual(ids, [
    ['north', 0, ['north-org', 'twin']],
    ['south', 0, ['south-org', 'twin']],
  ])
})

test('the mark of a move decides between two, and stops requests before', async () => {
  const { url } = databases.north
  const mark = JSON.stringify({ id: 'this-move', to: 'south', keys: {} })
  await runStatement(
    url,
    `insert into instance (name, value) values ('move twin', '${mark}'), ('move north-org', '${mark}')`,
  )
  // Brought by another move, or by none: not the one that is to come.
  await runStatement(databases.south.url, `insert into instance (name, value) values ('moved twin', 'another-move')`)
  const other = JSON.parse((await directory()).stdout)
  assert.deepEqual(other.conflicts, ['The organization "twin" is on more than one shard.'])
  await runStatement(databases.south.url, `update instance set value = 'this-move' where name = 'moved twin'`)
  const { stdout } = await directory()
  assert.deepEqual(JSON.parse(stdout).conflicts, [])
  assert.equal(mapOf('organizations'), 'north-org moving\nsouth-org south\ntwin south\n')
  const projects = 'north-org-north moving\nsouth-org-south south\ntwin-north south\ntwin-south south\n'
  assert.equal(mapOf('projects'), projects)
  await runStatement(url, `delete from instance where name like 'move %'`)
})

test('a project id that two organizations have is served for neither, and is named', async () => {
  await withApp('south', ({ db, seal }) =>
    createProject(db, seal, { id: 'north-org-north', organization: 'south-org' }),
  )
  const { code, stdout } = await directory()
  assert.equal(code, 1)
  assert.ok(
    JSON.parse(stdout).conflicts.includes(
      'The project id "north-org-north" is used by the organizations "north-org" and "south-org".',
    ),
  )
  assert.match(mapOf('projects'), /^north-org-north moving$/m)
  assert.match(mapOf('organizations'), /^north-org north\nsouth-org south$/m)
})

test('run returns the highest exit code, and puts the name of the shard into the words', async () => {
  const words = ['shards', 'run', '--in', settings, '--', 'backup', join(folder, '{shard}.backup')]
  const { code, stdout, stderr } = await tundish(words)
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^north:\nSaved .*\nsouth:\nSaved /s)
  assert.ok(readFileSync(join(folder, 'south.backup')).length > 0)
  const refused = await tundish(['shards', 'run', '--in', settings, '--', 'org', 'create', 'south-org'])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /The organization "south-org" exists already/)
})

test('2 for settings that do not fit together', async () => {
  const { url } = databases.south
  const cases: [Record<string, string>, RegExp][] = [
    [{ DATABASE_URL: url, MASTER_KEY: randomBytes(32).toString('base64') }, /another MASTER_KEY than north/],
    [{ DATABASE_URL: url, MASTER_KEY: masterKey }, /west has the database of another shard/],
    [{ MASTER_KEY: masterKey }, /west\.env: DATABASE_URL is required/],
    [
      {
        DATABASE_URL: `${url}&a=b`,
        MASTER_KEY: masterKey,
        REPLICATION_DATABASE_URL: 'postgress://tundish:secret@north/x',
      },
      /^\S+west\.env: REPLICATION_DATABASE_URL must begin with postgres:\/\/ or postgresql:\/\/\.\n$/,
    ],
    [
      { DATABASE_URL: `${url}&a=b`, MASTER_KEY: masterKey, REPLICATION_DATABASE_URL_FILE: '/nowhere' },
      /west\.env: REPLICATION_DATABASE_URL_FILE cannot be read: \/nowhere/,
    ],
    // A "#" within a value belongs to it, as in --env-file.
    [{ MASTER_KEY: masterKey, LOG_LEVEL: 'a#b' }, /west\.env: LOG_LEVEL must be .*, got "a#b"/],
  ]
  for (const [env, sentence] of cases) {
    write('west', env)
    const { code, stderr } = await directory()
    assert.equal(code, 2)
    assert.match(stderr, sentence)
  }
  rmSync(join(settings, 'west.env'))
  const nowhere = await runShards('directory', '--in', join(folder, 'nowhere'), '--to', maps)
  assert.deepEqual(
    [nowhere.code, nowhere.stderr],
    [2, `${join(folder, 'nowhere')} cannot be used: it does not exist (ENOENT).\n`],
  )
  const { code, stderr } = await runShards('move', 'north-org', '--in', settings, '--from', 'north', '--to', 'east')
  assert.equal(code, 2)
  assert.match(stderr, /There is no shard "east": the shards are north, south/)
})
