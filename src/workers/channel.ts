// A worker's line to its supervisor.
import type { Counted } from '../metrics/merge.ts'
import type { FromWorker, ToWorker } from './messages.ts'

type Begin = Extract<ToWorker, { is: 'begin' }>

export interface Channel {
  /** Who this worker is. */
  begin: Promise<Begin>
  /** The background work is this worker's. */
  work: Promise<void>
  /** Another worker has replaced this one. */
  leave: Promise<void>
  /** The program ends, or the supervisor has gone. */
  stop: Promise<void>
  /** What all workers have counted; empty without a supervisor. */
  all(): Promise<Counted[]>
  /** Resolves when it is on its way. */
  tell(said: FromWorker): Promise<void>
}

/** Opens it; `count` answers what this worker has counted. */
export function openChannel(count: () => Promise<Counted>): Channel {
  const begin = Promise.withResolvers<Begin>()
  const [work, leave, stop] = [1, 2, 3].map(() => Promise.withResolvers<void>()) as [Once, Once, Once]
  let asked: PromiseWithResolvers<Counted[]> | undefined

  const tell = (said: FromWorker) =>
    new Promise<void>((resolve) => {
      if (process.connected) process.send!(said, () => resolve())
      else resolve()
    })
  const answer = (counted: Counted[]) => {
    asked?.resolve(counted)
    asked = undefined
  }
  process.on('message', (said: ToWorker) => {
    if (said.is === 'begin') begin.resolve(said)
    if (said.is === 'work') work.resolve()
    if (said.is === 'leave') leave.resolve()
    if (said.is === 'stop') stop.resolve()
    if (said.is === 'count') void count().then((counted) => tell({ is: 'counted', counted }))
    if (said.is === 'all') answer(said.counted)
  })
  const alone = () => {
    stop.resolve()
    answer([])
  }
  process.on('disconnect', alone)
  // The supervisor has ended, and its end is noticed by a message that does not reach it.
  process.on('error', alone)
  if (!process.connected) alone()
  return {
    begin: begin.promise,
    work: work.promise,
    leave: leave.promise,
    stop: stop.promise,
    async all() {
      if (!process.connected) return []
      if (!asked) {
        asked = Promise.withResolvers()
        void tell({ is: 'asking' })
      }
      return asked.promise
    },
    tell,
  }
}

type Once = PromiseWithResolvers<void>
