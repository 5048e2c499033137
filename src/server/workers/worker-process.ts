// Starts one worker process and tracks its state for the supervisor.
import cluster from 'node:cluster'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { rescueConnections } from './hand-over.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import type { Share } from './shares.ts'

export interface WorkerProcess {
  number: number
  pid: number
  state: 'starting' | 'ready' | 'leaving' | 'ended'
  /** Whether it does the background work. */
  hasWork: boolean
  /** Whether it was replaced, so that its end is expected. */
  isDismissed: boolean
  /** When it became ready, by the monotonic clock of the supervisor; undefined before that. */
  readyMs: number | undefined
  /** Resolves with its addresses. If it cannot serve, rejects with the reason once the process has ended. */
  ready: Promise<Addresses>
  /** Resolves when the process has ended. */
  ended: Promise<End>
  send(message: ToWorker): void
  requestMetrics(): void
  kill(): void
}

export interface Addresses {
  url: string
  adminUrl: string | undefined
}

export interface End {
  code: number | null
  signal: string | null
}

/** A worker has ended before it was ready, without sending a reason. */
export class EndedEarly extends Refusal {
  /** Whether it was ended by a signal that terminals and systemd send to all processes of a command, so to the supervisor too. */
  readonly wasInterrupted: boolean

  constructor(code: number | null, signal: string | null) {
    super(`A worker ended before it was ready (${signal ?? `exit code ${code}`}).`)
    this.wasInterrupted = signal === 'SIGINT' || signal === 'SIGTERM' || signal === 'SIGHUP'
  }
}

/** Starts a worker. `onMessage` is called with each of its messages. */
export function startWorker(number: number, share: Share, onMessage: (message: FromWorker) => void): WorkerProcess {
  const forked = cluster.fork()
  rescueConnections(forked)
  const ready = Promise.withResolvers<Addresses>()
  let reason: Error | undefined
  const worker: WorkerProcess = {
    number,
    pid: forked.process.pid ?? 0,
    state: 'starting',
    hasWork: false,
    isDismissed: false,
    readyMs: undefined,
    ready: ready.promise,
    ended: endOf(forked),
    // An error is ignored: the worker has just ended, and `ended` resolves.
    send: (message) => void (forked.isConnected() && forked.send(message, () => {})),
    requestMetrics: () => worker.send({ is: 'count' }),
    kill: () => void forked.process.kill('SIGKILL'),
  }
  forked.on('message', (message: FromWorker) => {
    if (message.is === 'failed')
      reason = message.usage ? new UsageError(message.sentence) : new Refusal(message.sentence)
    if (message.is === 'ready' && worker.state === 'starting') {
      worker.state = 'ready'
      worker.readyMs = performance.now()
      ready.resolve(message)
    }
    onMessage(message)
  })
  void worker.ended.then(({ code, signal }) => {
    worker.state = 'ended'
    ready.reject(reason ?? new EndedEarly(code, signal))
  })
  // Prevents an unhandled rejection if the caller no longer waits.
  worker.ready.catch(() => {})
  worker.send({ is: 'begin', number, share })
  return worker
}

function endOf(forked: ReturnType<typeof cluster.fork>): Promise<End> {
  return new Promise((resolve) => {
    forked.once('exit', (code, signal) => resolve({ code, signal }))
    // A process that could not be started emits `error` and never `exit`. Other errors, such as a message that a dying worker
    // cannot receive, are followed by `exit`.
    forked.on('error', (error: NodeJS.ErrnoException) => {
      if (forked.process.pid === undefined) resolve({ code: null, signal: error.code ?? 'unknown' })
    })
  })
}
