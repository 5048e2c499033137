// Collects what all workers have counted, for the one whose metrics are read.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Counted, lasting } from '../metrics/merge.ts'

/** A worker, as far as counting goes. */
interface Counter {
  askForCount(): void
}

// A worker that is too busy to answer in time counts with its previous answer.
const PATIENCE_MS = 1000

export interface Counts {
  /** What all have counted: each of the living, and all who have gone. */
  all(living: readonly Counter[]): Promise<Counted[]>
  /** Takes what one of them said. */
  take(from: Counter, counted: Counted): void
  /** Keeps the counters of one that has ended. */
  keep(from: Counter): void
}

export function openCounts(): Counts {
  const last = new Map<Counter, Counted>()
  const awaited = new Map<Counter, () => void>()
  let gone: Promise<Counted> = Promise.resolve([])
  let gathering: Promise<void> | undefined

  async function gather(living: readonly Counter[]): Promise<void> {
    const timeout = new AbortController()
    const answers = living.map((one) => {
      const answered = new Promise<void>((resolve) => awaited.set(one, resolve))
      one.askForCount()
      return answered
    })
    const patience = sleep(PATIENCE_MS, undefined, { signal: timeout.signal }).catch(() => {})
    await Promise.race([Promise.all(answers), patience])
    timeout.abort()
    awaited.clear()
  }

  return {
    async all(living) {
      gathering ??= gather(living).finally(() => {
        gathering = undefined
      })
      await gathering
      // First those that have ended, then the living at one moment: none is counted twice or missed.
      for (let kept = gone; ; kept = gone) {
        const ofGone = await kept
        if (kept === gone) return [...last.values(), ofGone]
      }
    },
    take(from, counted) {
      last.set(from, counted)
      awaited.get(from)?.()
    },
    keep(from) {
      const counted = last.get(from)
      last.delete(from)
      awaited.get(from)?.()
      if (counted) gone = gone.then((before) => lasting([before, counted]))
    },
  }
}
