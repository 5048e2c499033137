// People whose data the service has removed since they were imported: erased there, or merged into another profile.
import type { App } from '../../../app.ts'
import type { Actor } from '../../../core/audit/audit.ts'
import { targetsOf } from '../../../core/erasure/aliases.ts'
import { erase } from '../../../core/erasure/erasure.ts'
import { mergeProfiles } from '../../../core/people/merge.ts'
import { importLines, type Line } from '../line-import.ts'
import { idIn } from '../stripe/convert.ts'
import { reject } from '../stripe/tally.ts'
import { convert, type ItemKind, type Json, textOf } from './convert.ts'
import { findOne } from './details.ts'
import { totalOf } from './pages.ts'
import type { ApiSource } from './source.ts'
import type { ApiImportState } from './state.ts'

interface Importing {
  app: Pick<App, 'db' | 'log' | 'audit' | 'config'>
  state: Pick<ApiImportState, 'projectId' | 'notes'>
  source: ApiSource
  /** Whether the service is another Tundish: others have no merges. */
  hasExport: boolean
  actor: Actor
  signal: AbortSignal
  onRejected?: ((line: string) => void) | undefined
}

/** Erases people here who were erased at the service since they were imported, or merges them as the service has. */
export async function eraseErased(importing: Importing, lines: Line[]): Promise<void> {
  const { app, state, actor } = importing
  const { db, audit, config } = app
  const ids = lines
    .filter(({ record, data }) => record === 'profile' && typeof data.anonymized_at === 'string')
    .map(({ data }) => String(data.id))
  if (ids.length === 0) return
  const rows = await db.query(
    'select id from profiles where project_id = $1 and id = any($2) and anonymized_at is null',
    [state.projectId, ids],
  )
  const erased: string[] = []
  for (const row of rows) {
    const id = row.id!
    const into = importing.hasExport ? await mergedInto(importing, id) : undefined
    if (into === undefined || !(await merge(importing, id, into))) erased.push(id)
  }
  const erasing = { db, audit, erasureLedger: config.erasureLedger }
  for (let at = 0; at < erased.length; at += MOST_ERASED)
    await erase(erasing, actor, state.projectId, erased.slice(at, at + MOST_ERASED))
}

const MOST_ERASED = 1000

const OWNED: ItemKind[] = ['session', 'subscription']

/**
 * The living profile into which the service has merged this one; undefined if this one is erased there. Both look alike, but an
 * erased person keeps their records, and those of a merged one belong to the other profile.
 */
async function mergedInto({ app, source, state }: Importing, id: string): Promise<Json | undefined> {
  for (const kind of OWNED) {
    const [row] = await app.db.query(
      `select id from ${kind}s where project_id = $1 and profile_id = $2 order by id limit 1`,
      [state.projectId, id],
    )
    const found = row && (await findOne(source, `/${kind}s`, row.id!))
    const owner = found && textOf(convert(kind, found, row.id!).lines[0]!.data.profile_id)
    if (owner === undefined) continue
    const left = await totalOf(source, { kind, path: `/${kind}s`, query: { 'filter[profile_id]': id } })
    const into = owner !== id && left === 0 ? await findOne(source, '/profiles', owner) : undefined
    return typeof into?.anonymized_at === 'string' ? undefined : into
  }
  return undefined
}

/** Returns false if the other profile is erased here: then both are the person who was. */
async function merge({ app, state, actor, signal, onRejected }: Importing, from: string, into: Json): Promise<boolean> {
  const { db, audit } = app
  const { projectId } = state
  const id = String(into.id)
  const known = await db.query('select from profiles where project_id = $1 and id = $2', [projectId, id])
  const { lines } = convert('profile', into, id)
  // Its funnel may be imported after it, with the line of the profile itself.
  for (const { data } of lines) delete data.funnel_id
  if (known.length === 0)
    await importLines(app, state, [lines], {
      live: true,
      signal,
      onRejected: (line, _code, reason) => reject({ tally: state.notes, onRejected }, idIn(line), reason),
    })
  const target = (await targetsOf(db.query, projectId, [id])).get(id) ?? id
  if (target === from) return true
  const living = 'select from profiles where project_id = $1 and id = $2 and anonymized_at is null'
  if ((await db.query(living, [projectId, target])).length === 0) return false
  await mergeProfiles({ db, audit }, actor, { projectId, from, into: target })
  return true
}
