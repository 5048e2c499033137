// Charges at a steady rate, alone and while pages of the dashboard are loaded, round by round.
import { loadavg } from 'node:os'
import { rebuildFigures } from '../src/data/figures/follow.ts'
import { chargeSteadily } from './charges-clients.ts'
import { CARDS, CUSTOMERS, openChargesRig } from './charges-rig.ts'
import { AMOUNT } from './charges-statements.ts'
import { signIn, visit } from './dashboard-visitor.ts'
import { PROJECT } from './generate.ts'
import { median, percentiles } from './measure.ts'
import type { Options } from './options.ts'

const CHARGES_A_SECOND = 50
/** The pause between two page loads. */
const PAUSE_MS = 500
const PAGES = ['/?period=90d', '/revenue?period=90d', '/charges', '/subscriptions', '/refunds', '/funnels']
const WARM_UP_SECONDS = 10
const MIN_SECONDS = 15

export async function chargesBesidePages({ seconds, rounds, quick, workers }: Options, say: (text: string) => void) {
  const adminPort = 20_000 + (process.pid % 20_000)
  const rig = await openChargesRig({ workers, organizations: 1 }, say, { ADMIN_PORT: String(adminPort) })
  try {
    await rebuildFigures(rig.app.db, PROJECT)
    const visitor = await signIn(rig, `http://127.0.0.1:${adminPort}`)
    const target = {
      url: rig.ours.url,
      organizations: rig.organizations,
      amount: AMOUNT,
      customers: CUSTOMERS,
    }
    const charge = async (durationS: number) => {
      const entries = await chargeSteadily(target, CARDS['at once'], CHARGES_A_SECOND, durationS)
      if (entries.some(({ status }) => status !== 'succeeded')) throw new Error('Not every charge succeeded.')
      return percentiles(entries.map(({ ms }) => ms))
    }
    for (const path of PAGES) await visit(visitor, path)
    await charge(quick ? 1 : WARM_UP_SECONDS)
    const durationS = quick ? 2 : Math.max(MIN_SECONDS, seconds)
    const each: { alone: Awaited<ReturnType<typeof charge>>; beside: Awaited<ReturnType<typeof charge>> }[] = []
    for (let round = 0; round < rounds; round += 1) {
      say(`Charges alone and beside pages, ${round + 1} of ${rounds}…`)
      const alone = await charge(durationS)
      const loading = repeat(() => visit(visitor, PAGES[round % PAGES.length]!))
      const beside = await charge(durationS)
      await loading.stop()
      each.push({ alone, beside })
    }
    const p99 = (of: 'alone' | 'beside') => median(each.map((one) => one[of].p99Ms))!
    const more = median(each.map(({ alone, beside }) => beside.p99Ms - alone.p99Ms))!
    return {
      perSecond: CHARGES_A_SECOND,
      loadOfMachine: loadavg(),
      aloneP99Ms: p99('alone'),
      besideP99Ms: p99('beside'),
      moreP99Ms: more,
      rounds: each,
    }
  } finally {
    await rig.close()
  }
}

/** Repeats `once`, with a pause after each, until it is stopped. */
function repeat(once: () => Promise<unknown>) {
  let stopped = false
  const running = (async () => {
    while (!stopped) {
      await once()
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS))
    }
  })()
  return {
    stop: () => {
      stopped = true
      return running
    },
  }
}
