// All shards backed up and restored: every organization is on one shard again, and who was erased on any of them stays erased.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fillShop } from '../failover/shop.ts'
import { succeeded, tundish } from '../support/cli.ts'
import type { Cluster } from '../support/cluster.ts'
import { temporaryFolder } from '../support/folder.ts'
import type { Json } from '../support/server.ts'
import { openLogicalCluster, settingsOf } from './installation.ts'

const folder = temporaryFolder()
const settings = join(folder, 'settings')
const clusters: Record<string, Cluster> = {}
const SHOPS = { north: 'shop', south: 'other' } as const
type Shard = keyof typeof SHOPS
const SHARDS = Object.keys(SHOPS) as Shard[]

before(async () => {
  mkdirSync(settings)
  const masterKey = randomBytes(32).toString('base64')
  for (const name of SHARDS) {
    const cluster = await openLogicalCluster()
    clusters[name] = cluster
    const env = settingsOf(join(folder, name), cluster, masterKey, '')
    const lines = Object.entries(env).map(([key, value]) => `${key}='${value}'\n`)
    writeFileSync(join(settings, `${name}.env`), lines.join(''))
    await fillShop(env, SHOPS[name])
    await cluster.query(`
      update profiles set email = id || '@${SHOPS[name]}.example', email_folded = id || '@${SHOPS[name]}.example'`)
  }
})
after(async () => {
  for (const cluster of Object.values(clusters)) await cluster.remove()
})

const succeed = (...words: string[]) => succeeded(tundish(words))
const on = (shard: Shard, ...words: string[]) => succeed(...words, '--env-file', join(settings, `${shard}.env`))
const onEach = (...words: string[]) => succeed('shards', 'run', '--in', settings, '--', ...words)
const move = (from: Shard, to: Shard) => succeed('shards', 'move', 'shop', '--in', settings, '--from', from, '--to', to)
const erase = (shard: Shard, user: string, shop: string) =>
  on(shard, 'profile', 'erase', user, '--yes', '--project', `${shop}-app`)
const directory = () => tundish(['shards', 'directory', '--in', settings, '--to', join(folder, 'maps'), '--json'])
const ledgerOf = (shard: Shard) => join(folder, shard, 'erasures.ndjson')

/** The rows of all shards, as `SHARD ID`. */
async function merged(...words: string[]): Promise<string[]> {
  const rows = JSON.parse(await succeed('shards', 'run', '--in', settings, '--merge', '--json', '--', ...words))
  return rows.map(({ shard, id }: Json) => `${shard} ${id}`)
}

/** The people who are on any shard with an e-mail address. */
async function people(): Promise<string[]> {
  const found = await Promise.all(
    SHARDS.map((shard) => clusters[shard]!.query('select email from profiles where email is not null')),
  )
  return found
    .flat()
    .map(({ email }) => email!)
    .sort()
}

test('a backup of all shards from before a move and three erasures brings back everything but the erased', async () => {
  await onEach('backup', join(folder, '{shard}.backup'))
  await erase('north', 'user-1', 'shop')
  await erase('south', 'user-1', 'other')
  await move('north', 'south')
  await erase('south', 'user-2', 'shop')
  assert.deepEqual(await merged('org', 'list'), ['south other', 'south shop'])

  // The first shard alone has the organization back, without the erasure that only the second one knows.
  await on('north', 'restore', join(folder, 'north.backup'), '--replace')
  assert.ok((await people()).includes('user-2@shop.example'))
  const both = await directory()
  assert.equal(both.code, 1)
  assert.deepEqual(JSON.parse(both.stdout).conflicts, ['The organization "shop" is on more than one shard.'])

  const ledgers = SHARDS.map(ledgerOf)
  await onEach('restore', join(folder, '{shard}.backup'), '--replace', '--erasures', ...ledgers)
  const { code, stdout } = await directory()
  assert.equal(code, 0, stdout)
  assert.deepEqual(JSON.parse(stdout), {
    shards: 2,
    organizations: 2,
    projects: 2,
    keys: 4,
    conflicts: [],
    unreachable: [],
    not_loaded: [],
  })
  assert.deepEqual(await merged('org', 'list'), ['north shop', 'south other'])
  assert.deepEqual(await people(), [
    'user-0@other.example',
    'user-0@shop.example',
    'user-2@other.example',
    'user-3@other.example',
    'user-3@shop.example',
  ])
})

test('a backup of all shards from after a move has the organization where it was moved to', async () => {
  await move('north', 'south')
  await onEach('backup', join(folder, '{shard}.backup'), '--force')
  await move('south', 'north')
  await erase('north', 'user-3', 'shop')
  await onEach('restore', join(folder, '{shard}.backup'), '--replace', '--erasures', ...SHARDS.map(ledgerOf))
  assert.equal((await directory()).code, 0)
  assert.deepEqual(await merged('org', 'list'), ['south other', 'south shop'])
  assert.deepEqual(
    (await people()).filter((address) => address.endsWith('shop.example')),
    ['user-0@shop.example'],
  )
})
