// Which of two profiles of one person should remain: not one that an import named after a customer at the provider, or else the
// one that visited, or else the older one.
import type { Query } from '../../lib/pg/types.ts'

/** Returns the function that puts two of these profiles into the order of a merge. */
export async function mergeOrder(query: Query, projectId: string, ids: string[]) {
  const rows = await query(
    `select p.id, row_number() over (order by p.id ~ '^(cus|guest)_',
       exists (select from sessions s where s.project_id = $1 and s.profile_id = p.id) desc, p.created_at, p.id) as place
     from profiles p where p.project_id = $1 and p.id = any($2)`,
    [projectId, ids],
  )
  const places = new Map(rows.map(({ id, place }) => [id!, Number(place)]))
  return (one: string, other: string) =>
    (places.get(one) ?? 0) < (places.get(other) ?? 0) ? { from: other, into: one } : { from: one, into: other }
}
