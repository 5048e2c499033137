// The doctor's findings, cached for ten minutes: an examination takes seconds, or minutes of a large installation, because it counts all
// records.
import type { App } from '../../app.ts'
import { examine, type Finding } from './doctor.ts'

export interface Findings {
  at: string
  findings: Finding[]
}

const KEPT_MS = 10 * 60_000
/** The largest share of the time that examinations take in the background. */
const SHARE = 1 / 20

interface Examination {
  beganMs: number
  found: Promise<Findings>
  /** Undefined while it runs. */
  result?: Findings
  tookMs?: number
}

const examinations = new WeakMap<App['config'], Examination>()

/** The cached findings, or those of a new examination, which concurrent callers share. */
export function findingsOf({ config, clock }: App): Promise<Findings> {
  const last = examinations.get(config)
  if (last && (last.tookMs === undefined || clock.monotonicMs() - last.beganMs < keptMs(last.tookMs))) return last.found
  return examineNow({ config, clock })
}

const keptMs = (tookMs: number) => Math.max(KEPT_MS, tookMs / SHARE)

/** The findings of a new examination. */
export function examineNow({ config, clock }: Pick<App, 'config' | 'clock'>): Promise<Findings> {
  const found = examine(config).then((findings) => ({ at: new Date().toISOString(), findings }))
  const examination: Examination = { beganMs: clock.monotonicMs(), found }
  examinations.set(config, examination)
  found.then(
    (result) => {
      examination.result = result
      examination.tookMs = clock.monotonicMs() - examination.beganMs
    },
    () => examinations.delete(config),
  )
  return found
}

/** The findings of the last examination, for pages that cannot wait; undefined if none has ended. Begins one if it is due. */
export function knownFindings(app: App): Findings | undefined {
  const known = examinations.get(app.config)?.result
  findingsOf(app).catch(() => {})
  return examinations.get(app.config)?.result ?? known
}
