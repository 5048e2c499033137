// What the doctor finds, kept for ten minutes: a look takes seconds, and counts everything.
import type { App } from '../app.ts'
import { examine, type Finding } from '../doctor/doctor.ts'

export interface Findings {
  at: string
  findings: Finding[]
}

const KEPT_MS = 10 * 60_000

interface Look {
  beganMs: number
  found: Promise<Findings>
}

const looks = new WeakMap<App['config'], Look>()

/** The findings of the last ten minutes, or of a look now; who asks meanwhile waits for the same look. */
export function findingsOf({ config, clock }: App): Promise<Findings> {
  const last = looks.get(config)
  const nowMs = clock.monotonicMs()
  if (last && nowMs - last.beganMs < KEPT_MS) return last.found
  const found = examine(config).then((findings) => ({ at: new Date().toISOString(), findings }))
  looks.set(config, { beganMs: nowMs, found })
  found.catch(() => looks.delete(config))
  return found
}
