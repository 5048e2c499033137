// Connections to the replica for reads that may take long, one read at a time on each, so that no short one waits behind.
import type { Lane } from './lane.ts'

export interface SlowLanes {
  /** Does `work` on a connection of its own; answers undefined when all are at work. */
  use<T>(work: (lane: Lane) => Promise<T>): Promise<T | undefined>
  close(): Promise<void>
}

export function openSlowLanes(open: () => Lane, most: number): SlowLanes {
  const all: Lane[] = []
  const idle: Lane[] = []

  function take(): Lane | undefined {
    const lane = idle.pop()
    if (lane || all.length === most) return lane
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
