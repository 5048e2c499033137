// What a database still has of an organization.
import type { Cluster } from '../support/cluster.ts'

/**
 * The tables with a row that names the organization, its project `ID-app` or one of their keys in any column, whatever the
 * table is declared to be. The audit log keeps its entries.
 */
export async function tablesWith(cluster: Cluster, organization: string, keyIds: readonly string[]): Promise<string[]> {
  const tables = await cluster.query(`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind in ('r', 'p') and relname not like 'audit%' order by relname`)
  const trace = `[(",]move ${organization}|[(",]${organization}(-app)?[",)]|${keyIds.join('|')}`
  const counts = tables.map(
    ({ name }) => `select '${name}' as name, count(*) as n from "${name}" t where t::text ~ '${trace}'`,
  )
  const rows = await cluster.query(`
    ${counts.join(' union all ')}
    union all select 'pg_publication', count(*) from pg_publication
    union all select 'pg_subscription', count(*) from pg_subscription`)
  return rows.flatMap(({ name, n }) => (Number(n) === 0 ? [] : [name!]))
}
