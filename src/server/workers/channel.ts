// A worker's channel to its supervisor.
import type { ProcessMetrics } from '../../core/metrics/merge.ts'
import type { FromWorker, ToWorker } from './messages.ts'

type Begin = Extract<ToWorker, { is: 'begin' }>

export interface Channel {
  /** The supervisor's first message: the worker's number and its connections. */
  begin: Promise<Begin>
  /** Resolves when this worker has to do the background work. */
  work: Promise<void>
  /** Resolves when another worker has replaced this one. */
  leave: Promise<void>
  /** Resolves when the program stops, or when the supervisor has ended. */
  stop: Promise<void>
  /** The metrics of all workers; empty without a supervisor. */
  allMetrics(): Promise<ProcessMetrics[]>
  /** Resolves when the message has been handed to the operating system. */
  send(message: FromWorker): Promise<void>
}

/** Opens the channel. `readMetrics` returns the metrics of this worker. */
export function openChannel(readMetrics: () => Promise<ProcessMetrics>): Channel {
  const begin = Promise.withResolvers<Begin>()
  const work = Promise.withResolvers<void>()
  const leave = Promise.withResolvers<void>()
  const stop = Promise.withResolvers<void>()
  let requested: PromiseWithResolvers<ProcessMetrics[]> | undefined

  const send = (message: FromWorker) =>
    new Promise<void>((resolve) => {
      if (process.connected) process.send!(message, () => resolve())
      else resolve()
    })
  const receiveAll = (metrics: ProcessMetrics[]) => {
    requested?.resolve(metrics)
    requested = undefined
  }
  process.on('message', (message: ToWorker) => {
    if (message.is === 'begin') begin.resolve(message)
    if (message.is === 'work') work.resolve()
    if (message.is === 'leave') leave.resolve()
    if (message.is === 'stop') stop.resolve()
    if (message.is === 'count') void readMetrics().then((counted) => send({ is: 'counted', counted }))
    if (message.is === 'all') receiveAll(message.counted)
  })
  const onSupervisorEnded = () => {
    stop.resolve()
    receiveAll([])
  }
  process.on('disconnect', onSupervisorEnded)
  // Emitted if a message cannot be delivered because the supervisor has just ended.
  process.on('error', onSupervisorEnded)
  if (!process.connected) onSupervisorEnded()
  return {
    begin: begin.promise,
    work: work.promise,
    leave: leave.promise,
    stop: stop.promise,
    async allMetrics() {
      if (!process.connected) return []
      if (!requested) {
        requested = Promise.withResolvers()
        void send({ is: 'asking' })
      }
      return requested.promise
    },
    send,
  }
}
