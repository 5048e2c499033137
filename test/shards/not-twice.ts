// At no time do two shards serve the shop.
import assert from 'node:assert/strict'
import type { Query } from '../../src/lib/pg/types.ts'
import { directoryOf, type Part, readPart } from '../../src/operations/shards/directory.ts'
import type { Cluster } from '../support/cluster.ts'
import { SIDES, type Side } from './pair.ts'

/** At most one shard accepts a key of the shop, and the directory leads to none but that one. */
export async function assertNotServedTwice(clusters: Record<Side, Cluster>): Promise<void> {
  const open: Side[] = []
  const parts = new Map<string, Part>()
  for (const shard of SIDES) {
    const { query } = clusters[shard]
    const valid = await query(`
      select 1 from secret_keys where organization_id = 'shop' and (expires_at is null or expires_at > now())`)
    if (valid.length > 0) open.push(shard)
    parts.set(shard, await readPart(query as unknown as Query))
  }
  assert.ok(open.length <= 1, 'both shards accept its keys')
  const { organizations, conflicts } = directoryOf(parts)
  assert.deepEqual(conflicts, [])
  const place = organizations.get('shop')
  assert.ok(place === 'moving' || place === open[0], `it is at ${place}, and its keys at ${open}`)
}
