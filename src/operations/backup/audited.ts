// Records a restore in the audit log, and starts a new file of heads for the restored log.
import { existsSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import type { Config } from '../../config.ts'
import { type Actor, auditHeadsPath, openAudit } from '../../core/audit/audit.ts'
import type { RestoredMark } from '../../core/tenants/restored.ts'
import type { Query } from '../../lib/pg/types.ts'
import type { Seal } from '../../lib/secrets.ts'
import type { Header } from './format.ts'

/**
 * Adds the entry in the caller's transaction; call it last. Returns the work to do after the commit: the old file of heads
 * is renamed to the name in the entry, because entries that the restore has lost would look removed from the restored log.
 * The old file is kept as proof of those entries.
 */
export async function enterInAudit(
  query: Query,
  config: Config,
  seal: Seal,
  { actor, file, header, mark }: { actor: Actor; file: string; header: Header; mark: RestoredMark | undefined },
): Promise<() => Promise<void>> {
  const heads = auditHeadsPath(config)
  const aside = existsSync(heads) ? `${heads}.before-${stamp()}` : undefined
  const fresh = `${heads}.restoring`
  await rm(fresh, { force: true })
  const audit = openAudit(seal, fresh)
  // Committed with the restore.
  const head = await audit.append({ query, commit: () => {} }, actor, {
    action: 'backup.restored',
    target: `backup ${header.made_at}`,
    after: { file, tundish: header.tundish, heads_set_aside: aside ?? null, ...differencesOf(mark) },
  })
  return async () => {
    await audit.confirm(head)
    if (aside) await rename(heads, aside)
    await rename(fresh, heads)
  }
}

/** Null: there was no older state to compare with. */
const differencesOf = (mark: RestoredMark | undefined) => ({
  differences: mark && !mark.compared ? null : (mark?.differences ?? []),
})

// Seconds are precise enough for a name.
const stamp = () => new Date().toISOString().replace(/[-:]|\..*/g, '')
