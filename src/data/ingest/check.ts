// Moves staged rows that contradict what is stored or staged to the rejected lines.

import type { RejectCode } from '../../core/records/import/fields.ts'
import type { Kind, Tenant } from '../../core/records/record.ts'
import { KINDS } from '../../core/records/records.ts'
import type { Query } from '../../lib/pg/types.ts'
import { followAliases } from './aliases.ts'
import { sameKey } from './conditions.ts'
import { isGiven } from './merged-lines.ts'
import { type Column, requiredColumns } from './row.ts'
import { REJECTED, type StagedKind, staged } from './staging.ts'

/**
 * Rejects lines whose reference will not exist, and lines that claim another project's record. `kinds` are
 * in the order of their references, so that a line is also rejected if it refers to a rejected one. Call it in the turn of the
 * import: a reference to a merged profile becomes one to the profile that it stands for.
 */
export async function rejectMisfits(query: Query, brought: readonly StagedKind[], tenant: Tenant): Promise<void> {
  // Sent together: the connection runs them in this order.
  const statements = [...followAliases(brought, tenant), ...brought.flatMap((one) => rejections(one, brought, tenant))]
  await Promise.all(statements.map((statement) => query(statement)))
}

function rejections(one: StagedKind, brought: readonly StagedKind[], tenant: Tenant): string[] {
  const { kind, needsStored } = one
  const incomplete = (condition?: string) =>
    needsStored ? requiredColumns(kind).map((column) => rejectIncomplete(one, column, tenant, condition)) : []
  const unknown = Object.entries(kind.references).map(([column, name]) => {
    const target = KINDS.find((other) => other.name === name)!
    return rejectUnknown(
      kind,
      column,
      target,
      brought.find((other) => other.kind === target),
      tenant,
    )
  })
  const conflicts = (kind.conflicts ?? []).map(({ reason, where }) => {
    const bad = `select s.ctid as at, '${reason}' as reason from ${staged(kind)} s where ${where(tenant)}`
    return reject(kind, 'conflicting_record', bad)
  })
  // Again, because a line that was rejected since completes no other.
  return [...incomplete(), ...unknown, ...conflicts, ...incomplete(`exists (select from ${REJECTED})`)]
}

/** Rejects lines about a record that is not stored, if neither they nor other lines about it have the required column. */
function rejectIncomplete(one: StagedKind, { name: column, path }: Column, tenant: Tenant, condition = 'true'): string {
  const { kind } = one
  return reject(
    kind,
    'missing_field',
    `select s.ctid as at, '${kind.name}.${path} is missing, and there is no such record yet' as reason
     from ${staged(kind)} s
     where ${condition} and not ${isGiven(kind, column)} and not exists (select from ${kind.table} t where ${sameKey(kind, tenant)})
       and ${isNotStaged(one, kind.key, isGiven(kind, column, 'o.'))}`,
  )
}

/** SQL: whether no staged line that fulfils the condition has the key that these columns of `s` contain. */
function isNotStaged({ kind, rows }: StagedKind, columns: readonly string[], condition = 'true'): string {
  const row = (alias: string, names: readonly string[]) => names.map((name) => `${alias}.${name}`).join(', ')
  // A feed has few rows and no index of them, and its session does not use hash joins: `not in` is a hash table without a join. Many
  // rows may be too many for that.
  if (rows <= FEW_ROWS)
    return `(${row('s', columns)}) not in (select ${row('o', kind.key)} from ${staged(kind)} o where ${condition})`
  const same = kind.key.map((name, n) => `o.${name} = s.${columns[n]}`).join(' and ')
  return `not exists (select from ${staged(kind)} o where ${same} and ${condition})`
}

// More than a feed has in one batch.
const FEW_ROWS = 10_000

function rejectUnknown(
  kind: Kind,
  column: string,
  target: Kind,
  brought: StagedKind | undefined,
  tenant: Tenant,
): string {
  // In two steps. The first finds rows whose target is not in this import, in memory; it leaves few rows to look up in the stored
  // table, so that no plan for the second step is slow.
  const unstaged = brought ? `and ${isNotStaged(brought, [column])}` : ''
  return reject(
    kind,
    'unknown_reference',
    `select s.at, '${kind.name}.${column} refers to an unknown ${target.name}: ' || s.id as reason
     from unstaged s where not exists (
       select from ${target.table} t where t.project_id = ${tenant.project_id} and t.id = s.id)`,
    `unstaged as materialized (
       select s.ctid as at, s.${column} as id from ${staged(kind)} s where s.${column} is not null ${unstaged}),`,
  )
}

/** `bad` selects `at`, the place of the staged row, and the reason. */
function reject(kind: Kind, code: RejectCode, bad: string, before = ''): string {
  return `
    with ${before} bad as materialized (${bad}), gone as (
      delete from ${staged(kind)} s using bad where s.ctid = bad.at returning s.source, s.line, s.original, bad.reason)
    insert into ${REJECTED} (source, line, part, code, reason, bytes, step)
    select source, line, 0, '${code}', reason, convert_to(original, 'UTF8'), ${KINDS.indexOf(kind) + 1} from gone`
}
