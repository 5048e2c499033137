// The writing of records beside a hand-written upsert of the same rows, with commits that reach the disk. Run it alone:
// `bin/pinned-node --dev bench/records.ts [SECONDS]`. It prints records a second, CPU, and times at 200 records a second.
import { Agent } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { requestText } from './client.ts'
import { percentile } from './measure.ts'
import { openRig, type Program, startOurs, startReference } from './rig.ts'

const SECONDS = Number(process.argv[2] ?? 5)
const T = '2026-01-31T09:00:00Z'

interface Side {
  name: string
  program: Program
  url: string
  headers: Record<string, string>
}

const say = (text: string) => process.stderr.write(`${text}\n`)
const rig = await openRig({ say, durable: true })
const agent = new Agent({ keepAlive: true })
let made = 0

const session = () => {
  const id = `ses_${++made}`
  const data = { id, created_at: T, profile_id: `pro_${made % 500}`, funnel_id: 'funnel', locale: 'de', country: 'DE' }
  return { record: 'session', data: { ...data, user_agent: 'Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0' } }
}
const call = ({ url, headers }: Side, count: number) =>
  requestText(agent, url, headers, { records: Array.from({ length: count }, session) })

/** Some clients send calls without pause; returns records a second, and CPU microseconds of the server a record. */
async function flood(side: Side, clients: number, count: number): Promise<object> {
  const cpu = async () => (await side.program.cpuSeconds()) + (await rig.postgresSeconds())
  const before = await cpu()
  const begunMs = performance.now()
  let calls = 0
  await Promise.all(
    Array.from({ length: clients }, async () => {
      for (; performance.now() - begunMs < SECONDS * 1000; calls++) await call(side, count)
    }),
  )
  const records = calls * count
  const seconds = (performance.now() - begunMs) / 1000
  return {
    'records/s': Math.round(records / seconds),
    'CPU µs/record': Math.round((((await cpu()) - before) * 1e6) / records),
  }
}

/** Single records at a steady rate; returns percentiles of the time that a call takes from its due time. */
async function steady(side: Side, perSecond: number): Promise<object> {
  const times: number[] = []
  const sent: Promise<unknown>[] = []
  const begunMs = performance.now()
  for (let n = 0; n < perSecond * SECONDS; n++) {
    const dueMs = begunMs + (n * 1000) / perSecond
    if (performance.now() < dueMs) await sleep(Math.max(0, dueMs - performance.now()))
    sent.push(call(side, 1).then(() => times.push(performance.now() - dueMs)))
  }
  await Promise.all(sent)
  const ms = (share: number) => Number(percentile(times, share)!.toFixed(1))
  return { 'p50 ms': ms(0.5), 'p99 ms': ms(0.99) }
}

try {
  const ours = await startOurs(rig)
  const plain = await startReference(rig, 'plain.ts')
  const sides: Side[] = [
    { name: 'ours', program: ours, url: `${ours.url}/public/v1/records`, headers: { 'Service-Secret': rig.key } },
    { name: 'plain', program: plain, url: `${plain.url}/records`, headers: {} },
  ]
  const people = Array.from({ length: 500 }, (_, n) => ({ record: 'profile', data: { id: `pro_${n}`, created_at: T } }))
  const funnel = { record: 'funnel', data: { id: 'funnel', title: 'Quiz', created_at: T } }
  await requestText(agent, sides[0]!.url, sides[0]!.headers, { records: [funnel, ...people] })
  for (const side of sides) {
    await flood(side, 32, 1)
    await flood(side, 4, 100)
  }
  for (const side of [...sides, ...sides.toReversed()]) {
    say(`${side.name}: singles ${JSON.stringify(await flood(side, 32, 1))}`)
    say(`${side.name}: hundreds ${JSON.stringify(await flood(side, 4, 100))}`)
    say(`${side.name}: 200/s ${JSON.stringify(await steady(side, 200))}`)
  }
} finally {
  agent.destroy()
  await rig.close()
}
