// Moves an organization between two servers under charges: nothing is lost or charged twice, and a move that was killed goes on.
import assert from 'node:assert/strict'
import { createHash, randomBytes, randomUUID } from 'node:crypto'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Shop } from '../failover/clients.ts'
import { fillShop } from '../failover/shop.ts'
import { type ServerProcess, startProcess, succeeded, tundish } from '../support/cli.ts'
import type { Cluster } from '../support/cluster.ts'
import { temporaryFolder } from '../support/folder.ts'
import { type Json, ok } from '../support/server.ts'
import { openSimulator } from '../support/simulators.ts'
import { until } from '../support/time.ts'
import { freeze } from './frozen-mover.ts'
import { openLogicalCluster, settingsOf } from './installation.ts'
import { tablesWith } from './traces.ts'

const folder = temporaryFolder()
const settings = join(folder, 'settings')
const clusters: Record<string, Cluster> = {}
const servers: Record<string, ServerProcess> = {}
let shop: Omit<Shop, 'url'>

mkdirSync(settings)
const simulator = await openSimulator()
const masterKey = randomBytes(32).toString('base64')
for (const name of ['a', 'b']) {
  clusters[name] = await openLogicalCluster()
  const env = settingsOf(join(folder, name), clusters[name], masterKey, simulator.url)
  const lines = Object.entries(env).map(([key, value]) => `${key}='${value}'\n`)
  writeFileSync(join(settings, `${name}.env`), lines.join(''))
  servers[name] = await startProcess(env)
  if (name === 'a') shop = await fillShop(env, 'shop')
  else await fillShop(env, 'other')
}
const keyIds: string[] = (await clusters['a']!.query('select id::text as id from secret_keys')).map(({ id }) => id!)
after(async () => {
  for (const server of Object.values(servers)) await server.stop()
  for (const cluster of Object.values(clusters)) await cluster.remove()
  await simulator.cleanUp()
})

const wordsOfMove = (from: string, to: string, folderOfSettings = settings) => [
  'shards',
  'move',
  'shop',
  '--in',
  folderOfSettings,
  '--from',
  from,
  '--to',
  to,
]
const move = (from: string, to: string) => tundish([...wordsOfMove(from, to), '--json'])

async function shardsFindings(at: string): Promise<{ level: string; message: string; fix: string }[]> {
  const { stdout } = await tundish(['doctor', '--json', '--env-file', join(settings, `${at}.env`)])
  return JSON.parse(stdout).findings.filter(({ check }: Json) => check === 'shards')
}
const shardsFinding = async (at: string) => (await shardsFindings(at))[0]!

