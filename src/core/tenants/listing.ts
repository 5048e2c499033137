// All organizations and all projects, for commands that print them.
import type { Db } from '../../lib/pg/db.ts'
import { instantFromPg } from '../../lib/time.ts'

/** SQL: whether the id or name of an organization or project contains the text, in any case. */
export const isNamed = (of: string, text: string) =>
  `(strpos(lower(${of}.id), lower(${text})) > 0 or strpos(lower(${of}.name), lower(${text})) > 0)`

/** All, or those with this text in their id or name. */
export async function listOrganizations(db: Db, text: string | null) {
  const rows = await db.query(
    `select id, name, created_at, one_off_charge_enabled, one_off_charge_max_amount from organizations o
    where $1::text is null or ${isNamed('o', '$1')} order by id`,
    [text],
  )
  return rows.map((row) => ({
    id: row.id!,
    name: row.name!,
    created_at: instantFromPg(row.created_at!),
    one_off_charge_enabled: row.one_off_charge_enabled === 't',
    one_off_charge_max_amount: JSON.parse(row.one_off_charge_max_amount!) as Record<string, string>,
  }))
}

/** All, or those with this text in their id or name. */
export async function listProjects(db: Db, text: string | null) {
  const rows = await db.query(
    `select id, organization_id, name, created_at from projects p
    where $1::text is null or ${isNamed('p', '$1')} order by id`,
    [text],
  )
  return rows.map((row) => ({
    id: row.id!,
    organization_id: row.organization_id!,
    name: row.name!,
    created_at: instantFromPg(row.created_at!),
  }))
}
