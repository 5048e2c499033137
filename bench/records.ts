// The writing of records compared with a hand-written upsert of the same rows, with commits that reach the disk. Run it alone:
// `bin/pinned-node --dev bench/records.ts [SECONDS]`. It prints records a second, CPU, and times at 200 records a second.
import { Agent } from 'node:http'
import { percentile } from './measure.ts'
import { openRig, startOurs, startReference } from './rig.ts'
import { type Side, sidesOf, writePeople, writeSessions, writeSteadily } from './visits.ts'

const SECONDS = Number(process.argv[2] ?? 5)

const say = (text: string) => process.stderr.write(`${text}\n`)
const rig = await openRig({ say, durable: true })
const agent = new Agent({ keepAlive: true })

/** Some clients send calls without pause; returns records a second, and CPU microseconds of the server a record. */
async function flood(side: Side, clients: number, count: number): Promise<object> {
  const cpu = async () => (await side.program.cpuSeconds()) + (await rig.postgresSeconds())
  const before = await cpu()
  const begunMs = performance.now()
  let calls = 0
  await Promise.all(
    Array.from({ length: clients }, async () => {
      for (; performance.now() - begunMs < SECONDS * 1000; calls++) await writeSessions(agent, side, count)
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
  const untilMs = performance.now() + SECONDS * 1000
  const times = await writeSteadily(agent, side, perSecond, () => performance.now() > untilMs)
  const ms = (share: number) => Number(percentile(times, share)!.toFixed(1))
  return { 'p50 ms': ms(0.5), 'p99 ms': ms(0.99) }
}

try {
  const ours = await startOurs(rig)
  const plain = await startReference(rig, 'plain.ts')
  const sides = sidesOf(ours, plain, rig.key)
  await writePeople(agent, sides[0])
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
