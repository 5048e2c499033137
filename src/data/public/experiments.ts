// Experiments: the list.
import type { FastifyInstance } from 'fastify'
import { listOf } from '../../core/lists/list.ts'
import { experiment, experimentRecord } from '../../core/records/experiment.ts'
import type { PublicContext } from './context.ts'
import { listRoute } from './resource.ts'

const list = listOf(experimentRecord, {
  shape: experiment,
  alias: 'e',
  maxLimit: 100,
  filters: {},
})

export function experiments(app: FastifyInstance, { reads }: PublicContext): void {
  listRoute(app, reads, '/experiments', list, {
    operationId: 'listExperiments',
    tag: 'Experiments',
    summary: 'List experiments',
    description: 'Newest first. With an `updated_at` filter: oldest change first, for a sync.',
  })
}
