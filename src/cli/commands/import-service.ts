// What the imports from another service share: they run until they are stopped, and continue where they were interrupted.
import type { App } from '../../app.ts'
import type { Config } from '../../config.ts'
import { addEntry } from '../../core/audit/audit.ts'
import { Stopped } from '../../data/ingest/stripe/run.ts'
import { Refusal } from '../../lib/errors.ts'
import { causeOf, isUnavailable } from '../../lib/pg/errors.ts'
import { printable } from '../../lib/text.ts'
import { type Result, untilStopped } from './command.ts'
import { commandLine } from './operations.ts'

const INTERRUPTED = 'The import was interrupted. Run the command again: it continues where it stopped.'

/** Runs an import with everything open, until it ends or is interrupted. */
export const untilInterrupted = (config: Config, run: (app: App, signal: AbortSignal) => Promise<Result>) =>
  untilStopped(config, (app, signal) =>
    run(app, signal).catch((error) => {
      throw asRefusal(error, signal)
    }),
  )

function asRefusal(error: unknown, signal: AbortSignal): unknown {
  if (error instanceof Stopped) return new Refusal('The import was stopped by an operator.')
  if (signal.aborted) return new Refusal(INTERRUPTED)
  if (isUnavailable(error)) return new Refusal(`The database became unavailable (${causeOf(error)}). ${INTERRUPTED}`)
  return error
}

export const printLine = (line: string) => void process.stderr.write(`${printable(line)}\n`)

/** Writes an entry about the import into the audit log. */
export const writeEntry = (app: App, { projectId }: { projectId: string }, action: string, after: object) =>
  addEntry(app, commandLine(), { action, target: `project ${projectId}`, after })
