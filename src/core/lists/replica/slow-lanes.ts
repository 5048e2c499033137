// Connections to the replica for slow reads, one read at a time on each, so that no short read waits behind them.
import type { Lane } from './lane.ts'

export interface SlowLanes {
  /** Runs `work` on a separate connection; returns undefined when all are busy. */
  use<T>(work: (lane: Lane) => Promise<T>): Promise<T | undefined>
  close(): Promise<void>
}

export function openSlowLanes(open: () => Lane, max: number): SlowLanes {
  const all: Lane[] = []
  const idle: Lane[] = []

  function take(): Lane | undefined {
    const lane = idle.pop()
    if (lane || all.length === max) return lane
    const opened = open()
    all.push(opened)
    return opened
  }

  return {
    async use(work) {
      const lane = take()
      if (!lane) return undefined
      try {
        return await work(lane)
      } finally {
        idle.push(lane)
      }
    },
    async close() {
      await Promise.all(all.map((lane) => lane.close()))
    },
  }
}
