// One worker as its supervisor sees it: a process that begins, becomes ready, leaves, and ends in one way or another.
import cluster from 'node:cluster'
import { Refusal, UsageError } from '../lib/errors.ts'
import { saveConnections } from './hand-over.ts'
import type { FromWorker, ToWorker } from './messages.ts'
import type { Share } from './shares.ts'

export interface Member {
  number: number
  pid: number
  state: 'starting' | 'ready' | 'leaving' | 'ended'
  /** The background work is its. */
  works: boolean
  /** It was told to leave. */
  dismissed: boolean
  /** Since when it is ready, by this process's clock; undefined while it is not. */
  readyMs: number | undefined
  /** Resolves with its addresses; rejects with the reason why it cannot serve, once it has ended. */
  ready: Promise<Addresses>
  /** Resolves when its process has gone, with how. */
  ended: Promise<End>
  tell(message: ToWorker): void
  askForCount(): void
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

/** Starts a worker; `hear` is called with its messages. */
export function startMember(number: number, share: Share, hear: (said: FromWorker) => void): Member {
  const worker = cluster.fork()
  saveConnections(worker)
  const ready = Promise.withResolvers<Addresses>()
  let reason: Error | undefined
  const member: Member = {
    number,
    pid: worker.process.pid ?? 0,
    state: 'starting',
    works: false,
    dismissed: false,
    readyMs: undefined,
    ready: ready.promise,
    ended: endOf(worker),
    // It may have gone this very moment, which its end tells.
    tell: (message) => void (worker.isConnected() && worker.send(message, () => {})),
    askForCount: () => member.tell({ is: 'count' }),
    kill: () => void worker.process.kill('SIGKILL'),
  }
  worker.on('message', (said: FromWorker) => {
    if (said.is === 'failed') reason = said.usage ? new UsageError(said.sentence) : new Refusal(said.sentence)
    if (said.is === 'ready' && member.state === 'starting') {
      member.state = 'ready'
      member.readyMs = performance.now()
      ready.resolve(said)
    }
    hear(said)
  })
  void member.ended.then(({ code, signal }) => {
    member.state = 'ended'
    ready.reject(reason ?? new Refusal(`A worker ended before it was ready (${signal ?? `exit code ${code}`}).`))
  })
  // The caller may have stopped waiting.
  member.ready.catch(() => {})
  member.tell({ is: 'begin', number, share })
  return member
}

function endOf(worker: ReturnType<typeof cluster.fork>): Promise<End> {
  return new Promise((resolve) => {
    worker.once('exit', (code, signal) => resolve({ code, signal }))
    // A message that a dying worker cannot take is an error too; its end follows. Without a process there is none.
    worker.on('error', (error: NodeJS.ErrnoException) => {
      if (worker.process.pid === undefined) resolve({ code: null, signal: error.code ?? 'unknown' })
    })
  })
}
