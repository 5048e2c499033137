// A day's work of an operator, with commands alone: each operation of the API is a command, and each change is audited.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import { Webhook } from 'standardwebhooks'
import { webhookSecret } from '../../../src/core/tenants/key-text.ts'
import { operationsOf } from '../../../src/operator/admin/groups.ts'
import { operations } from '../../../src/operator/admin/operations.ts'
import { jsonOf, spawnTundish, tundish } from '../../support/cli.ts'
import { ORGANIZATION, openEvents, PROJECT } from '../../support/events.ts'
import { load } from '../../support/imports.ts'
import { startReceiver } from '../../support/receiver.ts'
import { tundishAgain } from '../../support/resident.ts'
import { column, columns } from '../../support/rows.ts'
import { eventually } from '../../support/time.ts'

const events = await openEvents()
after(() => events.close())
const env = events.settings

const json = (...args: string[]) => jsonOf(tundishAgain([...args, '--json'], env))

test('every operation of the API is a command', async () => {
  const { stdout } = await tundish(['--help'], env)
  for (const [group, mine] of Map.groupBy(operations, ({ command }) => command.split(' ')[0]!)) {
    assert.match(stdout, new RegExp(`^ {2}${group}\\b`, 'm'))
    assert.deepEqual(new Set(await operationsOf(group)), new Set(mine), `groups.ts: ${group}`)
    if (mine.some(({ command }) => command === group)) continue
    const help = (await tundishAgain([group, '--help'], env)).stdout
    for (const { command } of mine) assert.match(help, new RegExp(`^ {2}${command.split(' ')[1]}\\b`, 'm'), command)
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
  assert.deepEqual(column(data, 'id'), [made.id])
  assert.deepEqual(await json('webhook', 'remove', made.id, '--project', PROJECT), { id: made.id })
})

test('an empty list in a setting is printed as [], an empty list of objects as a sentence', async () => {
  const said = async (...args: string[]) => (await tundishAgain(args, env)).stdout
  const nothing = /Nothing found\./
  const account = await said('merchant-account', 'set', 'simulator', 'none-yet', '--org', ORGANIZATION)
  assert.match(account, /^currencies +\[\]$/m)
  assert.doesNotMatch(account, nothing)
  const endpoint = await said('webhook', 'create', '--project', PROJECT, '--url', 'http://127.0.0.1:9/')
  assert.match(endpoint, /^kinds +\[\]$/m)
  assert.doesNotMatch(endpoint, nothing)
  const [, id] = /^id +(\S+)$/m.exec(endpoint)!
  await tundishAgain(['webhook', 'remove', id!, '--project', PROJECT], env)
  assert.match(await said('webhook', 'list', '--project', PROJECT), nothing)
  assert.match(await said('search', 'nobody@example.com'), nothing)
})

test('a local webhook address is refused with the command and the setting that allow it', async () => {
  const strict = { ...env, WEBHOOK_ALLOW_PRIVATE: 'false' }
  for (const url of ['http://127.0.0.1:3000/', 'https://127.0.0.1/', 'https://localhost/', 'https://app.localhost']) {
    const { code, stderr } = await tundishAgain(['webhook', 'create', '--project', PROJECT, '--url', url], strict)
    assert.equal(code, 2)
    assert.match(stderr, /"tundish webhook listen --forward-to URL", or set WEBHOOK_ALLOW_PRIVATE=true\.\n$/, url)
  }
})

test('a local address of alerts is refused with the setting that allows it, and no command that forwards no alerts', async () => {
  const strict = { ...env, WEBHOOK_ALLOW_PRIVATE: 'false' }
  const set = ['alert', 'destination', 'set', 'team', '--project', PROJECT, '--kind', 'slack', '--address']
  for (const address of ['http://127.0.0.1:3000/', 'https://localhost/']) {
    const { code, stderr } = await tundishAgain([...set, address], strict)
    assert.equal(code, 2)
    assert.match(stderr, /\. For a program on this machine, set WEBHOOK_ALLOW_PRIVATE=true\.\n$/, address)
  }
})

test('webhook listen forwards each new event of its kinds once, signed, without an endpoint', async () => {
  const receiver = await startReceiver(({ body }) => (body.includes('first') ? 204 : 500))
  await events.event({ data: { old: true } })
  const args = ['webhook', 'listen', '--project', PROJECT, '--forward-to', `${receiver.url}/hooks`]
  const listener = spawnTundish([...args, '--kinds', 'charge.succeeded'], { ...env, WEBHOOK_ALLOW_PRIVATE: 'false' })
  let output = ''
  listener.stdout.setEncoding('utf8').on('data', (text) => {
    output += text
  })
  try {
    assert.ok(await eventually(() => output.includes('Forwarding')), output)
    const first = await events.event({ data: { name: 'first' } })
    await events.event({ type: 'charge.failed', data: { name: 'other' } })
    const second = await events.event({ data: { name: 'second' } })
    assert.ok(await eventually(() => output.includes(second)), output)
    listener.kill('SIGINT')
    assert.deepEqual(await once(listener, 'exit'), [0, null])
    assert.match(output, new RegExp(`^charge\\.succeeded {2}${first} {2}204, \\d+ ms$`, 'm'))
    assert.match(output, new RegExp(`^charge\\.succeeded {2}${second} {2}500, \\d+ ms$`, 'm'))
    assert.equal(receiver.arrivals.length, 2)
    for (const { body, headers } of receiver.arrivals)
      new Webhook(webhookSecret(events.secretKey)).verify(body, headers as Record<string, string>)
  } finally {
    listener.kill('SIGKILL')
    await receiver.close()
  }
})

test('webhook listen ends with a sentence at the first event that no key of the project can sign', async () => {
  const receiver = await startReceiver()
  await json('project', 'create', 'keyless', '--org', ORGANIZATION)
  const { data } = await json('keys', 'list', '--project', 'keyless')
  await json('keys', 'revoke', data[0].id, '--project', 'keyless')
  const listener = spawnTundish(['webhook', 'listen', '--project', 'keyless', '--forward-to', receiver.url], env)
  const stderr = text(listener.stderr)
  const ended = once(listener, 'exit')
  await once(listener.stdout, 'data')
  await events.event({}, 'keyless')
  assert.deepEqual(await ended, [1, null])
  assert.match(
    await stderr,
    /^The project "keyless" has no full key, so its webhooks cannot be signed: "tundish keys create/,
  )
  assert.deepEqual(receiver.arrivals, [])
  await receiver.close()
})

test('org show and org set print the same, with the rate limit, and so does project show', async () => {
  await tundishAgain(['org', 'set', ORGANIZATION, '--rate-limit', '200/1000'], env)
  const set = await tundishAgain(['org', 'set', ORGANIZATION, '--one-off-charge', 'on'], env)
  assert.deepEqual(await tundishAgain(['org', 'show', ORGANIZATION], env), set)
  assert.match(set.stdout, /^rate_limit +200\/1000$/m)
  assert.match(set.stdout, /^one_off_charge_enabled +true$/m)
  assert.equal((await json('project', 'show', PROJECT)).rate_limit, 'default')
  await json('org', 'set', ORGANIZATION, '--rate-limit', 'default')
})

test('profile erase removes the personal data of a person, and the audit log says who asked', async () => {
  const line = { record: 'profile', data: { id: 'pro_1', created_at: '2026-01-31T09:00:00Z', email: 'a@example.com' } }
  await load(events.app, PROJECT, [line])
  assert.deepEqual(await json('profile', 'erase', 'pro_1', '--yes', '--project', PROJECT), {
    id: 'pro_1',
    erased: ['pro_1'],
    same_person: [],
  })
  const [row] = await events.app.db.query(`select email from profiles where id = 'pro_1'`)
  assert.equal(row!.email, null)
  const { data } = await json('audit', 'list', '--limit', '2')
  assert.deepEqual(columns(data, 'action', 'actor_kind'), [
    ['profiles.erased', 'command line'],
    ['profile.erase_asked', 'command line'],
  ])
})

// As people write lists.
const RESTRICTED = ['--scope', 'write, read', '--rate-limit', '20/100']

test('keys of a project are made by name, rotated with an overlap, and revoked', async () => {
  const made = await json('keys', 'create', '--project', PROJECT, '--name', 'warehouse', ...RESTRICTED)
  assert.match(made.secret_key, /^secret_/)
  assert.deepEqual([made.scopes, made.rate_limit], [['read', 'write'], '20/100'])
  const next = await json('keys', 'rotate', made.id, '--project', PROJECT, '--overlap', '1h')
  assert.equal(next.name, 'warehouse')
  assert.ok(next.previous_expires_at > new Date().toISOString())
  await json('keys', 'revoke', next.id, '--project', PROJECT)
  const { data } = await json('keys', 'list', '--project', PROJECT)
  const living = data.filter((key: { living: boolean }) => key.living).map((key: { name: string }) => key.name)
  assert.deepEqual(living.sort(), ['', 'warehouse'])
})

test('an operator key is made at the command line, and can be revoked there', async () => {
  const made = await json('operator', 'create', '--name', 'Ada', '--scope', 'write', '--expires', '90d')
  assert.match(made.operator_key, /^operator_[A-Za-z0-9_-]{43}$/)
  await json('operator', 'revoke', made.id)
  assert.equal((await tundishAgain(['operator', 'revoke', made.id], env)).code, 1)
})

test('every change is in the audit log with the account that made it; tampering is found', async () => {
  const { data } = await json('audit', 'list')
  const actions = data.map(({ action }: { action: string }) => action)
  for (const action of ['webhook.created', 'webhook.set', 'webhook.removed', 'key.rotated', 'operator.created']) {
    assert.ok(actions.includes(action), action)
  }
  assert.deepEqual([...new Set(data.map((entry: { actor_kind: string }) => entry.actor_kind))], ['command line'])
  assert.deepEqual((await json('audit', 'verify')).wrong, [])
  await events.app.db.query(`update audit_log set actor = 'nobody' where sequence = 2`)
  const { code, stdout } = await tundishAgain(['audit', 'verify'], env)
  assert.deepEqual([code, stdout], [1, 'Entry 2 was changed or inserted, or does not follow the one before it.\n'])
  const doctor = await tundishAgain(['doctor'], env)
  assert.equal(doctor.code, 1)
  assert.match(doctor.stdout, /^FAILED +audit +Entry 2 was changed/m)
})

test('fields of a response are one block, and several lists have their names above them', async () => {
  const said = async (...args: string[]) => (await tundishAgain(args, env)).stdout
  const figures = await said(
    'figures',
    'show',
    'sales',
    '--project',
    PROJECT,
    '--from',
    '2026-01-01',
    '--to',
    '2026-01-31',
  )
  assert.match(figures, /^from +2026-01-01\nto +2026-01-31\ntime_zone +UTC\ncompared_with +-\nas_of +\S+\n\nsales\n0\n/)
  const file = join(env['DATA_DIR']!, 'person.ndjson')
  const person = { id: 'pro_ada', created_at: '2026-01-31T09:00:00Z', email: 'ada@example.com' }
  await writeFile(file, JSON.stringify({ record: 'profile', data: person }))
  assert.equal((await tundishAgain(['import', '--project', PROJECT, file], env)).code, 0)
  const shown = await said('profile', 'show', person.id, '--project', PROJECT)
  assert.match(shown, /^profile:\nid +pro_ada\n/)
  for (const list of ['sessions', 'orders', 'declined_payments'])
    assert.match(shown, new RegExp(`\n\n${list}:\nNothing found\\.\n`), list)
  await tundishAgain(['profile', 'erase', person.id, '--yes', '--project', PROJECT], env)
  const receipt = await said('profile', 'receipt', person.id, '--project', PROJECT)
  assert.match(receipt, /^removed +E-mail address, .+\n {13}IP addresses, .+\n/m)
})

test('an operator is made with a role, a reach and a limit; the list shows them', async () => {
  const words = ['operator', 'create', '--name', 'Grace', '--role', 'support', '--project', PROJECT, '--expires', '90d']
  const made = await json(...words, '--refund-limit', '50 USD', '--refund-limit', '45.50 eur')
  const limits = { USD: '50', EUR: '45.50' }
  assert.deepEqual(
    [made.role, made.organizations, made.projects, made.refund_limits],
    ['support', [], [PROJECT], limits],
  )
  const { data } = await json('operator', 'list')
  const listed = data.find(({ id }: { id: string }) => id === made.id)
  assert.deepEqual([listed.role, listed.reach, listed.refund_limits], ['support', `projects ${PROJECT}`, limits])
  assert.ok(listed.expires_at > new Date().toISOString())
  const short = await json('operator', 'create', '--name', 'Ada', '--scope', 'write')
  assert.equal(short.role, 'owner')
  for (const [wrong, sentence] of [
    [['--role', 'boss'], /Allowed choices are owner, developer/],
    [['--role', 'read', '--scope', 'write'], /cannot be used with/],
    [['--role', 'read', '--refund-limit', '1 USD'], /--refund-limit is for --role support/],
    [['--role', 'support', '--refund-limit', '50'], /such as "50 USD", got "50"/],
    [['--role', 'support', '--refund-limit', '50 XXQ'], /"XXQ" is not a currency/],
    [['--role', 'support', '--refund-limit', '5.5 JPY'], /JPY has 0 decimal places/],
    [['--org', 'nowhere'], /There is no organization "nowhere"/],
  ] as const) {
    const { code, stderr } = await tundishAgain(['operator', 'create', '--name', 'Bob', ...wrong], env)
    assert.ok(code !== 0, wrong.join(' '))
    assert.match(stderr, sentence)
  }
})
