// Gauges of the work that waits in the database, read at each scrape.
import { Gauge, type Registry } from 'prom-client'
import type { Db } from '../../lib/pg/db.ts'
import { sharedRun } from '../../lib/shared-run.ts'

// A scrape returns the other metrics if the database has not responded within this time.
const TIMEOUT_MS = 2000

// Column of the statement below → name and help text of the gauge.
const GAUGES = {
  commits_lost_s: [
    'tundish_commits_lost_from_timestamp_seconds',
    'From when on commits were lost, or may have been, by the last failover that lost any; 0 if none did.',
  ],
  charges: ['tundish_charges_in_progress', 'Charges in progress.'],
  charges_pending: [
    'tundish_charges_pending',
    'Charges in progress that are pending at the provider: it decides later.',
  ],
  charges_s: [
    'tundish_charges_oldest_seconds',
    'Age of the oldest charge in progress that is not pending at the provider.',
  ],
  refunds: ['tundish_refunds_in_progress', 'Refunds in progress.'],
  refunds_pending: [
    'tundish_refunds_pending',
    'Refunds in progress that are pending at the provider: it decides later.',
  ],
  refunds_s: [
    'tundish_refunds_oldest_seconds',
    'Age of the oldest refund in progress that is not pending at the provider.',
  ],
  settling_s: ['tundish_settling_overdue_seconds', 'How overdue the oldest due look-up of an unknown outcome is.'],
  mismatches: [
    'tundish_provider_mismatches',
    'Charges and refunds of the last 30 days that a provider made with another amount or currency than asked.',
  ],
  events: ['tundish_webhook_events_waiting', 'Events whose deliveries are not made yet.'],
  deliveries: ['tundish_webhook_backlog', 'Pending deliveries to endpoints that are switched on.'],
  deliveries_s: ['tundish_webhook_oldest_seconds', 'Age of the oldest of these deliveries.'],
  deliveries_due_s: ['tundish_webhook_overdue_seconds', 'How overdue the oldest due delivery is.'],
  endpoints: ['tundish_webhook_endpoints_failing', 'Endpoints whose last delivery failed.'],
  alerts: ['tundish_alert_destinations_failing', 'Destinations of alerts whose last message failed.'],
  horizon_s: [
    'tundish_sync_horizon_lag_seconds',
    'Age of the oldest transaction that writes records; the sync horizon of its project is that far behind.',
  ],
} as const

/** Registers the gauges; while the database does not respond they are absent and `tundish_database_up` is 0. */
export function gaugesOfWork(db: Db, registers: Registry[]): void {
  // All gauges of one scrape are collected concurrently, so they share one statement.
  const read = sharedRun(() => readState(db))
  gaugeOf('tundish_database_up', 'Whether the database responds.', async () => ((await read()) ? 1 : 0))
  for (const [column, [name, help]] of Object.entries(GAUGES)) {
    gaugeOf(name, help, async () => {
      const row = await read()
      return row && Number(row[column])
    })
  }

  function gaugeOf(name: string, help: string, value: () => Promise<number | undefined>): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      registers,
      async collect() {
        const now = await value()
        if (now === undefined) gauge.remove()
        else gauge.set(now)
      },
    })
  }
}

/** Reads all gauges; undefined if the database fails or does not respond in time. */
async function readState(db: Db): Promise<Record<string, string | null> | undefined> {
  let timer: NodeJS.Timeout | undefined
  const timedOut = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), TIMEOUT_MS)
  })
  const state = db.query(STATE).then(
    ([row]) => row,
    () => undefined,
  )
  const row = await Promise.race([state, timedOut])
  clearTimeout(timer)
  return row
}

const age = (instant: string) => `coalesce(extract(epoch from db_clock() - ${instant}), 0)`

const inProgress = (table: string) => `
  select count(*) as n, count(pending_since) as pending, min(next_look_at) as due,
    min(created_at) filter (where pending_since is null) as since
  from ${table} where status = 'processing'`

const STATE = `
  select charges.n as charges, charges.pending as charges_pending, ${age('charges.since')} as charges_s,
    refunds.n as refunds, refunds.pending as refunds_pending, ${age('refunds.since')} as refunds_s,
    greatest(0, ${age('charges.due')}, ${age('refunds.due')}) as settling_s,
    (select count(*) from (
       select settled_at from orders where provider_mismatch is not null
       union all select settled_at from refunds where provider_mismatch is not null) m
     where coalesce(m.settled_at, db_clock()) > db_clock() - interval '30 days') as mismatches,
    coalesce((select extract(epoch from lost_from) from failovers where loss <> 'none' order by generation desc limit 1),
      0) as commits_lost_s,
    (select count(*) from events where pending) as events,
    deliveries.n as deliveries, ${age('deliveries.since')} as deliveries_s,
    greatest(0, ${age('deliveries.due')}) as deliveries_due_s,
    (select count(*) from webhook_endpoints where enabled and failing_since is not null) as endpoints,
    (select count(*) from alert_destinations where failing_since is not null) as alerts,
    (select ${age('min(a.xact_start)')} from pg_locks l join pg_stat_activity a using (pid)
     where l.locktype = 'advisory' and l.objsubid = 2 and l.granted and l.classid = write_lock_class()
       and l.database = (select oid from pg_database where datname = current_database())) as horizon_s
  from (${inProgress('orders')}) charges, (${inProgress('refunds')}) refunds,
    (select count(*) as n, min(d.created_at) as since, min(d.next_attempt_at) as due
     from webhook_deliveries d join webhook_endpoints e on e.project_id = d.project_id and e.id = d.endpoint_id
     where d.status = 'pending' and e.enabled) deliveries`
