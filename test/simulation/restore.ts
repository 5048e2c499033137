// A seed in which all processes stop, a backup is restored, and customers and operators continue from it.
import type { NamedAccount } from '../../src/operations/backup/accounts.ts'
import { reconcile } from '../../src/payments/billing/reconcile/reconcile.ts'
import { storeLost } from '../../src/payments/providers/lost-movements.ts'
import { follow } from './actors.ts'
import type { Backup } from './backup.ts'
import { followCustomer, inTwoSteps, payElsewhere } from './cards.ts'
import type { Clients } from './clients.ts'
import { TWO_STEP_ACCOUNTS, TWO_STEPS, WITHHOLDING_ACCOUNT } from './provider.ts'
import { onServer, type Stage } from './stage.ts'
import { instantOf } from './virtual-clock.ts'

/** One organization of the seed. */
interface Tenant {
  stage: Stage
  clients: Clients
}

export interface Plan {
  tenants: readonly Tenant[]
  /** Kills every process. */
  stopAll(): void
  /** Called directly after the database is restored. */
  restored(): Promise<void>
}

// The backup is taken during purchases; those after it are lost.
const BACKUP_WITHIN_MS = 20_000
const RESTORED_WITHIN_MS = 60_000
// Longer than the two-step provider remembers a key.
const DAYS_MS = 26 * 3600 * 1000
// An operator reconciles until every account was listed.
const MAX_RECONCILIATIONS = 40
// How often a follower reads each project afterwards.
const FOLLOWED = 4

/** Plans a backup and its restore, soon after or days later. */
export function planRestore(plan: Plan): void {
  const { scheduler, database } = plan.tenants[0]!.stage
  const { random } = scheduler
  scheduler.add(undefined, random.between(1, BACKUP_WITHIN_MS), async () => {
    const backup = await database.backUp(scheduler.nowMs)
    scheduler.tell('a backup is taken')
    scheduler.add(undefined, random.between(1, RESTORED_WITHIN_MS), () => restore(plan, backup))
  })
}

async function restore({ tenants, stopAll, restored }: Plan, backup: Backup): Promise<void> {
  const { scheduler, database, erasureLedger } = tenants[0]!.stage
  stopAll()
  if (scheduler.random.chance(0.5)) scheduler.nowMs += DAYS_MS
  const named = scheduler.random.chance(0.5) ? await loseAccounts(tenants[0]!.stage) : []
  await database.restore(scheduler.nowMs, backup, erasureLedger, named)
  scheduler.tell(`the backup of ${backup.atMs} ms is restored`)
  await restored()
  for (let n = scheduler.random.between(0, 2); n > 0; n--) await payElsewhere(tenants[0]!.stage)
  for (const { stage, clients } of tenants) {
    void clients.repeat()
    for (const project of stage.shop.projects) void follow(stage, project, FOLLOWED)
  }
  void followAccount(tenants[0]!.stage)
  void readAgain(tenants[0]!.stage)
  void reconcileUntilListed(tenants[0]!.stage, instantOf(backup.atMs - 3600 * 1000))
}

/** The replaced database is gone, so the operator names the accounts that were connected after the backup was taken. */
async function loseAccounts({ scheduler, database, shop }: Stage): Promise<NamedAccount[]> {
  const rows = await database.ask(scheduler.nowMs, FORGET_ACCOUNTS, [shop.organization])
  return rows.map(({ psp, id }) => ({ organizationId: shop.organization, psp: psp!, merchantId: id! }))
}

const FORGET_ACCOUNTS = {
  name: 'forget accounts',
  text: 'delete from merchant_accounts where organization_id = $1 returning psp, psp_merchant_id as id',
}

/** A follower of an account finds lost charges, before or after a reconciliation does. */
async function followAccount(stage: Stage): Promise<void> {
  const { scheduler, shop, ledger } = stage
  await scheduler.sleep(scheduler.random.between(1, 600_000))
  const merchantId = scheduler.random.pick([...TWO_STEP_ACCOUNTS])
  await onServer(stage, `follow account ${merchantId}`, async ({ context: { db } }) => {
    const charges = ledger
      .list(TWO_STEPS, merchantId, instantOf(0))
      .filter(({ type, hasFailed }) => type === 'charge' && !hasFailed)
    const rows = await db.query(KNOWN_ORDERS, [shop.organization, charges.map(({ reference }) => reference!)])
    const known = new Set(rows.map(({ order_id }) => order_id))
    const lost = charges.filter(({ reference }) => !known.has(reference!))
    await storeLost(db.query, { organizationId: shop.organization, psp: TWO_STEPS, merchantId }, lost)
  })
}

/** A follower reads the payments that the backup lacks, long after they were made. */
async function readAgain(stage: Stage): Promise<void> {
  const { scheduler, shop } = stage
  for (const customer of inTwoSteps(shop.customers)) {
    await scheduler.sleep(scheduler.random.between(1, 120_000))
    await followCustomer(stage, customer)
  }
}

const KNOWN_ORDERS = {
  name: 'known orders',
  text: 'select order_id from orders where organization_id = $1 and order_id = any($2::uuid[])',
}

/** Reconciles, often with only one of the accounts connected, until each was compared to the end. */
async function reconcileUntilListed(stage: Stage, since: string): Promise<void> {
  const { scheduler, database, shop, violated } = stage
  const others = shop.customers.some(({ merchant }) => merchant === WITHHOLDING_ACCOUNT) ? [WITHHOLDING_ACCOUNT] : []
  // An account counts as listed before its disputes were compared.
  const toCompare = new Set<string>([...TWO_STEP_ACCOUNTS, ...others])
  for (let times = 0; times < MAX_RECONCILIATIONS; times++) {
    await scheduler.sleep(scheduler.random.between(1, 600_000))
    const away = scheduler.random.pick([undefined, ...TWO_STEP_ACCOUNTS, ...others])
    await onServer(stage, `reconcile without ${away}`, async ({ context, process }) => {
      const all = async () => (await context.providers.all()).filter(({ provider }) => provider.merchantId !== away)
      const clock = scheduler.clockOf(process, false)
      await reconcile({ ...context, clock, providers: { ...context.providers, all } }, since)
      for (const account of toCompare) if (account !== away) toCompare.delete(account)
    })
    const left = await scheduler.asStep(() => database.ask(scheduler.nowMs, LEFT))
    if (left.length === 0 && toCompare.size === 0) return
  }
  violated('an account is never listed')
}

const LEFT = { name: 'unlisted accounts', text: 'select 1 from unlisted_accounts' }
