// A client that sends requests one at a time and measures how long each takes.
import { once } from 'node:events'
import { Agent, type IncomingMessage, request } from 'node:http'
import { percentile } from './measure.ts'

export interface Call {
  url: string
  headers: Record<string, string>
  body?: object
}

export interface Times {
  p50Ms: number
  requests: number
}

/** Sends all calls in turn, again and again, for some seconds. */
export async function timeCalls(calls: Call[], seconds: number): Promise<Times> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const requests = calls.map(
    ({ url, headers, body }) =>
      () =>
        requestText(agent, url, headers, body),
  )
  const times = (await timeTurns(requests, seconds)).flat()
  agent.destroy()
  return { p50Ms: percentile(times, 0.5)!, requests: times.length }
}

/** Calls the functions in turn for some seconds, each at least once; returns the milliseconds of each call. */
export async function timeTurns(functions: (() => Promise<unknown>)[], seconds: number): Promise<number[][]> {
  const times: number[][] = functions.map(() => [])
  const untilMs = performance.now() + seconds * 1000
  for (let n = 0; performance.now() < untilMs || n < functions.length; n += 1) {
    const begunMs = performance.now()
    await functions[n % functions.length]!()
    times[n % functions.length]!.push(performance.now() - begunMs)
  }
  return times
}

/** Sends one request by Node's own client, which keeps the case of header names; returns the body of its response. */
export async function requestText(
  agent: Agent,
  url: string,
  headers: Record<string, string>,
  body?: object,
): Promise<string> {
  const response = await send(agent, url, headers, body)
  const text = Buffer.concat(await response.toArray()).toString()
  if (response.statusCode !== 200) throw new Error(`${url} has the status ${response.statusCode}: ${text}`)
  return text
}

/** Sends one request the same way, and returns its response before the body has arrived. */
export async function send(
  agent: Agent,
  url: string,
  headers: Record<string, string>,
  body?: object,
): Promise<IncomingMessage> {
  const text = body && JSON.stringify(body)
  const length =
    text === undefined ? {} : { 'content-length': Buffer.byteLength(text), 'content-type': 'application/json' }
  const sent = request(url, { agent, method: text === undefined ? 'GET' : 'POST', headers: { ...headers, ...length } })
  sent.end(text)
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  return response
}
