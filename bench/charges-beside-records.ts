// Charges at a steady rate: alone, while 200 single records a second are written to the same server, and while the plain server writes
// as many, which shows what the machine alone adds. `bin/pinned-node --dev bench/charges-beside-records.ts [SECONDS] [ROUNDS]`.
import { Agent } from 'node:http'
import { loadavg } from 'node:os'
import { chargeSteadily } from './charges-clients.ts'
import { CARDS, CUSTOMERS, openChargesRig } from './charges-rig.ts'
import { AMOUNT } from './charges-statements.ts'
import { median, percentiles } from './measure.ts'
import { startReference } from './rig.ts'
import { type Side, sidesOf, writePeople, writeSteadily } from './visits.ts'

const [SECONDS, ROUNDS] = [Number(process.argv[2] ?? 15), Number(process.argv[3] ?? 3)]
const CHARGES_A_SECOND = 50
const RECORDS_A_SECOND = 200

const say = (text: string) => process.stderr.write(`${text}\n`)
const rig = await openChargesRig({ workers: 1, organizations: 1 }, say)
try {
  const sides = sidesOf(rig.ours, await startReference(rig, 'plain.ts'), rig.key)
  const agent = new Agent()
  await writePeople(agent, sides[0])
  const target = { url: rig.ours.url, organizations: rig.organizations, amount: AMOUNT, customers: CUSTOMERS }
  const charge = async (): Promise<number> => {
    const entries = await chargeSteadily(target, CARDS['at once'], CHARGES_A_SECOND, SECONDS)
    if (entries.some(({ status }) => status !== 'succeeded')) throw new Error('Not every charge succeeded.')
    return percentiles(entries.map(({ ms }) => ms)).p99Ms
  }
  const beside = async (side: Side): Promise<number> => {
    // Of this round only: a server closes connections that are idle between two.
    const agent = new Agent({ keepAlive: true })
    let isOver = false
    const writing = writeSteadily(agent, side, RECORDS_A_SECOND, () => isOver)
    const p99Ms = await charge()
    isOver = true
    await writing
    agent.destroy()
    return p99Ms
  }
  await beside(sides[0])
  await beside(sides[1])
  const rounds: { alone: number; ours: number; plain: number }[] = []
  for (let round = 0; round < ROUNDS; round += 1) {
    rounds.push({ alone: await charge(), ours: await beside(sides[0]), plain: await beside(sides[1]) })
    say(`99th percentile of charges in ms, load ${loadavg()[0]!.toFixed(0)}: ${JSON.stringify(rounds.at(-1))}`)
  }
  const more = (side: 'ours' | 'plain') => median(rounds.map((one) => one[side] - one.alone))!.toFixed(1)
  say(
    `Added by ${RECORDS_A_SECOND} records a second: ${more('ours')} ms; if the plain server writes them: ${more('plain')} ms.`,
  )
} finally {
  await rig.close()
}
