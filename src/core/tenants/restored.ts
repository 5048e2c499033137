// What a restored backup brought back: keys that were revoked since it was made, and settings that were changed. Known until an
// operator confirms it.

import type { Query } from '../../lib/pg/types.ts'
import { instantFromPg } from '../../lib/time.ts'

/** One thing that is not as it was in the database that the restore replaced. */
export interface Difference {
  /** `project key`, `webhook endpoint`, `organization`, … */
  kind: string
  id: string
  organization_id: string | null
  project_id: string | null
  name: string | null
  /** Of a key: its last four characters. */
  last_four: string | null
  /** `back`: revoked or removed since the backup. `gone`: created since. `changed`: has another setting. */
  change: 'back' | 'gone' | 'changed'
  setting: string | null
  /** The values of the setting in the replaced database and now. */
  before: unknown
  after: unknown
}

/** What is known of a restore that no operator has confirmed. */
export interface RestoredMark {
  /** The time of the backup. */
  made_at: string
  restored_at: string
  /** False if there was no older state to compare with: any key that was revoked since the backup is valid again. */
  compared: boolean
  differences: Difference[]
}

/** A name in the table `instance`, one for each restore: the next one, or a backup made between them, keeps it. */
export const RESTORED = 'restored '

export async function storeMark(query: Query, mark: RestoredMark): Promise<void> {
  await query('insert into instance (name, value) values ($1, $2)', [RESTORED + mark.restored_at, JSON.stringify(mark)])
}

/** Returns the marks without the differences that are settled: the key is revoked, or its owner has a newer one. */
export async function openMarks(query: Query): Promise<RestoredMark[]> {
  const rows = await query(OPEN)
  return rows.map(({ mark }) => JSON.parse(mark!))
}

/** Ends the warning. Returns the times of the restores. */
export async function confirmMarks(query: Query): Promise<string[]> {
  const rows = await query(`delete from instance where name like '${RESTORED}%' returning name`)
  return rows.map(({ name }) => name!.slice(RESTORED.length)).sort()
}

/** As a sentence for people. */
export function sentenceOf(difference: Difference): string {
  const { kind, id, change, setting, before, after } = difference
  const isKey = kind.endsWith(' key')
  const what = nameOf(difference)
  if (kind === 'installation')
    return 'The master key was replaced after the backup, and the earlier one is in use again: run "tundish master-key replace" if it must not be. Webhook secrets of merchant accounts could not be compared.'
  if (kind === 'closed month' && change === 'gone')
    return `The month ${id.split('/').at(-1)} of organization ${difference.organization_id} was closed after the backup and is open again: close it with "tundish finance close".`
  if (change === 'changed')
    return `${setting} of ${what} is ${settingText(setting, after)} again; before the restore it was ${settingText(setting, before)}.`
  if (change === 'gone')
    return isKey
      ? `The ${what} was created after the backup and is gone: programs that use it get 401.`
      : `The ${what} was added after the backup and is gone.`
  return isKey
    ? `The ${what} was revoked after the backup and is valid again.`
    : `The ${what} was removed after the backup and is back.`
}

function nameOf({ kind, id, organization_id, project_id, name, last_four }: Difference): string {
  if (kind === 'organization' || kind === 'project') return `${kind} ${id}`
  const called = name ? ` ${JSON.stringify(name)}` : ''
  const ending = last_four ? `, ends in ${last_four}` : ''
  const owner = project_id ? ` of project ${project_id}` : organization_id ? ` of organization ${organization_id}` : ''
  return `${kind}${called} (${id}${ending})${owner}`
}

function settingText(setting: string | null, value: unknown): string {
  if (value === null || value === undefined) return 'not set'
  return setting === 'expires_at' ? instantFromPg(String(value)) : JSON.stringify(value)
}

/** SQL: whether the row `k` is a key that is valid now. */
export const IS_VALID_KEY = '(k.expires_at is null or k.expires_at > db_clock())'

const IS_OPEN = `
  case when d ->> 'kind' not like '% key' then true
  when d ->> 'kind' = 'operator key' then
    case d ->> 'change' when 'gone' then not exists (select from operator_keys k where k.created_at > restored_at)
    else exists (select from operator_keys k where k.id = (d ->> 'id')::uuid and ${IS_VALID_KEY}) end
  when d ->> 'change' = 'gone' then
    not exists (select from secret_keys k where k.organization_id = d ->> 'organization_id'
      and k.project_id is not distinct from d ->> 'project_id' and k.created_at > restored_at)
  else exists (select from secret_keys k where k.id = (d ->> 'id')::uuid and ${IS_VALID_KEY}) end`

// Keys made before the backup: without a comparison, each may have been revoked since.
const IS_OLD_KEY_VALID = `
  exists (select from secret_keys k where k.created_at <= made_at and ${IS_VALID_KEY})
  or exists (select from operator_keys k where k.created_at <= made_at and ${IS_VALID_KEY})`

const OPEN = `
  with marks as (
    select name, value::jsonb as mark, (value::jsonb ->> 'compared')::boolean as compared,
      (value::jsonb ->> 'made_at')::timestamptz as made_at, (value::jsonb ->> 'restored_at')::timestamptz as restored_at
    from instance where name like '${RESTORED}%'),
  open_marks as (
    select name, mark, compared, made_at, coalesce(
      (select jsonb_agg(d order by n) from jsonb_array_elements(mark -> 'differences') with ordinality as of_mark (d, n)
       where ${IS_OPEN}), '[]') as differences
    from marks)
  select (mark || jsonb_build_object('differences', differences))::text as mark from open_marks
  where differences <> '[]' or not compared and (${IS_OLD_KEY_VALID}) order by name`
