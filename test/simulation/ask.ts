// One request of a client to one of the running processes.
import { ApiError } from '../../src/lib/errors.ts'
import type { Server } from './clients.ts'
import type { Scheduler } from './scheduler.ts'
import { isLoss } from './session.ts'

export interface Asking {
  scheduler: Scheduler
  running: () => ReadonlySet<Server>
  violated: (text: string) => void
}

// The timeout of a request; then the client sends it again.
const PATIENCE_MS = 10_000

/** Sends the request; an `ApiError` if it was refused, undefined without a response. An error of another kind is a violation. */
export async function ask<T>(
  { scheduler, running, violated }: Asking,
  what: string,
  work: (server: Server) => Promise<T>,
  told: (response: T) => string = (response) => JSON.stringify(response),
): Promise<T | ApiError | undefined> {
  if (running().size === 0) return undefined
  const server = scheduler.random.pick([...running()])
  scheduler.tell(`client: ${what} to ${server.process.name}`)
  const received = work(server).then(
    (response) => {
      scheduler.tell(`client: ${what}: ${told(response)}`)
      return response
    },
    (error: Error) => {
      scheduler.tell(`client: ${what}: ${error.message}`)
      if (error instanceof ApiError) return error
      if (!isLoss(error)) violated(`an error of ours: ${error.stack}`)
      return undefined
    },
  )
  return Promise.race([
    received,
    server.process.crashed.then(() => undefined),
    scheduler.sleep(PATIENCE_MS).then(() => undefined),
  ])
}
