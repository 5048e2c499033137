// The kinds of records that an export has, in the order of their references, with the statement for a page of each.

import { CREDIT_JOINS, creditEntryExport } from '../../core/records/credit-entry.ts'
import { experiment } from '../../core/records/experiment.ts'
import { funnel } from '../../core/records/funnel.ts'
import { product } from '../../core/records/product.ts'
import { profile } from '../../core/records/profile.ts'
import { sessionReplies } from '../../core/records/reply.ts'
import { session } from '../../core/records/session.ts'
import { DETAIL_JOINS, subscriptionDetail } from '../../core/records/subscription.ts'
import { JOINS, transactionExport } from '../../core/records/transaction.ts'
import type { Statement } from '../../lib/pg/types.ts'
import type { Shape } from '../../lib/shape/shape.ts'

export interface ExportKind {
  /** The name in `record`. */
  name: string
  shape: Shape
  /** Takes the project, the window, and the place behind which the page begins: a time and an id. */
  page: Statement
}

/** How many rows are read, and held in memory, at once. */
export const PAGE_ROWS = 200

/** The columns of a page before those of the shape: its place. */
export const PLACE_COLUMNS = 2

/** The place before every record: a cursor has an id. */
export const BEGINNING = { at: '0001-01-01T00:00:00.000000Z', id: '!' }

interface Key {
  column: string
  /** SQL of the id of a place. */
  place: (given: string) => string
}

const TEXT: Key = { column: 'id', place: (given) => given }
const NIL = '00000000-0000-0000-0000-000000000000'
const UUID: Key = {
  column: 'entry_id',
  place: (given) => `case when ${given} = '${BEGINNING.id}' then '${NIL}' else ${given} end::uuid`,
}

export const EXPORT_KINDS: readonly ExportKind[] = [
  kind('funnel', funnel, 'funnels f'),
  kind('experiment', experiment, 'experiments e'),
  kind('product', product, 'products p'),
  kind('profile', profile, 'profiles p'),
  kind('session', session, 'sessions s'),
  kind('session_replies', sessionReplies, 'sessions s'),
  kind('subscription', subscriptionDetail, 'subscriptions s', DETAIL_JOINS),
  kind('transaction', transactionExport, 'transactions t', JOINS),
  kind('credit_entry', creditEntryExport, 'credit_entries e', CREDIT_JOINS, UUID),
]

function kind(name: string, shape: Shape, from: string, joins = '', key = TEXT): ExportKind {
  const alias = from.split(' ')[1]!
  const id = `${alias}.${key.column}`
  const at = `${alias}.updated_at`
  // The rows are found in the order of the index before anything is joined to them.
  const text = `
    select ${at}, ${id}, ${shape.columns}
    from (
      select * from ${from}
      where ${alias}.project_id = $1 and ${at} >= $2 and ${at} < $3 and (${at}, ${id}) > ($4::timestamptz, ${key.place('$5')})
      order by ${at}, ${id} limit ${PAGE_ROWS}
    ) ${alias} ${joins}
    order by ${at}, ${id}`
  return { name, shape, page: { name: `export ${name}`, text, large: true } }
}
