// A client that sends requests one at a time and measures how long each takes.
import { Agent } from 'node:http'
import { percentile } from './measure.ts'
import { ask } from './walks.ts'

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
  const asks = calls.map(
    ({ url, headers, body }) =>
      () =>
        ask(agent, url, headers, body),
  )
  const times = (await timeTurns(asks, seconds)).flat()
  agent.destroy()
  return { p50Ms: percentile(times, 0.5)!, requests: times.length }
}

/** Calls the functions in turn for some seconds, each at least once; returns the milliseconds of each call. */
export async function timeTurns(asks: (() => Promise<unknown>)[], seconds: number): Promise<number[][]> {
  const times: number[][] = asks.map(() => [])
  const untilMs = performance.now() + seconds * 1000
  for (let n = 0; performance.now() < untilMs || n < asks.length; n += 1) {
    const begunMs = performance.now()
    await asks[n % asks.length]!()
    times[n % asks.length]!.push(performance.now() - begunMs)
  }
  return times
}
