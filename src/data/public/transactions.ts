// Transactions: the list with its filters.
import type { FastifyInstance } from 'fastify'
import { equals, listOf } from '../../core/lists/list.ts'
import { JOINS, transaction, transactionRecord } from '../../core/records/transaction.ts'
import type { PublicContext } from './context.ts'
import { listRoute } from './resource.ts'

const list = listOf(transactionRecord, {
  shape: transaction,
  alias: 't',
  joins: JOINS,
  maxLimit: 500,
  filters: {
    subscription_id: equals('t.subscription_id', 'Only transactions of this subscription.', { selective: true }),
  },
})

export function transactions(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/transactions', list, {
    operationId: 'listTransactions',
    tag: 'Transactions',
    summary: 'List transactions',
    description:
      'Newest first. With an `updated_at` filter: oldest change first, for a sync; the response then has `X-Sync-Horizon`.',
  })
}
