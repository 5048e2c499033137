// An operator's changes of an organization that is moved: carried over, or refused with a sentence, never made in part.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type App, openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { refuseLeaving } from '../../src/core/tenants/leaving.ts'
import { regenerateKey, within } from '../../src/core/tenants/tenants.ts'
import { openLog } from '../../src/lib/log.ts'
import { until } from '../support/time.ts'
import { freeze, untilDisconnected } from './frozen-mover.ts'
import { type Side, setUpPair } from './pair.ts'

const apps = {} as Record<Side, App>
const { folder, settings, clusters, moveWhile, numberOf, on } = setUpPair({
  ready: async (side, env) => {
    apps[side] = await openApp(readConfig(env), { log: openLog('silent') })
  },
})
after(async () => {
  for (const app of Object.values(apps)) await app.close()
})

const LINE = JSON.stringify({
  record: 'product',
  data: { id: 'late', name: 'Late', status: 'active', created_at: '2026-01-01T00:00:00Z' },
})
/** Changes of each kind: in one transaction, in several, of a separate command, and an import. */
function changes(): string[][] {
  const file = join(folder, 'late.ndjson')
  writeFileSync(file, `${LINE}\n`)
  return [
    ['keys', 'regenerate', '--yes', '--project', 'shop-app'],
    ['keys', 'regenerate', '--yes', '--org', 'shop', '--overlap', '24h'],
    ['keys', 'create', '--project', 'shop-app', '--name', 'More'],
    ['org', 'set', 'shop', '--one-off-charge', 'off'],
    ['project', 'create', 'shop-second', '--org', 'shop'],
    ['profile', 'erase', 'user-3', '--yes', '--project', 'shop-app'],
    ['import', '--project', 'shop-app', file],
  ]
}

async function assertRefused(at: Side, to: Side): Promise<void> {
  const sentence = `The organization "shop" is being moved to the shard ${to}: change it there when it has moved. If that was broken off, run the move again, or with --give-up.\n`
  for (const words of changes()) {
    const { code, stderr } = await on(at, ...words)
    assert.deepEqual([code, stderr], [1, sentence], words.join(' '))
  }
}

/** When the keys of the shop end, the oldest first. */
const keysOn = async (side: Side) =>
  (
    await clusters[side].query(`
      select coalesce(project_id, 'organization') || case when expires_at is null then ' valid' when expires_at > now() then ' ends'
        else ' ended' end as text
      from secret_keys where organization_id = 'shop' order by project_id nulls first, created_at`)
  ).map(({ text }) => text)

test('a key that is regenerated while the tables are copied is the valid one on the new shard', async () => {
  await moveWhile('Stopping requests', async () => {
    for (const words of changes().slice(0, 2)) assert.equal((await on('a', ...words)).code, 0)
  })
  assert.deepEqual(await keysOn('b'), ['organization ends', 'organization valid', 'shop-app ended', 'shop-app valid'])
})

test('from the mark on every change is refused, and the move ends as if there had been none', async () => {
  const before = await keysOn('b')
  const frozen = await freeze(settings, 'before its keys end', 'b', 'a')
  await assertRefused('b', 'a')
  assert.equal((await frozen.end('SIGCONT')).code, 0)
  assert.deepEqual(await keysOn('a'), before)
  assert.equal(await numberOf('a', `organizations where id = 'shop' and one_off_charge_enabled`), 1)
  assert.equal(await numberOf('a', `products where id = 'late'`), 0)
})

test('a mover killed after the commit: the old rows take no change, for they would be lost', async () => {
  const frozen = await freeze(settings, 'after the commit on the new shard', 'a', 'b')
  await frozen.end('SIGKILL')
  await untilDisconnected(clusters.a, clusters.b)
  await assertRefused('a', 'b')
  for (const words of changes().slice(2)) assert.equal((await on('b', ...words)).code, 0, words.join(' '))
  await moveWhile('', async () => {}, ['a', 'b'])
  assert.equal(await numberOf('b', `products where id = 'late'`), 1)
  assert.equal(await numberOf('a', `organizations where id = 'shop'`), 0)
})

test('a change that began before the mark ends first, and is carried over', async () => {
  const before = await keysOn('b')
  const { db, seal } = apps.b
  const begun = Promise.withResolvers<void>()
  const ending = Promise.withResolvers<void>()
  let change: Promise<void> | undefined
  const beginChange = () => {
    change = db.tx(async (query) => {
      await refuseLeaving(query, { project_id: 'shop-app' })
      begun.resolve()
      await ending.promise
      await regenerateKey(within(query), seal, { project: 'shop-app' })
    })
    return begun.promise
  }
  const moving = moveWhile('Stopping requests', beginChange, ['b', 'a'])
  const waits = `pg_stat_activity where application_name = 'tundish shards' and wait_event_type = 'Lock'`
  await until('the mover to wait for it', async () => (await numberOf('b', waits)) > 0)
  ending.resolve()
  await change
  await moving
  const after = await keysOn('a')
  const ended = before.map((text) => text!.replace(/^shop-app valid/, 'shop-app ended'))
  assert.deepEqual(after.sort(), [...ended, 'shop-app valid'].sort())
})
