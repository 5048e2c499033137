// The cases "charges" and "charges-slow": charges of distinct customers, compared with pgbench with the statements of one charge.
import { chargeWithoutPause, type Entry, type Target } from './charges-clients.ts'
import { CARDS, type ChargesRig, CUSTOMERS, openChargesRig, startPlainCharges } from './charges-rig.ts'
import { AMOUNT, recordCharge } from './charges-statements.ts'
import { alternate, percentiles, type Result, type Run } from './measure.ts'
import type { Options } from './options.ts'
import { repeatable } from './repeat.ts'
import { withCpu } from './requests.ts'
import { measureSteadily, type Rate } from './steady-load.ts'
import { limitOf, limitSteadily, type Tools } from './tools.ts'

type Card = keyof typeof CARDS

// Enough to keep a provider that takes 50 ms busy.
const CONNECTIONS = { 'at once': 32, 'after 50 ms': 128 }
const LIMIT_CLIENTS = 32
// So few that charges seldom overlap.
const LIGHT_LOAD = 100
// Some ten thousand charges. Until then V8 compiles during the measurement, on a core that the other programs need (after a third
// of this time it still used twice as much CPU as at the end), and PostgreSQL plans its statements.
const WARM_UP_SECONDS = 30

/**
 * Charges as fast as responses arrive, in turn with the references; then at half that rate, at 100 a second, and at half of the
 * limit's rate, together with the limit. Finally compares the clients' results with the orders and the simulator's ledger.
 */
export async function measureCharges(
  name: string,
  card: Card,
  tools: Tools,
  options: Options,
  say: (text: string) => void,
): Promise<Result> {
  const rig = await openChargesRig(options, say)
  try {
    const { url } = rig.ours
    const target = { url, organizations: rig.organizations, amount: AMOUNT, customers: CUSTOMERS }
    const log: Entry[] = []
    const { pgbench } = tools
    const script = repeatable(await recordCharge(rig), CUSTOMERS, rig.organizations.length)
    const charging =
      (at: Target, log: Entry[]): Run =>
      async (seconds) => {
        const begun = performance.now()
        const entries = await chargeWithoutPause(at, CARDS[card], CONNECTIONS[card], seconds)
        log.push(...entries)
        return {
          perSecond: (entries.length * 1000) / (performance.now() - begun),
          ...percentiles(entries.map(({ ms }) => ms)),
        }
      }
    const ours = charging(target, log)
    const plain = await startPlainCharges(rig)
    const limit =
      (program: string): Run =>
      (seconds) =>
        limitOf(program, rig.databaseUrl, script, seconds, LIMIT_CLIENTS)
    await ours(Math.min(options.seconds * 15, WARM_UP_SECONDS))
    const result = await alternate(
      name,
      'charges',
      {
        ours: withCpu(rig, rig.ours, ours),
        ...(pgbench && { limit: withCpu(rig, undefined, limit(pgbench)) }),
        plain: withCpu(rig, plain, charging({ ...target, url: plain.url }, [])),
      },
      options,
    )
    const { ours: fastest, limit: fastestLimit } = result.contenders
    const steadily = async (rate: Rate) => {
      const { steady, entries } = await measureSteadily(rig, target, CARDS[card], { ...rate, plain }, options)
      log.push(...entries)
      return steady
    }
    const halfLoad = await steadily({ perSecond: fastest!.perSecond / 2 })
    const figures: Record<string, unknown> = { halfLoad, lightLoad: await steadily({ perSecond: LIGHT_LOAD }) }
    if (pgbench && fastestLimit) {
      const load = { clients: LIMIT_CLIENTS, perSecond: fastestLimit.perSecond / 2 }
      const limitAtRate = (seconds: number) => limitSteadily(pgbench, rig.databaseUrl, script, seconds, load)
      figures.halfOfLimit = await steadily({ perSecond: load.perSecond, limit: limitAtRate })
    }
    return { ...result, figures: { ...figures, joined: await compareRecords(rig, log) } }
  } finally {
    await rig.close()
  }
}

/** Throws unless the clients' results, the orders and the provider's ledger have the same successful charges, each once. */
async function compareRecords({ app, simulatorUrl }: ChargesRig, log: Entry[]) {
  const movements = (await (await fetch(`${simulatorUrl}/ledger`)).json()) as { reference: string }[]
  // Orders of charges have ids of version 7; those made by pgbench or as history have version 4.
  const orders = await app.db.query<{ order_id: string }>(
    `select order_id from orders where status = 'succeeded' and substr(order_id::text, 15, 1) = '7'`,
  )
  const confirmed = new Set(log.filter(({ status }) => status === 'succeeded').map(({ orderId }) => orderId))
  const settled = new Set(orders.map(({ order_id }) => order_id))
  const moved = new Set(movements.map(({ reference }) => reference))
  // One success is not of the clients: the recorded charge.
  const wrong =
    settled.symmetricDifference(moved).size +
    confirmed.difference(settled).size +
    settled.difference(confirmed).size -
    1
  const double = movements.length - moved.size
  if (wrong + double !== 0) throw new Error(`${wrong} charges do not match, ${double} are in the ledger twice.`)
  return { charges: confirmed.size, orders: settled.size, ledger: movements.length, mismatches: 0 }
}
