// Enters a restore in the audit log, and gives the restored log a file of heads of its own.
import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { type Actor, auditHeadsPath, openAudit } from '../audit/audit.ts'
import type { Config } from '../config.ts'
import type { Query } from '../lib/pg/types.ts'
import type { Seal } from '../lib/secrets.ts'
import type { Header } from './format.ts'

/**
 * Adds the entry in the caller's transaction; to be called last. Answers what is to be done after the commit: the file
 * of heads that knows the entries which the restore has lost is set aside under the name that stands in the entry, as
 * to the restored log they would look removed. It is kept: it proves that they were there.
 */
export async function enterInAudit(
  query: Query,
  config: Config,
  seal: Seal,
  { actor, file, header }: { actor: Actor; file: string; header: Header },
): Promise<() => Promise<void>> {
  const heads = auditHeadsPath(config)
  const aside = existsSync(heads) ? `${heads}.before-${stamp()}` : undefined
  const fresh = `${heads}.restoring`
  await rm(fresh, { force: true })
  const audit = openAudit(seal, fresh)
  // The restore commits it.
  const head = await audit.append({ query, commit: () => {} }, actor, {
    action: 'backup.restored',
    target: `backup ${header.made_at}`,
    after: { file, tundish: header.tundish, heads_set_aside: aside ?? null },
  })
  return async () => {
    await audit.confirm(head)
    if (aside) await rename(heads, aside)
    await rename(fresh, heads)
  }
}

// To the second is enough for a name.
const stamp = () => new Date().toISOString().replace(/[-:]|\..*/g, '')
