// Runs the provider simulator in a process that reports the time of each request, from its headers to the end of the response.
import { subscribe } from 'node:diagnostics_channel'
import type { IncomingMessage } from 'node:http'
import { openLog } from '../src/lib/log.ts'
import { startSimulator } from '../src/simulators/server.ts'

const begun = new WeakMap<IncomingMessage, number>()
/** Trace ids and milliseconds. */
let times: [trace: string, ms: number][] = []

subscribe('http.server.request.start', (message) => {
  const { request } = message as { request: IncomingMessage }
  begun.set(request, performance.now())
})
subscribe('http.server.response.finish', (message) => {
  const { request } = message as { request: IncomingMessage }
  const trace = (request.headers.traceparent as string | undefined)?.slice(3, 35)
  if (trace !== undefined) times.push([trace, performance.now() - begun.get(request)!])
})
process.on('message', () => {
  process.send!({ times })
  times = []
})

const simulator = await startSimulator({ port: 0, ledgerFile: process.argv[2]!, log: openLog('error') })
process.send!({ url: simulator.url })
process.once('SIGTERM', () => simulator.close().then(() => process.exit()))
