// Checks the alerts of all projects and sends their messages in the background. Any number of processes may do it.
import { resolverFor } from '../../core/events/send.ts'
import { repeat } from '../../lib/repeat.ts'
import { checkDue } from './check.ts'
import { deliverDue } from './deliver.ts'
import type { Shared } from './state.ts'

// Messages are about days: seconds do not matter.
const PAUSE_MS = 5_000

/** Starts the background work; returns the function that stops it. */
export function sendAlerts(app: Shared): () => Promise<void> {
  const options = { pauseMs: PAUSE_MS, failure: 'Alerts could not be checked or sent.' }
  return repeat(app, options, (signal) => alertsOnce(app, signal))
}

/** Checks the projects that are due, and sends the messages that are due. */
export async function alertsOnce(app: Shared, signal?: AbortSignal): Promise<void> {
  await checkDue(app, signal)
  await deliverDue(app, resolverFor({ allowPrivate: app.config.webhookAllowPrivate }), signal)
}
