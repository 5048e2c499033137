// Visits that are written as records, one by one or in batches, to our server or to the plain one.
import type { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { requestText } from './client.ts'
import type { Program } from './rig.ts'

export interface Side {
  name: string
  program: Program
  url: string
  headers: Record<string, string>
}

const T = '2026-01-31T09:00:00Z'
const PEOPLE = 500
let made = 0

const session = () => {
  const id = `ses_${++made}`
  const data = {
    id,
    created_at: T,
    profile_id: `pro_${made % PEOPLE}`,
    funnel_id: 'funnel',
    locale: 'de',
    country: 'DE',
  }
  return { record: 'session', data: { ...data, user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' } }
}

/** Both servers write into the project `bench`. */
export function sidesOf(ours: Program, plain: Program, key: string): [ours: Side, plain: Side] {
  return [
    { name: 'ours', program: ours, url: `${ours.url}/public/v1/records`, headers: { 'Service-Secret': key } },
    { name: 'plain', program: plain, url: `${plain.url}/records`, headers: {} },
  ]
}

/** What the sessions refer to. */
export async function writePeople(agent: Agent, { url, headers }: Side): Promise<void> {
  const people = Array.from({ length: PEOPLE }, (_, n) => ({
    record: 'profile',
    data: { id: `pro_${n}`, created_at: T },
  }))
  const funnel = { record: 'funnel', data: { id: 'funnel', title: 'Quiz', created_at: T } }
  await requestText(agent, url, headers, { records: [funnel, ...people] })
}

/** Writes so many new sessions in one call. */
export const writeSessions = (agent: Agent, { url, headers }: Side, count: number) =>
  requestText(agent, url, headers, { records: Array.from({ length: count }, session) })

/** Writes single sessions at a steady rate, until `isOver`; returns how long each took from when it was due, in milliseconds. */
export async function writeSteadily(
  agent: Agent,
  side: Side,
  perSecond: number,
  isOver: () => boolean,
): Promise<number[]> {
  const times: number[] = []
  const sent: Promise<unknown>[] = []
  const begunMs = performance.now()
  while (!isOver()) {
    const dueMs = begunMs + (sent.length * 1000) / perSecond
    if (performance.now() < dueMs) await sleep(Math.max(0, dueMs - performance.now()))
    else sent.push(writeSessions(agent, side, 1).then(() => times.push(performance.now() - dueMs)))
  }
  await Promise.all(sent)
  return times
}
