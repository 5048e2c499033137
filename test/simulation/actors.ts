// Actors besides customers: imports, erasures, operators who reconcile and resolve, readers of the sync and the report.
import { Readable } from 'node:stream'
import { erase } from '../../src/core/erasure/erasure.ts'
import { readHorizon } from '../../src/core/lists/horizon.ts'
import { importRecords } from '../../src/data/ingest/load.ts'
import { reconcile } from '../../src/payments/billing/reconcile/reconcile.ts'
import { findEither, resolve } from '../../src/payments/billing/reconcile/resolve.ts'
import { payElsewhere } from './cards.ts'
import type { Server } from './clients.ts'
import { onServer, type Stage } from './stage.ts'
import { instantOf } from './virtual-clock.ts'

const ACTOR = { kind: 'tundish', id: 'simulation', source: 'simulation' } as const

/** Reads the horizon of a project again and again, like a client that follows changes. */
export async function follow(stage: Stage, project: string, times: number): Promise<void> {
  const { scheduler } = stage
  for (let n = 0; n < times; n++) {
    await scheduler.sleep(scheduler.random.between(1, 1_500))
    await onServer(stage, `sync ${project}`, (server) => sync(stage, server, project))
  }
}

/** Runs one random action on the shop, on one of the processes. */
export async function happen(stage: Stage): Promise<void> {
  const { random } = stage.scheduler
  const project = random.pick(stage.shop.projects)
  const chance = random.next()
  if (chance < 0.3) await onServer(stage, `sync ${project}`, (server) => sync(stage, server, project))
  else if (chance < 0.6) await onServer(stage, `import ${project}`, (server) => bring(stage, server, project))
  else if (chance < 0.75)
    await onServer(stage, 'reconcile', ({ context, process }) =>
      reconcile({ ...context, clock: stage.scheduler.clockOf(process, false) }, instantOf(0)),
    )
  else if (chance < 0.85) await onServer(stage, 'resolve', (server) => endByHand(stage, server))
  else if (chance < 0.92) await stage.scheduler.asStep(() => payElsewhere(stage))
  else await onServer(stage, `erase in ${project}`, (server) => eraseOne(stage, server, project))
}

/** A reader requests the horizon of a project, and relies on it from now on. */
async function sync({ invariants, scheduler, violated }: Stage, { context }: Server, project: string) {
  const before = invariants.promised(project)
  const horizon = await readHorizon({ ...context.db, read: context.db.readLong }, project)
  const broken = await scheduler.asStep(() => invariants.promise(scheduler.nowMs, project, horizon, before))
  if (broken) violated(broken)
}

/** An import of changes or of history: profiles, subscriptions, transactions, customers, payments of our orders. */
async function bring({ scheduler, shop, ledger }: Stage, { context }: Server, project: string) {
  const { random } = scheduler
  const at = instantOf(random.between(0, Math.max(0, scheduler.nowMs - 1)))
  const profiles = shop.customers.filter((one) => one.project === project && one.profile !== null)
  const lines: object[] = []
  for (const { profile } of profiles)
    if (random.chance(0.6))
      lines.push(line('profile', { id: profile, created_at: instantOf(0), email: `${profile}@example.com` }))
  const linked = random.pick(profiles)
  if (random.chance(0.5))
    lines.push(
      line('transaction', {
        id: `imported-${random.between(1, 5)}`,
        created_at: at,
        currency: 'EUR',
        price: 100,
        profile_id: linked.profile,
      }),
    )
  if (random.chance(0.4))
    lines.push(
      line('customer', {
        external_id: linked.externalId,
        email: 'x@example.com',
        profile_id: random.pick(profiles).profile,
      }),
    )
  const charge = ledger.movements.find(({ type }) => type === 'charge')
  if (random.chance(0.4) && charge) lines.push(payment(linked.externalId, charge.reference, at, random.between(1, 4)))
  if (lines.length === 0) return
  const text = lines.map((one) => `${JSON.stringify(one)}\n`).join('')
  const source = { name: 'feed', stream: () => Readable.from([Buffer.from(text)]) }
  const options = { projectId: project, live: random.chance(0.7), emitEvents: random.chance(0.5), skipBadLines: true }
  await importRecords({ db: context.db, log: context.log as never }, options, [source])
}

const line = (record: string, data: object) => ({ record, data })

/** An imported payment with the id of one of our orders, and with the provider's reference of another charge. */
const payment = (externalId: string, orderId: string, at: string, n: number) =>
  line('payment', {
    external_id: externalId,
    order_id: orderId,
    trx_id: `00000000-0000-4000-8000-00000000000${n}`,
    amount: 3,
    currency_code: 'EUR',
    status: 'succeeded',
    psp: 'simulator',
    psp_merchant_id: 'm1',
    psp_transaction_id: 'charge-of-another',
    psp_transaction_type: 'sale',
    trx_created_at: at,
  })

async function eraseOne({ scheduler, shop, audit, erasureLedger }: Stage, { context }: Server, project: string) {
  const profiles = shop.customers.filter((one) => one.project === project && one.profile !== null)
  const { profile } = scheduler.random.pick(profiles)
  await erase({ db: context.db, audit, erasureLedger }, ACTOR, project, [profile!])
}

/** An operator who knows the outcome from the provider's dashboard resolves what is in progress. */
async function endByHand({ scheduler, database, shop, ledger }: Stage, { context }: Server) {
  const [row] = await scheduler.asStep(() => database.ask(scheduler.nowMs, STUCK, [shop.organization]))
  if (!row) return
  const truth = ledger.find('charge', row.provider_key!)
  const as = truth?.state === 'refused' ? 'cancelled' : truth?.state === 'settled' ? truth.verdict.outcome : undefined
  if (as === undefined || (truth?.state === 'settled' && truth.asked !== truth.verdict.amountMinor)) return
  await resolve(context, await findEither(context.db, row.order_id!), as, 'seen at the provider')
}

const STUCK = {
  name: 'an order in progress',
  text: `select order_id, provider_key from orders where organization_id = $1 and status = 'processing' order by order_id limit 1`,
}
