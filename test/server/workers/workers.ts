// A supervisor with its workers on their own database, and clients that send requests without pause on kept-alive connections.
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive } from '../../../src/lib/embedded/account.ts'
import { type Billing, type Organization, startBilling } from '../../support/billing.ts'
import { type LogLine, type ServerProcess, startProcess } from '../../support/cli.ts'
import { type ApiResponse, type Call, send } from '../../support/server.ts'
import { until } from '../../support/time.ts'

export interface Workers extends ServerProcess {
  billing: Billing
  shop: Organization
  /** The processes that serve at this moment, according to the log. */
  pids(): number[]
  /** The lines of the log with this text. */
  logged(msg: string): LogLine[]
  /** Waits until the log has this many lines with this text. */
  untilLogged(msg: string, times?: number): Promise<void>
  /** A client with its own connection. */
  client(): Client
  close(): Promise<void>
}

export interface Client {
  call(path: string, call?: Call): Promise<ApiResponse>
  close(): void
}

// Some seconds on a machine that does nothing else; two restarts take more than a minute beside eight busy loops.
const LONGEST_RESTART_MS = 200_000

/** Starts them beside a server of the test's own, which makes what they serve and does no work. */
export async function openWorkers(count: number, env: Record<string, string> = {}): Promise<Workers> {
  const billing = await startBilling({ PROVIDER_TIMEOUT_MS: '10000' }, { worker: false })
  const shop = await billing.organization()
  const server = await startProcess({ ...billing.server.env, ...env }, ['--workers', String(count)])
  const logged = (msg: string) => server.log.filter((line) => line.msg === msg)
  return {
    ...server,
    billing,
    shop,
    pids: () => pidsOf(server.log).filter(isAlive),
    logged,
    untilLogged: (msg, times = 1) => until(`"${msg}"`, () => logged(msg).length >= times, LONGEST_RESTART_MS),
    client: () => openClient(server.url),
    async close() {
      await server.stop()
      await billing.stop()
    },
  }
}

export const pidsOf = (log: LogLine[]) => log.filter(({ msg }) => msg === 'A worker is ready.').map(({ pid }) => pid!)

export function openClient(url: string): Client {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  return { call: (path, given = {}) => send(agent, url, path, given), close: () => agent.destroy() }
}

const PATIENCE_MS = 15_000

export interface Received {
  responses: number
  /** Responses with `Connection: close`. */
  closing: number
  /** Responses with another status than 200, and failed requests. */
  wrong: string[]
}

/**
 * Sends requests from this many clients, with a pause between two of a client, until the returned function is called, which has what
 * they have received so far.
 */
export function sendUntilStopped(
  { client }: Pick<Workers, 'client'>,
  clients: number,
  request: (client: Client) => Promise<ApiResponse>,
  pauseMs: number,
) {
  const received: Received = { responses: 0, closing: 0, wrong: [] }
  let stopping = false
  async function sendRequests(): Promise<void> {
    const one = client()
    while (!stopping) {
      const hung = sleep(PATIENCE_MS, { status: 0, text: 'hung', headers: {} }, { ref: false })
      const broken = (error: Error) => ({ status: 0, text: error.message, headers: {} })
      const response = await Promise.race([request(one).catch(broken), hung])
      received.responses += 1
      if (response.status !== 200) received.wrong.push(`${response.status} ${response.text}`)
      if ((response.headers as Record<string, string>)['connection'] === 'close') received.closing += 1
      await sleep(pauseMs)
    }
    one.close()
  }
  const sending = Promise.all(Array.from({ length: clients }, sendRequests))
  const stop = async () => {
    stopping = true
    await sending
    return received
  }
  return Object.assign(stop, { received })
}
