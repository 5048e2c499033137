// Statements that do not name their tenant, or that need a single server: the reason of each, by the file that sends it.
import type { Rule } from './rules.ts'

const QUEUE =
  'A queue of all tenants: a process looks for due work of any of them. With several servers it is asked on each.'
const OPERATOR = 'The operator looks at all tenants. With several servers each is asked, and the rows are put together.'
const SWEEP = 'Old rows of all tenants are deleted in the background, on each server by itself.'
const OF_PROVIDER = 'A provider that serves all organizations names a charge by its own id alone.'
const WHOLE = 'The doctor and a reconciliation look at the whole installation, on each server by itself.'

export const EXCEPTIONS: Readonly<Record<string, Partial<Record<Rule, string>>>> = {
  'src/operator/admin/erasures.ts': { tenant: OPERATOR },
  'src/operator/admin/list.ts': { tenant: OPERATOR },
  'src/operator/admin/search.ts': { tenant: OPERATOR },
  'src/operator/admin/sync-readers.ts': {
    tenant: 'The name of a key is looked up by its id, which is unique everywhere.',
  },
  'src/operator/admin/record-writers.ts': { tenant: 'As for readers of a sync.' },
  'src/payments/billing/ledger/orders.ts': { tenant: OF_PROVIDER },
  'src/payments/billing/finance/close.ts': {
    'insert beside read':
      'What is kept of a month is read from one snapshot, before it is closed: an organization is on one server.',
  },
  'src/payments/billing/reconcile/notified.ts': { tenant: OF_PROVIDER },
  'src/payments/billing/charge/claim.ts': {
    'insert beside read':
      'What is inserted and what was there are told apart by one snapshot: an organization is on one server.',
  },
  'src/payments/billing/movement/in-progress.ts': { tenant: QUEUE },
  'src/payments/billing/reconcile/reconcile.ts': { tenant: WHOLE },
  'src/payments/billing/movement/settling.ts': { tenant: QUEUE },
  'src/operator/admin/lost-movements.ts': {
    tenant: 'Of two organizations that share an account of a provider, one may have the order that the other lacks.',
  },
  'src/operator/doctor/alerts.ts': { tenant: WHOLE },
  'src/operator/doctor/rates.ts': { tenant: WHOLE },
  'src/operator/doctor/figures.ts': { tenant: WHOLE },
  'src/operator/doctor/payments.ts': { tenant: WHOLE },
  'src/operator/doctor/records.ts': { tenant: WHOLE },
  'src/operator/doctor/imports.ts': { tenant: WHOLE },
  'src/operator/doctor/moves.ts': { tenant: WHOLE },
  'src/operator/doctor/restored.ts': { tenant: WHOLE },
  'src/operator/doctor/webhooks.ts': { tenant: WHOLE },
  'src/core/records/folded-emails.ts': { tenant: SWEEP, lock: SWEEP },
  'src/core/erasure/at-provider.ts': { tenant: QUEUE, lock: QUEUE },
  'src/core/events/fan-out.ts': { tenant: QUEUE, lock: QUEUE },
  'src/operator/alerts/check.ts': { tenant: QUEUE, lock: QUEUE },
  'src/operator/alerts/queue.ts': { tenant: QUEUE, lock: QUEUE },
  'src/core/events/alert-addresses.ts': { tenant: WHOLE, lock: WHOLE },
  'src/core/events/queue.ts': { tenant: QUEUE, lock: QUEUE },
  'src/core/events/retention.ts': { tenant: SWEEP, lock: SWEEP },
  'src/operations/failover/announce.ts': { tenant: 'A loss is told to all projects of the server that lost commits.' },
  'src/data/figures/failures.ts': { tenant: QUEUE },
  'src/data/figures/marks.ts': { tenant: QUEUE },
  'src/data/figures/reports.ts': { tenant: QUEUE },
  'src/data/ingest/expire.ts': { tenant: QUEUE },
  'src/data/ingest/stripe/state.ts': { tenant: QUEUE },
  'src/core/lists/counts.ts': { tenant: SWEEP },
  'src/core/metrics/work.ts': { tenant: WHOLE },
  'src/server/notifications/missed.ts': { tenant: QUEUE, lock: QUEUE },
  'src/server/notifications/pending.ts': { tenant: QUEUE },
  'src/data/figures/describe.ts': { tenant: QUEUE, lock: QUEUE },
  'src/payments/billing/movement/unlisted.ts': { tenant: QUEUE, lock: QUEUE },
  'src/payments/billing/credits/expiry.ts': { tenant: QUEUE, lock: QUEUE },
  'src/payments/billing/credits/older-entries.ts': { tenant: QUEUE },
  'src/payments/billing/top-up/run.ts': { tenant: QUEUE },
  'src/operations/shards/admission.ts': {
    tenant: 'A move asks whether another tenant of the new shard has one of its project ids.',
  },
  'src/operations/shards/directory.ts': {
    tenant: 'The directory of shards lists the organizations, projects and keys of each.',
  },
  'src/core/tenants/find-key.ts': {
    tenant: 'A key is found by its hash, which is unique everywhere, and names its tenant.',
  },
  'src/core/tenants/secret-keys.ts': { tenant: OPERATOR },
  'src/core/tenants/tenants.ts': { tenant: 'A new tenant must not have the id of another one anywhere.' },
}

/** The same for statements of many files, by the rule and the table or function. */
export const EVERYWHERE: Readonly<Record<string, string>> = {
  'clock in set: db_clock':
    'Stamps come from the clock of the server that has the rows, also behind a router. Citus alone forbids it.',
  'clock in set: clock_timestamp': 'As db_clock.',
  'clock in set: gen_random_uuid': 'A token only has to be new.',
  'clock in set: safe_until': 'The beat is of one server.',
  'empty select: select from': 'Every PostgreSQL behind a router takes it. Citus alone refuses it.',
}
