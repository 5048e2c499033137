// Monitors the replica: writes the heartbeat at the primary, polls every replica connection for it, and logs changes.
import type { Clock } from '../../../lib/clock.ts'
import type { Heartbeat } from './heartbeat.ts'
import type { Lane } from './lane.ts'

export interface BeatingOptions {
  clock: Clock
  everyMs: number
  heartbeat: Heartbeat
  lanes: Lane[]
  usable: () => boolean
  log: { info(message: string): void; warn(message: string): void }
}

export interface Beating {
  /** The age of the newest state that the replica has shown. */
  lagMs(): number
  stop(): Promise<void>
}

// A starting process does not log a replica that is not checked yet.
const FIRST_BEATS = 10

export function startBeating({ clock, everyMs, heartbeat, lanes, usable, log }: BeatingOptions): Beating {
  const stopping = new AbortController()
  let freshMs = clock.monotonicMs()
  let logged: boolean | undefined

  function logChange(beats: number): void {
    for (const lane of lanes) freshMs = Math.max(freshMs, lane.known()?.freshMs ?? freshMs)
    const now = usable()
    if (now === logged || (!now && beats < FIRST_BEATS)) return
    logged = now
    if (now) log.info('The replica is used for reads.')
    else log.warn(`The replica is not used: it ${whyNot(lanes)}. All reads go to the primary.`)
  }

  async function work(): Promise<void> {
    for (let beats = 1; !stopping.signal.aborted; beats += 1) {
      // Without the primary there is no new token, and the replica becomes stale.
      const beat = heartbeat.beat().catch(() => {})
      await Promise.race([beat, clock.sleep(everyMs, stopping.signal)])
      await Promise.all(lanes.map((lane) => lane.poll()))
      logChange(beats)
      await Promise.all([beat, clock.sleep(everyMs, stopping.signal)])
    }
  }

  const working = work()
  return {
    lagMs: () => clock.monotonicMs() - freshMs,
    async stop() {
      stopping.abort()
      await working
    },
  }
}

function whyNot(lanes: Lane[]): string {
  return lanes.find((lane) => !lane.known())?.problem() ?? 'is too far behind'
}
