// Takes staged rows that name a merged profile, or a known customer of the provider, as rows of the profile that it stands for.
import type { Kind, Tenant } from '../../core/records/record.ts'
import type { Query } from '../../lib/pg/types.ts'
import { type StagedKind, staged } from './staging.ts'
import type { Tally } from './tally.ts'

/** SQL that replaces the aliases of profiles in the staged rows. Run it in the turn of the import, which merges wait for. */
export function followAliases(brought: readonly StagedKind[], { project_id }: Tenant): string[] {
  return brought.flatMap(({ kind }) => {
    const columns = Object.keys(kind.references).filter((column) => kind.references[column] === 'profile')
    return columns.map(
      (column) => `
        update ${staged(kind)} s set ${column} = a.profile_id from profile_aliases a
        where a.project_id = ${project_id} and a.alias = s.${column}`,
    )
  })
}

/** Drops staged lines about aliases: they change nothing. */
export async function dropAliases(query: Query, kinds: readonly Kind[], { project_id }: Tenant, tally: Tally) {
  const kind = kinds.find(({ name }) => name === 'profile')
  if (!kind) return
  await tally.add(
    query,
    `with gone as (
       delete from ${staged(kind)} s using profile_aliases a where a.project_id = ${project_id} and a.alias = s.id
       returning s.source)
     select 'skipped' as counted, source, count(*) as n from gone group by source`,
  )
}
