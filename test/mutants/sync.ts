// Mutants of the lists and of the sync promise.
import type { Mutants } from './mutant.ts'

const lists = ['test/data/public/lists.test.ts', 'test/data/public/walks.test.ts']
const horizon = ['test/core/lists/horizon.slow.test.ts']

export const syncMutants: Mutants = {
  'horizon-without-writers': {
    does: 'promises the present although a writer is at work',
    file: 'core/lists/horizon.ts',
    code: `and l.classid = write_lock_class()`,
    bug: `and l.classid = write_lock_class() + 1`,
    foundBy: horizon,
  },
  'horizon-of-another-project': {
    does: 'waits for the writers of all projects but its own',
    file: 'core/lists/horizon.ts',
    code: `(select number from projects where id = $1)`,
    bug: `(select number + 1 from projects where id = $1)`,
    foundBy: horizon,
  },
  'floor-not-raised': {
    does: 'lets a writer under a clock set back stamp what a reader has passed',
    file: 'core/lists/horizon.ts',
    code: `set floor = greatest(floor + interval '1 microsecond', db_clock())`,
    bug: `set floor = greatest(horizon, least(floor, db_clock()))`,
    foundBy: horizon,
  },
  'horizon-goes-back': {
    does: 'tells an earlier horizon than before',
    file: 'core/lists/horizon.ts',
    code: `set horizon = greatest(horizon, least(`,
    bug: `set horizon = greatest('-infinity'::timestamptz, least(`,
    foundBy: horizon,
  },
  'page-repeats-its-last-item': {
    does: 'begins each page with the last item of the one before',
    file: 'core/lists/statements.ts',
    code: `const [comparison, direction] = bySync ? ['>', 'asc'] : ['<', 'desc']`,
    bug: `const [comparison, direction] = bySync ? ['>=', 'asc'] : ['<=', 'desc']`,
    foundBy: lists,
  },
  'window-includes-its-end': {
    does: 'returns an item that is stamped with the end of the window',
    file: 'core/lists/walk.ts',
    code: `name === 'updated_at.from' ? '>=' : '<'`,
    bug: `name === 'updated_at.from' ? '>=' : '<='`,
    foundBy: ['test/data/public/filters.test.ts', ...horizon],
  },
  'list-of-all-projects': {
    does: 'shows the items of other projects',
    file: 'core/lists/walk.ts',
    code: '${list.alias}.project_id = $1`]',
    bug: '${list.alias}.project_id >= $1`]',
    foundBy: ['test/data/public/tenants.test.ts', 'test/conformance/tenant-matrix.test.ts'],
  },
  'id-as-cursor-of-another-project': {
    does: 'takes the id of another project as a place in the list',
    file: 'core/lists/page.ts',
    code: `from \${list.table} where project_id = $1 and id = $2`,
    bug: `from \${list.table} where ($1::text is not null) and id = $2`,
    foundBy: [
      'test/data/public/tenants.test.ts',
      'test/conformance/tenant-matrix.test.ts',
      'test/data/public/walks.test.ts',
    ],
  },
  'total-without-deltas': {
    does: 'forgets what the sweep adds up',
    file: 'core/lists/counts.ts',
    code: `group by 1, 2, 3, 4 having sum(n) <> 0`,
    bug: `group by 1, 2, 3, 4 having sum(n) < 0`,
    foundBy: ['test/core/lists/counts.test.ts'],
  },
  'event-numbers-repeat': {
    does: 'numbers the second event of an object like the first',
    file: 'core/events/outbox.ts',
    code: `coalesce(max(sequence), 0)`,
    bug: `coalesce(min(sequence) - 1, 0)`,
    foundBy: ['test/payments/billing/refunds.test.ts'],
  },
  'deliveries-to-disabled-endpoints': {
    does: 'sends events to an endpoint that was switched off',
    file: 'core/events/queue.ts',
    code: `e.id = f.endpoint_id and e.enabled and (e.failing_since`,
    bug: `e.id = f.endpoint_id and (e.failing_since`,
    foundBy: ['test/core/events/retries.test.ts'],
  },
  'endpoint-receives-all-kinds': {
    does: 'sends an endpoint kinds of events that it did not ask for',
    file: 'core/events/fan-out.ts',
    code: `else e.kinds = '[]' or e.kinds ? due.type end`,
    bug: `else true end`,
    foundBy: ['test/core/events/dispatcher.test.ts'],
  },
}
