// Commands on every shard: their lists merged into one, and one operator key for all.
import assert from 'node:assert/strict'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { jsonOf, startProcess, tundish } from '../support/cli.ts'
import type { Json } from '../support/server.ts'
import { setUpShards } from './databases.ts'

const PERSON = 'ada@example.com'
const SHARDS = ['north', 'south'] as const
const { folder, settings, envOf, withApp, create } = setUpShards({ PORT: '0', ADMIN_PORT: '0' }, addPeople)
const run = (options: string[], ...words: string[]) =>
  tundish(['shards', 'run', '--in', settings, ...options, '--', ...words])
const merged = (...words: string[]): Promise<Json[]> => jsonOf(run(['--merge', '--json'], ...words))

async function addPeople(): Promise<void> {
  for (const shard of SHARDS) {
    await create(shard, `${shard}-org`)
    await withApp(shard, ({ db }) =>
      db.query(
        `insert into customers (organization_id, external_id, project_id, email, email_folded, created_at, updated_at)
         values ($1, 'ada', $2, $3, lower($3), db_clock(), db_clock())`,
        [`${shard}-org`, `${shard}-org-${shard}`, PERSON],
      ),
    )
  }
}

test('lists of organizations and projects, and a search, are one list with the shard of each row', async () => {
  const pick = (rows: Json[], ...names: string[]) => rows.map((row) => names.map((name) => row[name]))
  assert.deepEqual(pick(await merged('org', 'list'), 'shard', 'id'), [
    ['north', 'north-org'],
    ['south', 'south-org'],
  ])
  assert.deepEqual(pick(await merged('project', 'list'), 'shard', 'id', 'organization_id'), [
    ['north', 'north-org-north', 'north-org'],
    ['south', 'south-org-south', 'south-org'],
  ])
  assert.deepEqual(pick(await merged('search', PERSON), 'shard', 'kind', 'project_id', 'id'), [
    ['north', 'customer', 'north-org-north', 'ada'],
    ['south', 'customer', 'south-org-south', 'ada'],
  ])
})

test('a table has the columns of the list, the shard first', async () => {
  const { code, stdout } = await run(['--merge'], 'audit', 'list')
  assert.deepEqual([code, stdout], [0, 'Nothing found.\n'])
  const { stdout: table } = await run(['--merge'], 'search', PERSON)
  assert.match(table, /^shard {2}kind +organization_id .*\nnorth {2}customer .*\nsouth {2}customer .*\n$/)
})

test('findings of the doctor have the shard, and the exit code is the highest', async () => {
  await withApp('south', ({ db }) =>
    db.query(`insert into instance (name, value) values ('move south-org', '{"to": "north", "keys": {}}')`),
  )
  const { code, stdout } = await run(['--merge', '--json'], 'doctor')
  await withApp('south', ({ db }) => db.query(`delete from instance where name = 'move south-org'`))
  assert.equal(code, 1)
  const findings = JSON.parse(stdout) as Json[]
  assert.deepEqual([...new Set(findings.map(({ shard }) => shard))], [...SHARDS])
  const failed = findings.filter(({ level }) => level === 'failed')
  assert.deepEqual(
    failed.map(({ shard, check }) => [shard, check]),
    [['south', 'shards']],
  )
})

test('a refusal on one shard is named on standard error, and the rows of the others are printed', async () => {
  const { code, stdout, stderr } = await run(['--merge', '--json'], 'org', 'show', 'south-org')
  assert.equal(code, 1)
  assert.deepEqual(
    JSON.parse(stdout).map(({ shard, id }: Json) => [shard, id]),
    [['south', 'south-org']],
  )
  assert.match(stderr, /north: ended with 1\.\n$/)
})

test('an operator key from a file is valid on every shard, and nothing prints it', async () => {
  const file = join(folder, 'operator.key')
  const made = await merged('operator', 'create', '--name', 'Ada', '--key-file', file)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const key = readFileSync(file, 'utf8').trim()
  const [first, second] = made
  assert.deepEqual(made, [
    { shard: 'north', id: first!.id, name: 'Ada', role: 'read', key_file: file },
    { shard: 'south', id: first!.id, name: 'Ada', role: 'read', key_file: file },
  ])
  assert.equal(second!.id, first!.id)
  const servers = await Promise.all(SHARDS.map((shard) => startProcess({ ...envOf(shard), SIMULATOR_URL: '' })))
  const statuses = () =>
    Promise.all(
      servers.map(async ({ adminUrl }) => {
        const response = await fetch(`${adminUrl}/admin/v1/projects`, { headers: { authorization: `Bearer ${key}` } })
        return response.status
      }),
    )
  try {
    assert.deepEqual(await statuses(), [200, 200])
    const again = await run([], 'operator', 'create', '--name', 'Bob', '--key-file', file)
    assert.equal(again.code, 1)
    assert.match(again.stderr, new RegExp(`This key has been created before, with the id ${first!.id}\\.`))
    const { code, stdout } = await run([], 'operator', 'revoke', first!.id)
    assert.equal(code, 0)
    assert.deepEqual(await statuses(), [401, 401])
    for (const text of [again.stderr, again.stdout, stdout, JSON.stringify(servers.map(({ log }) => log))])
      assert.ok(!text.includes(key))
  } finally {
    for (const server of servers) await server.stop()
  }
})

test('2 for a file with anything but one key of the right form', async () => {
  const file = join(folder, 'chosen.key')
  const chosen = `operator_${'a'.repeat(42)}`
  for (const text of [chosen, `operator_${'a'.repeat(43)}\n${chosen}`, 'password']) {
    writeFileSync(file, text)
    const args = ['operator', 'create', '--name', 'Ada', '--key-file', file]
    const { code, stderr } = await tundish(args, envOf('north'))
    assert.equal(code, 2)
    assert.equal(
      stderr,
      `${file} must have one operator key, as "tundish operator create" makes it, and nothing else.\n`,
    )
  }
})

test('more pages of a shard are named with its cursor', async () => {
  const { code } = await tundish(['operator', 'create', '--name', 'Bob'], envOf('north'))
  assert.equal(code, 0)
  const { stdout, stderr } = await run(['--merge', '--json'], 'operator', 'list', '--limit', '1')
  assert.deepEqual(
    JSON.parse(stdout).map(({ shard, name }: Json) => [shard, name]),
    [
      ['north', 'Bob'],
      ['south', 'Ada'],
    ],
  )
  assert.match(stderr, /^There are more on north: --cursor \S+\n$/)
})
