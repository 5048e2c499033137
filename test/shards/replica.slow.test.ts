// A move to a shard with a replica that lags: it serves nothing of the organization before it has replayed the move.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { move } from '../../src/operations/shards/move.ts'
import { type ServerProcess, startProcess } from '../support/cli.ts'
import { openReplica, type Replica } from '../support/replica.ts'
import { until } from '../support/time.ts'
import { type Side, setUpPair } from './pair.ts'

// While its replay is paused, the replica may serve the whole test what it has.
const LONG_MS = '300000'

let server: ServerProcess
let replica: Replica
const { clusters, shops, between } = setUpPair({
  ready: async (side, env) => {
    if (side === 'a') return
    replica = await openReplica(clusters.b)
    server = await startProcess({ ...env, READ_DATABASE_URL: replica.url, READ_MAX_LAG_MS: LONG_MS })
  },
})
after(async () => {
  await server.stop()
  await replica.remove()
})

/** The profiles of the shop that was on this shard at first, as the new shard lists them, and where they were read. */
async function list(of: Side): Promise<{ profiles: number; target: string }> {
  const before = await reads()
  const response = await fetch(`${server.url}/public/v1/profiles`, {
    headers: { 'Service-Secret': shops[of].projectKey },
  })
  assert.equal(response.status, 200)
  const { data } = (await response.json()) as { data: unknown[] }
  const now = await reads()
  const target = [...now].find(([name, n]) => n > (before.get(name) ?? 0))![0]
  return { profiles: data.length, target }
}

async function reads(): Promise<Map<string, number>> {
  const text = await (await fetch(`${server.adminUrl}/metrics`)).text()
  const found = [...text.matchAll(/^tundish_reads_total\{target="(\w+)",why="(\w+)"\} (\d+)$/gm)]
  return new Map(found.map(([, target, why, n]) => [`${target} ${why}`, Number(n)]))
}

test('a list is read at the primary until the replica has replayed the move', async () => {
  await until('reads from the replica', async () => (await list('b')).target === 'replica fresh')
  await replica.pause()
  await move({ ...between('a', 'b'), say: () => {} })
  assert.deepEqual(await list('a'), { profiles: 4, target: 'primary erasure' })
  assert.equal((await list('b')).target, 'replica fresh')
  await replica.resume()
  await until('its reads from the replica', async () => (await list('a')).target === 'replica fresh')
  assert.equal((await list('a')).profiles, 4)
})