async function call(
  at: string,
  path: string,
  body?: object,
): Promise<{ status: number; headers: Headers; body: Json }> {
  const headers = { 'Service-Secret': shop.projectKey, 'Service-Secret-Key': shop.billingKey }
  const json = { 'Content-Type': 'application/json' }
  const init = body ? { method: 'POST', headers: { ...headers, ...json }, body: JSON.stringify(body) } : { headers }
  const response = await fetch(`${servers[at]!.url}${path}`, init)
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const charge = (at: string, idempotency_key: string = randomUUID()) =>
  call(at, '/shop/v1/payment/one_off_charge', {
    external_id: 'user-0',
    amount: '1.00',
    currency_code: 'USD',
    idempotency_key,
  })

const credits = (at: string, path: string, body: object) => ok(call(at, `/shop/v1/credits/${path}`, body))
const USER = { external_id: 'user-0', unit: 'tokens' }

/** A grant, a spend with the key `s`, a hold and a top-up; returns the response to the spend and the hold. */
async function useCredits(at: string): Promise<{ spent: Json; hold_id: string }> {
  const unit = ['credits', 'unit', 'create', 'tokens', '--org', 'shop', '--env-file', join(settings, `${at}.env`)]
  assert.equal((await tundish(unit)).code, 0)
  await credits(at, 'grant', { ...USER, amount: 100, idempotency_key: 'g' })
  const spent = await credits(at, 'spend', { ...USER, amount: 30, idempotency_key: 's' })
  const { hold_id } = await credits(at, 'hold', { ...USER, amount: 20, expires_in: 86_400, idempotency_key: 'h' })
  const most = { most_per_day: 1, most_per_month: 2 }
  const rule = { ...USER, below: 10, amount: '1.00', currency_code: 'USD', grants: 100, ...most }
  await credits(at, 'top_up/set', rule)
  return { spent, hold_id }
}

const creditsOf = async (at: string) => [
  await credits(at, 'balance', { external_id: 'user-0' }),
  await credits(at, 'entries', { external_id: 'user-0' }),
  await credits(at, 'top_up/list', { external_id: 'user-0' }),
]

const tablesOn = (at: string) => tablesWith(clusters[at]!, 'shop', keyIds)

test('the other shard responds as the first did, and the first has no row of it in any table', async () => {
  const limited = ['org', 'set', 'shop', '--rate-limit', '10/10000', '--env-file', join(settings, 'a.env')]
  assert.equal((await tundish(limited)).code, 0)
  const key = randomUUID()
  const first = await charge('a', key)
  assert.equal(first.body.checkout_status, 'succeeded')
  const list = await call('a', '/public/v1/transactions')
  await until('the rate of its key to be shared', async () => (await tablesOn('a')).includes('key_usage'))
  const window = '/public/v1/transactions?filter[updated_at.from]=2000-01-01T00:00:00Z'
  const horizon = (await call('a', window)).headers.get('x-sync-horizon')!
  const { spent, hold_id } = await useCredits('a')
  const held = await creditsOf('a')

  const stdout = await succeeded(move('a', 'b'))
  assert.ok(JSON.parse(stdout).rows > 10)
  assert.deepEqual(await tablesOn('a'), [])
  assert.equal((await charge('a')).status, 401)
  assert.deepEqual((await call('b', '/public/v1/transactions')).body, list.body)
  const replay = await charge('b', key)
  assert.deepEqual(replay.body, { ...first.body, idempotent_replay: true })
  assert.deepEqual(await creditsOf('b'), held)
  const again = await credits('b', 'spend', { ...USER, amount: 30, idempotency_key: 's' })
  assert.deepEqual(again, { ...spent, idempotent_replay: true })
  const captured = await credits('b', 'capture', { hold_id, idempotency_key: 'c' })
  assert.deepEqual([captured.balance, captured.held], [50, 0])
  const stamps = (await creditsOf('b'))[1].entries.map(({ created_at }: Json) => created_at)
  assert.deepEqual(stamps, stamps.toSorted())
  assert.ok((await call('b', window)).headers.get('x-sync-horizon')! >= horizon)
  const { stdout: audit } = await tundish(['shards', 'run', '--in', settings, '--json', '--', 'audit', 'list'])
  const actions = JSON.parse(audit).map(({ output }: Json) => output.data[0].action)
  assert.deepEqual(actions, ['organization.moved_out', 'organization.moved_in'])
})

test('back again with charges until it stops: each is paid once, in the order and the report', async () => {
  const paid: string[] = []
  let stopped = false
  const charging = (async () => {
    while (!stopped) {
      const { status, body } = await charge('b')
      if (status === 401) break
      if (body.checkout_status === 'succeeded') paid.push(body.order_id)
    }
  })()
  await until('some charges', () => paid.length > 5)
  const { code, stderr } = await move('b', 'a')
  stopped = true
  await charging
  assert.equal(code, 0, stderr)
  assert.deepEqual(await tablesOn('b'), [])
  const ids = async (text: string) => (await clusters['a']!.query(text)).map(({ id }) => id).sort()
  const orders = await ids(
    `select order_id::text as id from orders where organization_id = 'shop' and status = 'succeeded'`,
  )
  const report = await ids(`
    select order_id::text as id from report_transactions where organization_id = 'shop' and not imported`)
  const ledger = (await (await fetch(`${simulator.url}/ledger`)).json()) as { reference: string }[]
  assert.deepEqual(orders, report)
  assert.deepEqual(orders, ledger.map(({ reference }) => reference).sort())
  for (const id of paid) assert.ok(orders.includes(id))
  const errors = Object.values(servers).flatMap(({ log }) => log.filter(({ level }) => Number(level) > 30))
  assert.deepEqual(errors, [])
})

test('a role that may not leave out the checks of foreign keys moves with them, and a sentence says what to grant', async () => {
  const cluster = clusters['b']!
  const lockAll = (sql: string) => againAfterDeadlock(() => cluster.query(sql))
  await lockAll(`
    create role plain login password 'plain' in role pg_create_subscription;
    grant create on database tundish to plain;
    grant create on schema public to plain;
    do $$ declare name text; begin
      for name in select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') loop
        execute format('alter table %I owner to plain', name);
      end loop;
    end $$`)
  const plain = join(folder, 'plain')
  cpSync(settings, plain, { recursive: true })
  const file = join(plain, 'b.env')
  const url = Object.assign(new URL(cluster.url), { username: 'plain', password: 'plain' }).href
  writeFileSync(file, readFileSync(file, 'utf8').replace(/^DATABASE_URL=.*$/m, `DATABASE_URL='${url}'`))
  const checked = await tundish(wordsOfMove('a', 'b', plain))
  assert.equal(checked.code, 0, checked.stderr)
  assert.match(
    checked.stderr,
    /^Foreign keys are checked on b, which takes longer\. To leave that out: grant set on parameter session_replication_role to its role\.\nCopying\n/,
  )
  assert.deepEqual(await tablesOn('a'), [])
  await cluster.query('grant set on parameter session_replication_role to plain')
  const unchecked = await tundish(wordsOfMove('b', 'a', plain))
  assert.equal(unchecked.code, 1)
  assert.match(
    unchecked.stderr,
    /^Copying\nThe role of b may not replicate \(.* replication slots\): run "alter role … replication" there; its tables must be its own\.\n$/,
  )
  await cluster.query('alter role plain replication')
  const replicated = await tundish(wordsOfMove('b', 'a', plain))
  assert.equal(replicated.code, 0, replicated.stderr)
  assert.doesNotMatch(replicated.stderr, /Foreign keys are checked/)
  await lockAll('reassign owned by plain to tundish')
})

/** Runs statements that lock all tables, again after a deadlock with the server, which locks them in another order. */
async function againAfterDeadlock(work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      return void (await work())
    } catch (error) {
      if ((error as { code?: string }).code !== '40P01') throw error
    }
  }
}

