// Loads the metrics only where they can be read: in a short command that would take a tenth of the start.
import type { Db } from '../../lib/pg/db.ts'
import type { Metrics, WorkerMetrics } from './metrics.ts'

interface LoadOptions {
  unmeasured?: boolean
  worker?: WorkerMetrics
}

export async function loadMetrics(db: Db, { unmeasured, worker }: LoadOptions): Promise<Metrics> {
  if (unmeasured) return none
  const { openMetrics } = await import('./metrics.ts')
  return openMetrics(db, worker)
}

const nothing = () => {}

const none: Metrics = {
  http: { responded: nothing, broken: nothing },
  measure: (provider) => provider,
  countNotification: nothing,
  countRecords: nothing,
  replica: () => nothing,
  route: nothing,
  ofThisProcess: async () => [],
}
