// A day's work of an operator, with commands alone: each operation of the API is a command, and each change is audited.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Command } from 'commander'
import { operations } from '../../src/admin/operations.ts'
import { tundish } from '../support/cli.ts'
import { ORGANIZATION, openEvents, PROJECT } from '../support/events.ts'

let events: Awaited<ReturnType<typeof openEvents>>
let env: Record<string, string>
before(async () => {
  events = await openEvents()
  env = Object.fromEntries(Object.entries(events.settings).map(([name, value]) => [name, value!]))
})
after(() => events.close())

async function json(...args: string[]) {
  const { code, stdout, stderr } = await tundish([...args, '--json'], env)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

test('every operation of the API is a command', async () => {
  const { stdout } = await tundish(['--help'], env)
  for (const [group, mine] of Map.groupBy(operations, ({ command }) => command.split(' ')[0]!)) {
    assert.match(stdout, new RegExp(`^ {2}${group}\\b`, 'm'))
    const { register } = await import(`../../src/commands/${group}.ts`)
    const program = new Command()
    register(program)
    const verbs = new Set(program.commands[0]!.commands.map((command) => command.name()))
    for (const { command } of mine) assert.ok(!command.includes(' ') || verbs.has(command.split(' ')[1]!), command)
  }
})

test('an endpoint is made, set, listed and removed', async () => {
  const made = await json(
    'webhook',
    'create',
    '--project',
    PROJECT,
    '--url',
    'http://127.0.0.1:9/',
    '--kinds',
    'charge.failed',
  )
  assert.deepEqual([made.kinds, made.enabled], [['charge.failed'], true])
  const off = await json('webhook', 'set', made.id, '--project', PROJECT, '--enabled', 'false')
  assert.deepEqual([off.enabled, off.disabled_because], [false, 'operator'])
  const { data } = await json('webhook', 'list', '--project', PROJECT)
  assert.deepEqual(
    data.map(({ id }: { id: string }) => id),
    [made.id],
  )
  assert.deepEqual(await json('webhook', 'remove', made.id, '--project', PROJECT), { id: made.id })
})

test('a setting that is an empty list is told as one, and only a list without items is nothing', async () => {
  const said = async (...args: string[]) => (await tundish(args, env)).stdout
  const nothing = /There is nothing\./
  const account = await said('merchant-account', 'set', 'simulator', 'none-yet', '--org', ORGANIZATION)
  assert.match(account, /^currencies +\[\]$/m)
  assert.doesNotMatch(account, nothing)
  const endpoint = await said('webhook', 'create', '--project', PROJECT, '--url', 'http://127.0.0.1:9/')
  assert.match(endpoint, /^kinds +\[\]$/m)
  assert.doesNotMatch(endpoint, nothing)
  const [, id] = /^id +(\S+)$/m.exec(endpoint)!
  await tundish(['webhook', 'remove', id!, '--project', PROJECT], env)
  assert.match(await said('webhook', 'list', '--project', PROJECT), nothing)
  assert.match(await said('search', 'nobody@example.com'), nothing)
})

test('bad usage is exit code 2, a refusal is 1, each with a sentence', async () => {
  const cases: [args: string[], code: number, sentence: RegExp][] = [
    [['webhook', 'create', '--project', PROJECT, '--url', 'ftp://x'], 2, /^url must be an address/],
    [['webhook', 'set', 'x', '--project', PROJECT, '--enabled', 'maybe'], 2, /^enabled must be true or false/],
    [['webhook', 'list', '--project', 'nowhere'], 1, /^There is no project "nowhere"/],
    [['keys', 'list'], 2, /^Give either --org or --project/],
    [['event', 'list', '--project', PROJECT, '--limit', '0'], 2, /^limit must be a whole number/],
    ...['', 'x'.repeat(101), 'two\nlines'].map((name): [string[], number, RegExp] => [
      ['org', 'create', 'named', '--name', name],
      2,
      /^A name must have 1 to 100 characters and no control characters\.\n$/,
    ]),
    [['project', 'create', 'named', '--org', ORGANIZATION, '--name', ' '], 2, /^A name must have 1 to 100/],
    [['keys', 'create', '--project', PROJECT, '--name', 'two\nlines'], 2, /^A name must have 1 to 100/],
    [['operator', 'create', '--name', 'two\nlines'], 2, /^A name must have 1 to 100/],
    ...['', 'x'.repeat(257), 'a\tb'].map((id): [string[], number, RegExp] => [
      ['merchant-account', 'set', 'simulator', id, '--org', ORGANIZATION],
      2,
      /^psp_merchant_id must have 1 to 256 characters and no control characters\.\n$/,
    ]),
    [['org', 'create', ORGANIZATION], 1, /exists already/],
  ]
  for (const [args, code, sentence] of cases) {
    const outcome = await tundish(args, env)
    assert.equal(outcome.code, code, `${args.join(' ')}: ${outcome.stderr}`)
    assert.match(outcome.stderr, sentence)
    assert.equal(outcome.stdout, '')
  }
})

test('keys of a project are made by name, rotated with an overlap, and revoked', async () => {
  const made = await json('keys', 'create', '--project', PROJECT, '--name', 'warehouse')
  assert.match(made.secret_key, /^secret_/)
  const next = await json('keys', 'rotate', made.id, '--project', PROJECT, '--overlap-seconds', '3600')
  assert.equal(next.name, 'warehouse')
  assert.ok(next.previous_expires_at > new Date().toISOString())
  await json('keys', 'revoke', next.id, '--project', PROJECT)
  const { data } = await json('keys', 'list', '--project', PROJECT)
  const living = data.filter((key: { living: boolean }) => key.living).map((key: { name: string }) => key.name)
  assert.deepEqual(living.sort(), ['', 'warehouse'])
})

test('an operator key is made at the command line alone, and can be ended there', async () => {
  const made = await json('operator', 'create', '--name', 'Ada', '--scope', 'write', '--expires', '90d')
  assert.match(made.operator_key, /^operator_[A-Za-z0-9_-]{43}$/)
  await json('operator', 'revoke', made.id)
  assert.equal((await tundish(['operator', 'revoke', made.id], env)).code, 1)
})

test('what was done stands in the audit log with the account that did it; tampering is found', async () => {
  const { data } = await json('audit', 'list')
  const actions = data.map(({ action }: { action: string }) => action)
  for (const action of ['webhook.created', 'webhook.set', 'webhook.removed', 'key.rotated', 'operator.created']) {
    assert.ok(actions.includes(action), action)
  }
  assert.deepEqual([...new Set(data.map((entry: { actor_kind: string }) => entry.actor_kind))], ['command line'])
  assert.deepEqual((await json('audit', 'verify')).wrong, [])
  await events.app.db.query(`update audit_log set actor = 'nobody' where sequence = 2`)
  const { code, stdout } = await tundish(['audit', 'verify'], env)
  assert.deepEqual([code, stdout], [1, 'Entry 2 was changed or put in, or does not follow the one before it.\n'])
  const doctor = await tundish(['doctor'], env)
  assert.equal(doctor.code, 1)
  assert.match(doctor.stdout, /^FAILED +audit +Entry 2 was changed/m)
})
