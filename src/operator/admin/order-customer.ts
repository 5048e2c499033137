// The customer of an order, as far as the operator reaches it.
import type { App } from '../../app.ts'
import { isUuid } from '../../lib/ids.ts'
import type { Param } from '../../lib/pg/types.ts'
import { notFound } from './exist.ts'
import type { Input } from './operation.ts'
import { reachCondition } from './reach.ts'

/** Throws a 404 for an order that does not exist, or that the operator does not reach. */
export async function customerOf(
  { db }: Pick<App, 'db'>,
  params: Input['params'],
  { reach }: Input['access'],
): Promise<string> {
  const { organization_id, order_id } = params as { organization_id: string; order_id: string }
  const values: Param[] = [organization_id, order_id]
  const within = reachCondition(reach, { organization: 'organization_id', project: 'project_id' }, values) ?? 'true'
  const [row] = isUuid(order_id)
    ? await db.query(
        `select external_id from orders where organization_id = $1 and order_id = $2 and ${within}`,
        values,
      )
    : []
  if (!row) throw notFound('order', order_id)
  return row.external_id!
}
