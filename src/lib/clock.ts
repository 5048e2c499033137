// The clock for waits and deadlines: real in the program, virtual in a simulation. Stamps come from the database.
import { setTimeout as wait } from 'node:timers/promises'

export interface Clock {
  /** Milliseconds that only grow, from an arbitrary zero. */
  monotonicMs(): number
  /** Resolves after `ms`, or at once when `signal` aborts; never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>
}

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  sleep: (ms, signal) =>
    wait(ms, undefined, { signal }).catch((error) => {
      if (error.name !== 'AbortError') throw error
    }),
}
