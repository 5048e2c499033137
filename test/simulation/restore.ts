// A seed in which all processes stop, a backup is restored, and customers and operators continue from it.
import { reconcile } from '../../src/payments/billing/unknown/reconcile.ts'
import { follow, onServer, type Stage } from './actors.ts'
import type { Backup } from './backup.ts'
import type { Clients } from './clients.ts'
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
// An operator reconciles until the mark of the restore is cleared, when every key was repeated.
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
  await database.restore(scheduler.nowMs, backup, erasureLedger)
  scheduler.tell(`the backup of ${backup.atMs} ms is restored`)
  await restored()
  for (const { stage, clients } of tenants) {
    void clients.repeat()
    for (const project of stage.shop.projects) void follow(stage, project, FOLLOWED)
  }
  void reconcileUntilClear(tenants[0]!.stage, instantOf(backup.atMs - 3600 * 1000))
}

async function reconcileUntilClear(stage: Stage, since: string): Promise<void> {
  const { scheduler, database, violated } = stage
  for (let times = 0; times < MAX_RECONCILIATIONS; times++) {
    await scheduler.sleep(scheduler.random.between(1, 600_000))
    await onServer(stage, 'reconcile', ({ context }) => reconcile(context, since))
    const marked = await scheduler.asStep(() => database.ask(scheduler.nowMs, MARKED))
    if (marked.length === 0) return
  }
  violated('the mark of the restore is never cleared')
}

const MARKED = { name: 'marked organizations', text: 'select 1 from organizations where restored_from is not null' }
