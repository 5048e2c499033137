// Two shards on their own servers, each with a shop, and moves of the first one between them.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before } from 'node:test'
import { move } from '../../src/operations/shards/move.ts'
import { readShards, shardNamed } from '../../src/operations/shards/shard.ts'
import type { Shop } from '../failover/clients.ts'
import { fillShop } from '../failover/shop.ts'
import { tundish } from '../support/cli.ts'
import type { Cluster } from '../support/cluster.ts'
import { temporaryFolder } from '../support/folder.ts'
import { openLogicalCluster, settingsOf } from './installation.ts'

export type Side = 'a' | 'b'
export const SIDES: readonly Side[] = ['a', 'b']

interface PairOptions {
  /** More settings of both. */
  env?(): Promise<Record<string, string>>
  /** Called with the settings of each shard when its shop is there. */
  ready?(side: Side, env: Record<string, string>): Promise<void>
}

/** For the tests of a file: the shop "shop" is on a, and "other" on b. */
export function setUpPair({ env: moreEnv = async () => ({}), ready = async () => {} }: PairOptions = {}) {
  const folder = temporaryFolder()
  const settings = join(folder, 'settings')
  const clusters = {} as Record<Side, Cluster>
  const shops = {} as Record<Side, Omit<Shop, 'url'>>

  before(async () => {
    mkdirSync(settings)
    const masterKey = randomBytes(32).toString('base64')
    const more = await moreEnv()
    for (const name of SIDES) {
      clusters[name] = await openLogicalCluster()
      const env = { ...settingsOf(join(folder, name), clusters[name], masterKey, ''), ...more }
      const lines = Object.entries(env).map(([key, value]) => `${key}='${value}'\n`)
      writeFileSync(join(settings, `${name}.env`), lines.join(''))
      shops[name] = await fillShop(env, name === 'a' ? 'shop' : 'other')
      await ready(name, env)
    }
  })
  after(async () => {
    for (const cluster of Object.values(clusters)) await cluster.remove()
  })

  /** A move of the shop. */
  function between(from: Side, to: Side) {
    const shards = readShards(settings)
    return { organization: 'shop', from: shardNamed(shards, from), to: shardNamed(shards, to) }
  }

  /** Moves the shop, and does `work` before this step. Returns when each step began. */
  async function moveWhile(
    step: string,
    work: () => Promise<unknown>,
    [from, to]: readonly [Side, Side] = ['a', 'b'],
  ): Promise<Map<string, number>> {
    const steps = new Map<string, number>()
    const say = async (one: string) => {
      steps.set(one, performance.now())
      if (one === step) await work()
    }
    await move({ ...between(from, to), say })
    return steps
  }

  const numberOf = async (shard: Side, rows: string) =>
    Number((await clusters[shard].query(`select count(*) as n from ${rows}`))[0]!['n'])

  /** The shop as it was, with two valid keys, and nothing of a move. */
  async function assertServedBy(shard: Side): Promise<void> {
    assert.equal(await numberOf(shard, `profiles where project_id = 'shop-app'`), 4)
    assert.equal(await numberOf(shard, `customers where organization_id = 'shop'`), 4)
    assert.equal(await numberOf(shard, `secret_keys where organization_id = 'shop' and expires_at is null`), 2)
    const other = shard === 'a' ? 'b' : 'a'
    for (const rows of [`profiles where project_id = 'shop-app'`, `organizations where id = 'shop'`])
      assert.equal(await numberOf(other, rows), 0, `${other}: ${rows}`)
    for (const one of SIDES) await assertNothingLeft(one)
  }

  async function assertNothingLeft(shard: Side): Promise<void> {
    const left = [
      'pg_replication_slots',
      'pg_subscription',
      'pg_publication',
      `instance where name ~ '^(move|closed|arriving) '`,
    ]
    for (const rows of left) assert.equal(await numberOf(shard, rows), 0, `${shard}: ${rows}`)
  }

  return {
    folder,
    settings,
    clusters,
    shops,
    between,
    moveWhile,
    numberOf,
    assertServedBy,
    assertNothingLeft,
    run: (from: string, to: string, ...options: string[]) =>
      tundish(['shards', 'move', 'shop', '--in', settings, '--from', from, '--to', to, ...options]),
    on: (shard: string, ...words: string[]) => tundish([...words, '--env-file', join(settings, `${shard}.env`)]),
  }
}
