// Replaces the master key: everything that is sealed under the old one is sealed under the new one, in one transaction.
import type { App } from '../../app.ts'
import { type Actor, auditHeadsPath, openAudit } from '../../core/audit/audit.ts'
import { replaceChainKey } from '../../core/audit/chain-keys.ts'
import { resealAddresses } from '../../core/events/alert-addresses.ts'
import { resealKeys } from '../../core/tenants/reseal.ts'
import { Refusal } from '../../lib/errors.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import { resealAccounts } from '../../payments/providers/reseal.ts'

interface Options {
  actor: Actor
  /** The caller knows that no other process has the old key. */
  othersAreStopped: boolean
  /** Stores the new key before the commit. Of two replacements at the same time, only the first one's is called. */
  keep(): void
}

export interface Replaced {
  secret_keys: number
  merchant_accounts: number
  alert_destinations: number
}

/**
 * Seals keys of tenants, credentials of merchant accounts and addresses of alerts under `to`, keeps the key of the audit log's earlier entries,
 * and records the replacement in the log. Throws a `Refusal`, and changes nothing, while other processes are connected:
 * they would go on with the old key.
 */
export async function replaceMasterKey(
  app: App,
  to: Seal,
  { actor, othersAreStopped, keep }: Options,
): Promise<Replaced> {
  const audit = openAudit(to, auditHeadsPath(app.config))
  const { replaced, head } = await app.db.tx(async (query, commit) => {
    if (!othersAreStopped) await refuseWhileOthersRun(query)
    await recordMasterKey(query, app.seal, to)
    keep()
    const replaced = {
      secret_keys: await resealKeys(query, app.seal, to),
      merchant_accounts: await resealAccounts(query, app.seal, to),
      alert_destinations: await resealAddresses(query, app.seal, to),
    }
    await replaceChainKey(query, app.seal, to)
    const entry = { action: 'master_key.replaced', target: 'installation', after: replaced }
    return { replaced, head: await audit.append({ query, commit }, actor, entry) }
  })
  await audit.confirm(head)
  return replaced
}

// Connections of this program are younger than the program itself; a server has some that are older.
const OTHERS = `
  select count(*) as n from pg_stat_activity
  where datname = current_database() and application_name like 'tundish%'
    and backend_start < clock_timestamp() - make_interval(secs => $1)`

async function refuseWhileOthersRun(query: Query): Promise<void> {
  const [row] = await query(OTHERS, [process.uptime()])
  if (row!.n === '0') return
  throw new Refusal(
    `${row!.n} connections to the database are of other Tundish processes, which have the old key: stop them all first. If the connections belong to a pooler, repeat the command with --others-are-stopped.`,
  )
}

/** No program starts with another master key than the recorded one, and none adds to the audit log. */
async function recordMasterKey(query: Query, from: Seal, to: Seal): Promise<void> {
  const [row] = await query(`update instance set value = $1 where name = 'master key' and value = $2 returning name`, [
    to.fingerprint,
    from.fingerprint,
  ])
  if (!row) throw new Refusal('The master key was replaced by another command in the meantime. Nothing was changed.')
}