test('a move that was killed is begun anew, and the first shard accepts the keys if it cannot be', async () => {
  const mover = await freeze(settings, 'when its keys have ended', 'a', 'b')
  await mover.end('SIGKILL')
  await until('the doctor to see that nothing moves it', async () => (await shardsFinding('a')).level === 'failed')
  const { message, fix } = await shardsFinding('a')
  assert.match(
    message,
    /^The move of "shop" to b was broken off\. Its requests are refused\. Its replication slot tundish_move_[0-9a-f]{16} holds back [0-9]+\.[0-9] MiB of the log/,
  )
  const command = 'tundish shards move shop --in FOLDER --from SHARD --to b'
  assert.equal(fix, `Finish it: ${command}. To give it up: the same with --give-up.`)
  // Not 401, for which callers would not try again.
  await until('the key to be forgotten', async () => (await charge('a')).status === 503)
  assert.equal((await charge('a')).headers.get('x-error-code'), 'database_unavailable')
  const { status } = await fetch(`${servers['a']!.url}/public/v1/products`, {
    headers: { 'Service-Secret': 'another' },
  })
  assert.equal(status, 401)
  const newer = '9999'
  await clusters['b']!.query(
    `insert into schema_migrations (version, name, breaking) values (${newer}, 'later', false)`,
  )
  const refused = await move('a', 'b')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /The shards have different migrations/)
  assert.equal((await charge('a')).body.checkout_status, 'succeeded')
  await clusters['b']!.query(`delete from schema_migrations where version = ${newer}`)
  await succeeded(move('a', 'b'))
  assert.deepEqual(await tablesOn('a'), [])
  assert.equal(await shardsFinding('a'), undefined)
  assert.equal((await charge('b')).body.checkout_status, 'succeeded')
})

test('the doctor names the slot of a copy that was broken off, and one whose organization is gone', async () => {
  const slots = ['other', 'nobody'].map(
    (id) => `tundish_move_${createHash('sha256').update(id).digest('hex').slice(0, 16)}`,
  )
  for (const slot of slots)
    await clusters['b']!.query(`select pg_create_logical_replication_slot('${slot}', 'pgoutput')`)
  const findings = await shardsFindings('b')
  assert.deepEqual(
    findings.map(({ level, message }) => [level, message.replace(/[0-9]+\.[0-9] MiB/, 'N MiB')]).sort(),
    [
      `A move of "other" was broken off while it was copied. Its replication slot ${slots[0]}`,
      `A move of an organization that is no longer here has left something behind. Its replication slot ${slots[1]}`,
    ].map((message) => ['warning', `${message} holds back N MiB of the log, and more with each write.`]),
  )
  assert.deepEqual(
    findings.map(({ fix }) => fix.replace(/ If the other shard is gone, run here: select pg_drop_\S+;$/, '')).sort(),
    [
      `Run on the other shard: drop subscription ${slots[1]};`,
      'Run the same "tundish shards move" again: it starts over, or with --give-up removes the remains.',
    ],
  )
  for (const slot of slots) await clusters['b']!.query(`select pg_drop_replication_slot('${slot}')`)
})

test('1 and a sentence where the organization is not, and where the server cannot replicate', async () => {
  const absent = await move('a', 'b')
  assert.equal(absent.code, 1)
  assert.match(absent.stderr, /There is no organization "shop" on a/)
  await clusters['b']!.query('alter system reset wal_level')
  await clusters['b']!.stop()
  await clusters['b']!.start()
  const refused = await move('b', 'a')
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /Set wal_level = logical on the server of b/)
  await until('the server to be back', async () => (await charge('b')).status === 200)
})
