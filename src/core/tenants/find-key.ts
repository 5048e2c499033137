// Finds the holder of a key by its hash.
import type { Db } from '../../lib/pg/db.ts'
import { rateOf } from './key-rate.ts'
import { isEndedByMove } from './leaving.ts'
import type { KeyHolder } from './tenants.ts'

/** The holder of the valid key with this hash; `leaving` if a move to another shard has ended it. One prepared statement. */
export async function findKey(db: Db, hash: Buffer): Promise<KeyHolder | 'leaving' | undefined> {
  const [row] = await db.read(FIND_KEY, [hash])
  if (!row) return undefined
  const [organization_id, project_id, key_id, rate, burst, valid, scopes, name, writesPayments, ownRate, ownBurst] =
    row.texts() as (string | null)[]
  if (valid === 'f') return 'leaving'
  const limits = { rate: rateOf(rate, burst), ownRate: rateOf(ownRate, ownBurst) }
  const held = { scopes: scopes?.split(',') ?? null, name: name!, writesPayments: writesPayments === 't' }
  return { organization_id: organization_id!, project_id: project_id!, key_id: key_id!, ...limits, ...held }
}

const FIND_KEY = {
  name: 'find key',
  text: `select k.organization_id, k.project_id, k.id,
           case when k.project_id is null then o.rate_limit else p.rate_limit end,
           case when k.project_id is null then o.rate_limit_burst else p.rate_limit_burst end, v.valid,
           array_to_string(k.scopes, ','), k.name, p.write_payments, k.rate_limit, k.rate_limit_burst
         from secret_keys k join organizations o on o.id = k.organization_id left join projects p on p.id = k.project_id
           cross join lateral (select k.expires_at is null or k.expires_at > db_clock() as valid) v
         where k.hash = $1 and (v.valid or ${isEndedByMove('k')})`,
}
