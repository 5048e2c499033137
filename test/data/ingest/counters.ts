// The counters of a project, which must be equal to a recount.
import assert from 'node:assert/strict'
import type { Db } from '../../../src/lib/pg/db.ts'
import type { NamedRow } from '../../../src/lib/pg/types.ts'
import type { Project } from '../../support/imports.ts'

const COUNTED = {
  funnels: `select '' as field, '' as value from funnels where project_id = $1 and deleted_at is null
    union all select 'all', '' from funnels where project_id = $1`,
  profiles: fields('profiles', 'funnel_id'),
  sessions: fields('sessions', 'funnel_id'),
  subscriptions: fields('subscriptions', 'status', 'funnel_id', 'product_id', 'payment_provider'),
  products: fields('products'),
  transactions: fields('transactions'),
}

/** Fails if they are not; returns them as lines. */
export async function assertCounted(
  { query }: Pick<Db, 'query'>,
  { id }: Project,
  message?: string,
): Promise<string[]> {
  const shown = (rows: NamedRow[]) => rows.map(({ list, field, value, n }) => `${list}.${field}=${value}: ${n}`)
  const kept = await query<NamedRow>(
    `select list, field, value, sum(n) as n from counts where project_id = $1
     group by 1, 2, 3 having sum(n) <> 0 order by 1, 2, 3`,
    [id],
  )
  const recounted = Object.entries(COUNTED).map(
    ([list, each]) => `select '${list}' collate "C" as list, field, value, count(*) as n from (${each}) c
      where value is not null group by 2, 3`,
  )
  const again = await query<NamedRow>(
    `select list, field collate "C" as field, value collate "C" as value, n from (${recounted.join(' union all ')}) r
     order by 1, 2, 3`,
    [id],
  )
  assert.deepEqual(shown(kept), shown(again), message)
  return shown(kept)
}

function fields(table: string, ...columns: string[]): string {
  const all = `select '' as field, '' as value from ${table} where project_id = $1`
  return [all, ...columns.map((name) => `select '${name}', ${name} from ${table} where project_id = $1`)].join(
    ' union all ',
  )
}
