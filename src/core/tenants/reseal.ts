// Seals the secret keys of all tenants under another master key.
import { bytesFromPg } from '../../lib/pg/row-bytes.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'

const BATCH = 1000

/** Returns how many keys there are. Locks them until the end of the transaction. */
export async function resealKeys(query: Query, from: Seal, to: Seal): Promise<number> {
  const keys = await query('select id, sealed from secret_keys order by id for update')
  for (let at = 0; at < keys.length; at += BATCH) {
    const batch = keys.slice(at, at + BATCH)
    const sealed = batch.map(({ id, sealed }) => to.seal(from.open(bytesFromPg(sealed!), id!), id!))
    await query(
      `update secret_keys k set sealed = decode(given.sealed, 'hex')
       from unnest($1::uuid[], $2::text[]) given (id, sealed) where k.id = given.id`,
      [batch.map(({ id }) => id!), sealed.map((bytes) => bytes.toString('hex'))],
    )
  }
  return keys.length
}
