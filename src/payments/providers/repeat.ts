// Repeats a call for which no caller waits, such as a page of a list that is compared, while its outcome is unknown.
import type { Clock } from '../../lib/clock.ts'
import type { Unknown } from './outcomes.ts'

// One bad response, a restart or a short outage must not end a comparison of hours; a longer one is for the operator to know.
const TRIES = 5
const FIRST_PAUSE_MS = 500

/** The first known outcome, or the last unknown one. A missing permission is not there the next time either. */
export async function repeatUnknown<T>(clock: Clock, call: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    const result = await call()
    if (!isUnknown(result) || result.missingPermission !== undefined || tries === TRIES) return result
    await clock.sleep(FIRST_PAUSE_MS * 2 ** (tries - 1))
  }
}

function isUnknown(result: unknown): result is Unknown {
  return typeof result === 'object' && result !== null && 'outcome' in result && result.outcome === 'unknown'
}
