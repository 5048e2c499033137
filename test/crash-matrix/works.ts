// The work of the crash matrix besides requests: background work, imports, erasures, restores, reconciliations.
import { Readable } from 'node:stream'
import { type App, openApp } from '../../src/app.ts'
import { readConfig } from '../../src/config.ts'
import { eraseAtProviders } from '../../src/core/erasure/at-provider.ts'
import { erase } from '../../src/core/erasure/erasure.ts'
import { readLedgers } from '../../src/core/erasure/ledger-files.ts'
import { deliverEvents } from '../../src/core/events/dispatcher.ts'
import { deleteSome } from '../../src/core/events/retention.ts'
import { sweepCounts } from '../../src/core/lists/counts.ts'
import { followProject } from '../../src/data/figures/follow.ts'
import { importRecords } from '../../src/data/ingest/load.ts'
import { carryOutImports } from '../../src/data/ingest/stripe/background.ts'
import { Refusal } from '../../src/lib/errors.ts'
import { openLog } from '../../src/lib/log.ts'
import { restore } from '../../src/operations/backup/restore.ts'
import { billingContext } from '../../src/payments/billing/context.ts'
import { reconcile } from '../../src/payments/billing/reconcile/reconcile.ts'
import { startSettling } from '../../src/payments/billing/settling.ts'
import { until } from '../support/time.ts'

export const ACTOR = { kind: 'tundish', id: 'crash matrix', source: 'here' } as const
const PATIENCE_MS = 180_000

/** The ids and texts of the victim, and for a restore the settings of the database. */
export type Subject = Record<string, string>

/** Runs until a statement finds no row. */
async function runUntilNone(app: App, stop: () => Promise<void>, statement: string, params: string[]): Promise<void> {
  const isDone = async () => (await app.db.query(statement, params)).length === 0
  await until('the work to be done', isDone, PATIENCE_MS)
  await stop()
}

const lines = (text: string) => [{ name: 'file', stream: () => Readable.from([Buffer.from(text)]) }]

const SETTLES: Work = (app, { user }) =>
  runUntilNone(
    app,
    startSettling(billingContext(app)),
    `select 1 from orders where external_id = $1 and status = 'processing'
     union all select 1 from refunds where external_id = $1 and status = 'processing'`,
    [user!],
  )

type Work = (app: App, subject: Subject) => Promise<unknown>

const WORKS: Record<string, Work> = {
  settling: SETTLES,
  delivery: (app, { event }) =>
    runUntilNone(
      app,
      deliverEvents(app),
      `select 1 from events e left join webhook_deliveries d on d.event_id = e.id
       where e.id = $1 and (e.pending or d.status = 'pending')`,
      [event!],
    ),
  counts: (app, { project }) =>
    runUntilNone(app, sweepCounts(app), 'select 1 from counts where project_id = $1 and fresh', [project!]),
  figures: (app, { project }) => followProject(app.db, project!),
  retention: (app) => deleteSome(app.db),
  import: (app, { project, text, live }) =>
    importRecords(app, { projectId: project!, live: live === 'true' }, lines(text!)),
  erasure: (app, { project, profile }) =>
    erase({ ...app, erasureLedger: app.config.erasureLedger }, ACTOR, project!, [profile!]),
  'stripe import': (app, { project }) =>
    runUntilNone(
      app,
      carryOutImports(app),
      `select 1 from stripe_imports where project_id = $1 and status in ('waiting', 'running')`,
      [project!],
    ),
  'erasure at provider': (app, { profile }) =>
    runUntilNone(
      app,
      eraseAtProviders(app),
      'select 1 from provider_erasures where profile_id = $1 and done_at is null',
      [profile!],
    ),
  reconcile: (app, { since }) => reconcile(billingContext(app), since!),
}

/** Restores a backup; a database that has it already refuses. */
async function restoreOnce(env: NodeJS.ProcessEnv, { file, ledger }: Subject): Promise<void> {
  const config = readConfig(env)
  const progress = { at() {}, moved() {}, end() {} }
  const read = (unreadable: string[]) => readLedgers([ledger!], unreadable)
  const ledgers = [{ path: ledger!, read }]
  const options = {
    file: file!,
    replace: false,
    ledgers,
    reasons: [],
    accounts: [],
    actor: ACTOR,
    signal: new AbortController().signal,
    progress,
  }
  await restore(config, options).catch((error) => {
    if (!(error instanceof Refusal && /holds data already/.test(error.message))) throw error
  })
}

export interface Opened {
  run(subject: Subject): Promise<unknown>
  close(): Promise<void>
}

/** Opens what the work needs. */
export async function openWork(name: string, env: NodeJS.ProcessEnv): Promise<Opened> {
  if (name === 'restore')
    return { run: (subject) => restoreOnce({ ...env, ...subject }, subject), close: async () => {} }
  const app = await openApp(readConfig(env), { log: openLog('silent') })
  return { run: (subject) => WORKS[name]!(app, subject), close: app.close }
}

/** Does a piece of work to its end. */
export async function doWork(name: string, env: NodeJS.ProcessEnv, subject: Subject): Promise<void> {
  const work = await openWork(name, env)
  await work.run(subject).finally(work.close)
}
