// An import with its entries in the audit log: one before it begins, one with its result.
import type { App } from '../../app.ts'
import { type Actor, addEntry } from '../../core/audit/audit.ts'
import { refuseLeaving } from '../../core/tenants/leaving.ts'
import { type ImportOptions, type ImportResult, importRecords, type Source } from '../../data/ingest/load.ts'

export async function importAudited(
  app: App,
  actor: Actor,
  options: ImportOptions,
  sources: Iterable<Source>,
): Promise<ImportResult> {
  const target = `project ${options.projectId}`
  const writeEntry = (action: string, after: object) => addEntry(app, actor, { action, target, after })
  const { live = false, merge = false, emitEvents = false, dryRun = false, skipBadLines = false } = options
  await refuseLeaving(app.db.query, { project_id: options.projectId })
  await writeEntry('import.begun', {
    live,
    merge,
    emit_events: emitEvents,
    dry_run: dryRun,
    skip_bad_lines: skipBadLines,
  })
  const result = await importRecords(app, options, sources)
  const { rejects: _rejects, ...counts } = result
  await writeEntry('import.ended', counts)
  return result
}
