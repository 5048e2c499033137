// One of two copies of an organization is removed, after the shard that it had left was restored: never the only one.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { tundish } from '../support/cli.ts'
import type { Cluster } from '../support/cluster.ts'
import type { Json } from '../support/server.ts'
import { type Side, setUpPair } from './pair.ts'
import { tablesWith } from './traces.ts'

const { folder, settings, clusters, run, on, numberOf } = setUpPair()

const remove = (from: Side, ...more: string[]) =>
  tundish(['shards', 'remove', 'shop', '--in', settings, '--from', from, ...more])
const backup = join(folder, 'a.backup')

async function succeed(outcome: Promise<{ code: number | null; stdout: string; stderr: string }>): Promise<string> {
  const { code, stdout, stderr } = await outcome
  assert.equal(code, 0, stderr)
  return stdout
}

async function assertRefused(outcome: ReturnType<typeof remove>, sentence: RegExp): Promise<void> {
  const { code, stdout, stderr } = await outcome
  assert.deepEqual([code, stdout], [1, ''])
  assert.match(stderr, sentence)
}

/** Restores a to the time before the move: both shards have the shop then. */
const restore = () => succeed(on('a', 'restore', backup, '--replace', '--without-erasures'))

async function conflicts(): Promise<string[]> {
  const { stdout } = await tundish(['shards', 'directory', '--in', settings, '--to', join(folder, 'maps'), '--json'])
  return JSON.parse(stdout).conflicts
}

/** A charge of one customer that has succeeded, on this shard only. */
const addCharge = ({ query }: Cluster) =>
  query(`
    insert into orders (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code, psp, region,
      payment_method_token, source_trx_id, provider_key, created_at, status, settled_at)
    select organization_id, '0199f0a6-52f0-7d51-8f0f-000000000001', external_id, 'shop-app', 'late', 1, 'USD', psp, region, payment_method_token,
      trx_id, 'late', timestamptz '2096-01-02 03:04:05Z', 'succeeded', db_clock()
    from report_transactions where organization_id = 'shop' and external_id = 'user-1' limit 1`)

test('refused for the only copy, whether the other shards have none or cannot be reached', async () => {
  await assertRefused(
    remove('a', '--yes'),
    /^No other shard that responds has "shop": what is on a is its only copy\.\n$/,
  )
  await assertRefused(remove('b', '--yes'), /^There is no organization "shop" on b\.\n$/)
  await succeed(on('a', 'backup', backup))
  await succeed(run('a', 'b'))
  await restore()
  assert.deepEqual(await conflicts(), ['The organization "shop" is on more than one shard.'])
  await clusters.b.stop('SIGQUIT')
  await assertRefused(remove('a', '--yes'), /is its only copy\. b cannot be reached\.\n$/)
  await clusters.b.start()
})

test('without --yes it prints what differs, and removes nothing', async () => {
  await addCharge(clusters.b)
  const { code, stdout } = await remove('b')
  assert.equal(code, 1)
  assert.match(
    stdout,
    /^b: [0-9]+ rows, newest change 2096-01-02T03:04:05\.000000Z\.\na: [0-9]+ rows, newest change 20[0-9-]+T[0-9:.]+Z\.\n.*orders 1 \(a: 0\).*\na lacks 1 order: 0199f0a6-52f0-7d51-8f0f-000000000001\.\nMade or possibly made, and missing on a: 1 charge, 0 refunds\. Erased on b only: 0 people\.\nNothing was removed\. To remove the copy on b, add --yes\.\n$/,
  )
  const json = JSON.parse((await remove('a', '--json')).stdout)
  assert.deepEqual(
    [json.removed, json.kept_on, json.missing_orders, json.missing_charges, json.tables.orders],
    [false, 'b', 0, 0, [0, 1]],
  )
  for (const side of ['a', 'b'] as const) assert.equal(await numberOf(side, `organizations where id = 'shop'`), 1)
})

test('refused where the other copy lacks charges or erasures of this one, and while it is moved', async () => {
  await assertRefused(
    remove('b', '--yes'),
    /^a lacks 1 charge and 0 refunds of "shop" that b has: remove the copy on a instead, or add --lose-charges\.\n$/,
  )
  await succeed(on('a', 'profile', 'erase', 'user-3', '--yes', '--project', 'shop-app'))
  await assertRefused(
    remove('a', '--yes', '--lose-charges'),
    /^1 person was erased in the copy of "shop" on a only, and would be back: run "tundish erasures reapply" on b with the ledger of a first\.\n$/,
  )
  const mark = JSON.stringify({ id: 'this', to: 'b', keys: {} })
  await clusters.a.query(`insert into instance (name, value) values ('move shop', '${mark}')`)
  await assertRefused(
    remove('a', '--yes'),
    /^"shop" is on its way from a to b: run that move again, or with --give-up\.\n$/,
  )
  await clusters.a.query(`delete from instance where name = 'move shop'`)
  for (const side of ['a', 'b'] as const) assert.equal(await numberOf(side, `organizations where id = 'shop'`), 1)
})

test('the older copy is removed, and the other one is served again', async () => {
  await succeed(on('b', 'erasures', 'reapply', join(folder, 'a/erasures.ndjson')))
  assert.match(
    await succeed(remove('a', '--yes')),
    /\nb lacks 0 orders\.\n.*\nThe copy on a is removed: "shop" is on b\.\n$/,
  )
  assert.deepEqual(await tablesWith(clusters.a, 'shop', ['no key']), [])
  assert.deepEqual(await conflicts(), [])
  assert.equal(await numberOf('b', `orders where organization_id = 'shop'`), 1)
  const { stdout } = await tundish(['shards', 'run', '--in', settings, '--json', '--', 'audit', 'list'])
  const newest = JSON.parse(stdout).map(({ output }: Json) => output.data[0])
  assert.deepEqual(
    newest.map(({ action, target }: Json) => [action, target]),
    [
      ['organization.copy_removed', 'organization shop'],
      ['organization.copy_kept', 'organization shop'],
    ],
  )
})

test('with --lose-charges the newer copy is removed, and the clocks of the other one do not go back', async () => {
  await restore()
  await clusters.b.query(`
    update project_clocks set floor = timestamptz '2096-01-02' where project_id = 'shop-app';
    update organization_clocks set last_trx_created_at = timestamptz '2096-01-01' where organization_id = 'shop'`)
  await succeed(remove('b', '--yes', '--lose-charges'))
  assert.deepEqual(await tablesWith(clusters.b, 'shop', ['no key']), [])
  assert.deepEqual(await conflicts(), [])
  const raised = [
    `project_clocks where project_id = 'shop-app' and floor >= '2096-01-02' and void_until >= '2096-01-02'`,
    `organization_clocks where organization_id = 'shop' and last_trx_created_at >= '2096-01-01'`,
  ]
  for (const rows of raised) assert.equal(await numberOf('a', rows), 1, rows)
})
