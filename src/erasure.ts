// Erasure: removes the personal data of profiles for good, and keeps the ledger that repeats it after a restored backup.
import { type FileHandle, open } from 'node:fs/promises'
import type { Db, Query } from './lib/db.ts'
import { instantFromPg } from './lib/time.ts'

/** One line of the ledger: who was erased and when, nothing personal. */
export interface Erasure {
  project_id: string
  profile_id: string
  erased_at: string
}

/**
 * Erases these profiles of a project, all or nothing. Answers the ids that are not its profiles, in the order given;
 * when there are any, nothing was changed. The ledger's file is on disk before the database commits.
 */
export async function erase(db: Db, ledgerPath: string, projectId: string, ids: string[]): Promise<string[]> {
  return db.tx(async (query) => {
    const found = await lockProfiles(query, projectId, ids)
    const missing = ids.filter((id) => !found.has(id))
    const fresh = ids.filter((id) => found.get(id) === 'personal')
    if (missing.length === 0 && fresh.length > 0) await wipe(query, ledgerPath, projectId, fresh)
    return missing
  })
}

/**
 * Erases again whoever stands in a ledger, project by project: of those that exist here, whoever is not erased.
 * Answers how many were erased now, were erased already, and are unknown here.
 */
export async function reapply(db: Db, ledgerPath: string, entries: AsyncIterable<Erasure>) {
  const result = { erased: 0, already_erased: 0, unknown: 0 }
  for await (const [projectId, ids] of batches(entries)) {
    await db
      .tx(async (query) => {
        const found = await lockProfiles(query, projectId, ids)
        const fresh = ids.filter((id) => found.get(id) === 'personal')
        if (fresh.length > 0) await wipe(query, ledgerPath, projectId, fresh)
        // Whoever is unknown stays in the ledger: an import that brings the profile back finds it there.
        await enterDatabase(query, projectId, await inProject(query, projectId, ids))
        return { fresh, found }
      })
      .then(({ fresh, found }) => {
        result.erased += fresh.length
        result.already_erased += found.size - fresh.length
        result.unknown += ids.length - found.size
      })
  }
  return result
}

/** Every erasure the database knows, oldest first. */
export async function listErasures(db: Db): Promise<Erasure[]> {
  const rows = await db.query(
    'select project_id, profile_id, erased_at from erasures order by erased_at, project_id, profile_id',
  )
  return rows.map((row) => ({
    project_id: row.project_id!,
    profile_id: row.profile_id!,
    erased_at: instantFromPg(row.erased_at!),
  }))
}

const BATCH = 1000

async function* batches(entries: AsyncIterable<Erasure>): AsyncIterable<[projectId: string, ids: string[]]> {
  const waiting = new Map<string, Set<string>>()
  for await (const { project_id, profile_id } of entries) {
    const ids = waiting.get(project_id) ?? new Set()
    waiting.set(project_id, ids.add(profile_id))
    if (ids.size < BATCH) continue
    waiting.delete(project_id)
    yield [project_id, [...ids]]
  }
  for (const [projectId, ids] of waiting) yield [projectId, [...ids]]
}

/** Locks the rows, so that nobody writes personal data of these profiles until the commit; says who still has any. */
async function lockProfiles(
  query: Query,
  projectId: string,
  ids: string[],
): Promise<Map<string, 'personal' | 'erased'>> {
  await query('select id from profiles where project_id = $1 and id = any($2) order by id for no key update', [
    projectId,
    ids,
  ])
  const rows = await query('select id, anonymized_at from profiles where project_id = $1 and id = any($2)', [
    projectId,
    ids,
  ])
  return new Map(rows.map((row) => [row.id!, row.anonymized_at === null ? 'personal' : 'erased']))
}

async function inProject(query: Query, projectId: string, ids: string[]): Promise<string[]> {
  const known = await query('select 1 from projects where id = $1', [projectId])
  return known.length > 0 ? ids : []
}

// The effects, one statement a table: $1 the project, $2 the profiles, $3 the least stamp.
const STAMP = "greatest(db_clock(), $3::timestamptz, updated_at + interval '1 microsecond')"
const SESSIONS = 'select id from sessions where project_id = $1 and profile_id = any($2)'
const CUSTOMERS = 'select organization_id, external_id from customers where project_id = $1 and profile_id = any($2)'

const EFFECTS = [
  `update profiles set email = null, email_folded = null, phone = null, password_hash = null, integrations = '{}',
     anonymized_at = ${STAMP}, updated_at = ${STAMP}
   where project_id = $1 and id = any($2) and anonymized_at is null`,
  `update sessions set ip = null, user_agent = null, postal_code = null, tracking_cookies = '{}', query_params = '{}',
     origin = origin_only(origin), updated_at = ${STAMP}
   where project_id = $1 and profile_id = any($2) and (
     ip is not null or user_agent is not null or postal_code is not null or tracking_cookies::text <> '{}' or
     query_params::text <> '{}' or origin is distinct from origin_only(origin) or
     exists (select from replies r where r.project_id = $1 and r.session_id = sessions.id and r.value::text <> 'null'))`,
  `update replies set value = 'null' where project_id = $1 and session_id in (${SESSIONS}) and value::text <> 'null'`,
  // Their nested e-mail changed: a sync must see it.
  `update subscriptions set updated_at = ${STAMP} where project_id = $1 and profile_id = any($2)`,
  `update orders set client_metadata = null
   where (organization_id, external_id) in (${CUSTOMERS}) and client_metadata is not null`,
  `update customers set email = null where project_id = $1 and profile_id = any($2) and email is not null`,
  // What was to be told, or may be told again, tells only whom it was about.
  `update events set data = json_build_object('id', object_id) where project_id = $1 and profile_id = any($2)`,
]

async function wipe(query: Query, ledgerPath: string, projectId: string, ids: string[]): Promise<void> {
  const [begun] = await query('select begin_write($1) as base', [projectId])
  for (const effect of EFFECTS)
    await query(effect, effect.includes('$3') ? [projectId, ids, begun!.base!] : [projectId, ids])
  const entered = await enterDatabase(query, projectId, ids)
  // Last, right before the commit: the file must never lack what the database has.
  if (entered.length > 0) await enterFile(ledgerPath, entered)
}

async function enterDatabase(query: Query, projectId: string, ids: string[]): Promise<Erasure[]> {
  const rows = await query(
    `insert into erasures (project_id, profile_id) select $1, unnest($2::text[])
     on conflict (project_id, profile_id) do nothing returning profile_id, erased_at`,
    [projectId, ids],
  )
  return rows.map((row) => ({
    project_id: projectId,
    profile_id: row.profile_id!,
    erased_at: instantFromPg(row.erased_at!),
  }))
}

async function enterFile(path: string, erasures: Erasure[]): Promise<void> {
  let file: FileHandle | undefined
  try {
    file = await open(path, 'a', 0o600)
    await file.appendFile(erasures.map((erasure) => `${JSON.stringify(erasure)}\n`).join(''))
    await file.sync()
  } finally {
    await file?.close()
  }
}
