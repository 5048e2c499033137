// Clients in a separate thread, so that their times do not include delays of the test.
import { once } from 'node:events'
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { send } from '../../support/server.ts'

interface Calling {
  url: string
  path: string
  key: string
  callers: number
  /** The pause between a response and the next request. */
  pauseMs: number
}

export interface Called {
  /** The time of each response. */
  tookMs: number[]
  /** The responses other than 200. */
  wrong: string[]
}

/** Starts the clients; they send requests until the returned function is called. */
export async function startCallers(calling: Calling): Promise<() => Promise<Called>> {
  const worker = new Worker(new URL(import.meta.url), { workerData: calling })
  const begun = Promise.race([
    once(worker, 'message'),
    once(worker, 'error').then(([error]) => Promise.reject(error as Error)),
  ])
  await begun
  return async () => {
    worker.postMessage('stop')
    const [called] = (await once(worker, 'message')) as [Called]
    await worker.terminate()
    return called
  }
}

async function call({ url, path, key, callers, pauseMs }: Calling): Promise<void> {
  const called: Called = { tookMs: [], wrong: [] }
  const agent = new Agent({ keepAlive: true, maxSockets: callers })
  let stopping = false
  parentPort!.once('message', () => {
    stopping = true
  })
  parentPort!.postMessage('begun')
  const caller = async () => {
    while (!stopping) {
      const begunMs = performance.now()
      const { status, text } = await send(agent, url, path, { key })
      called.tookMs.push(performance.now() - begunMs)
      if (status !== 200) called.wrong.push(`${status} ${text}`)
      await sleep(pauseMs)
    }
  }
  await Promise.all(Array.from({ length: callers }, caller))
  agent.destroy()
  parentPort!.postMessage(called)
}

if (!isMainThread && (workerData as Partial<Calling> | null)?.callers) await call(workerData as Calling)
