// A thread that sends many requests at once and reads their answers, so that its own work is not on the server's account.
import { once } from 'node:events'
import { Agent, get } from 'node:http'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

interface Many {
  url: string
  headers: Record<string, string>
  /** How many at once. */
  times: number
  /** How often each connection sends, one after the other. */
  rounds: number
}

/** Sends many at once, each on a connection of its own; answers the statuses of all. */
export async function manyRequests(many: Many): Promise<number[]> {
  const worker = new Worker(new URL(import.meta.url), { workerData: many })
  const [statuses] = (await once(worker, 'message')) as [number[]]
  await worker.terminate()
  return statuses
}

async function send({ url, headers, times, rounds }: Many): Promise<number[]> {
  const agent = new Agent({ keepAlive: true })
  const one = () =>
    new Promise<number>((resolve, reject) => {
      const asked = get(url, { agent, headers }, (answer) => {
        answer.resume().on('end', () => resolve(answer.statusCode!))
      })
      asked.on('error', reject)
    })
  const line = async () => {
    const statuses = []
    for (let round = 0; round < rounds; round += 1) statuses.push(await one())
    return statuses
  }
  const statuses = await Promise.all(Array.from({ length: times }, line))
  agent.destroy()
  return statuses.flat()
}

if (!isMainThread && workerData?.times) parentPort!.postMessage(await send(workerData as Many))
