// The keys that chain the audit log: that of the current master key, and those of the master keys before it.
import { bytesFromPg } from '../../lib/pg/row-bytes.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { chainKey } from './chain.ts'

/** Returns the key of an entry by its sequence. */
export async function readChainKeys(query: Query, seal: Seal): Promise<(sequence: string) => Buffer> {
  const earlier = (await readSealed(query)).map((row) => ({
    last: BigInt(row.last_sequence),
    key: openKey(seal, row),
  }))
  const current = chainKey(seal)
  return (sequence) => earlier.find(({ last }) => BigInt(sequence) <= last)?.key ?? current
}

/**
 * Keeps the key of the old master key for the entries up to now, and seals all earlier ones under the new master key.
 * The head stays locked until the end of the transaction, so that no entry follows with the old key.
 */
export async function replaceChainKey(query: Query, from: Seal, to: Seal): Promise<void> {
  const [head] = await query('select sequence from audit_head for update')
  const keys = (await readSealed(query)).map((row) => ({ last: row.last_sequence, key: openKey(from, row) as Buffer }))
  keys.push({ last: head!.sequence!, key: chainKey(from) })
  for (const { last, key } of keys) {
    await query(
      `insert into audit_chain_keys (last_sequence, sealed) values ($1, $2)
       on conflict (last_sequence) do update set sealed = excluded.sealed`,
      [last, to.seal(key.toString('base64'), contextOf(last))],
    )
  }
}

interface SealedKey {
  last_sequence: string
  sealed: string
}

const readSealed = async (query: Query) =>
  (await query('select last_sequence, sealed from audit_chain_keys order by last_sequence')) as unknown as SealedKey[]

const openKey = (seal: Seal, { last_sequence, sealed }: SealedKey) =>
  Buffer.from(seal.open(bytesFromPg(sealed), contextOf(last_sequence)), 'base64')

const contextOf = (last: string) => `audit chain up to ${last}`
