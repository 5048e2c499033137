// The doctor's findings, cached for ten minutes: an examination takes seconds, because it counts all records.
import type { App } from '../../app.ts'
import { examine, type Finding } from '../doctor/doctor.ts'

export interface Findings {
  at: string
  findings: Finding[]
}

const KEPT_MS = 10 * 60_000

interface Examination {
  beganMs: number
  found: Promise<Findings>
}

const examinations = new WeakMap<App['config'], Examination>()

/** The cached findings, or those of a new examination, which concurrent callers share. */
export function findingsOf({ config, clock }: App): Promise<Findings> {
  const last = examinations.get(config)
  const nowMs = clock.monotonicMs()
  if (last && nowMs - last.beganMs < KEPT_MS) return last.found
  const found = examine(config).then((findings) => ({ at: new Date().toISOString(), findings }))
  examinations.set(config, { beganMs: nowMs, found })
  found.catch(() => examinations.delete(config))
  return found
}
