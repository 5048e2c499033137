// Removes one of two copies of an organization, as after a restore of the shard that it was moved away from.
import { Refusal, UsageError } from '../../lib/errors.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'
import { inTransaction } from '../../lib/pg/in-transaction.ts'
import { has, takeMoveLock } from './admission.ts'
import { raiseClocks, readClocks } from './clocks.ts'
import { type Connection, skipForeignKeyChecks, withBoth } from './connection.ts'
import { type Difference, differenceOf } from './difference.ts'
import { hold, projectsOf, untilChargesEnd } from './hold.ts'
import { hasArrived, readMarks } from './mark.ts'
import { removeOrganization } from './remove-organization.ts'
import type { Shard } from './shard.ts'
import { tenantTables } from './tenant-tables.ts'
import { askShard, NoResponse } from './time-limit.ts'

export interface Removal {
  organization: string
  from: Shard
  /** All other shards. */
  others: readonly Shard[]
  /** Otherwise nothing is removed. */
  isSure: boolean
  /** Also if the other copy lacks charges of this one. */
  losesCharges: boolean
}

export interface Removed {
  keptOn: Shard
  difference: Difference
  isRemoved: boolean
}

/** Refuses where no other shard that responds has the organization, and where something would be lost that nothing brings back. */
export async function removeCopy({ organization, from, others, isSure, losesCharges }: Removal): Promise<Removed> {
  if (!(await askShard(from, (one) => has(one, organization))))
    throw new Refusal(`There is no organization "${organization}" on ${from.name}.`)
  const keptOn = await findOther(organization, from, others)
  return withBoth([from, keptOn], async (copy, other) => {
    for (const one of [copy, other]) await takeMoveLock(one, organization)
    await refuseMoving(copy, other, organization)
    if (!isSure) return { keptOn, difference: await compare(copy, other, organization), isRemoved: false }
    await skipForeignKeyChecks(copy)
    const difference = await remove(copy, other, organization, losesCharges)
    return { keptOn, difference, isRemoved: true }
  })
}

/** The first of the other shards that has it. */
async function findOther(organization: string, from: Shard, others: readonly Shard[]): Promise<Shard> {
  const silent: string[] = []
  for (const shard of others) {
    try {
      if (await askShard(shard, (one) => has(one, organization))) return shard
    } catch (error) {
      if (!(error instanceof NoResponse || error instanceof UsageError || isUnavailable(error))) throw error
      silent.push(shard.name)
    }
  }
  const rest = silent.length > 0 ? ` ${silent.join(', ')} cannot be reached.` : ''
  throw new Refusal(
    `No other shard that responds has "${organization}": what is on ${from.name} is its only copy.${rest}`,
  )
}

/** The old rows of a move that is finished but for them are a copy as any other. */
async function refuseMoving(copy: Connection, other: Connection, organization: string): Promise<void> {
  for (const { query, shard } of [copy, other]) {
    const mark = (await readMarks(query)).get(organization)
    if (!mark || (query === copy.query && (await hasArrived(other.query, organization, mark)))) continue
    throw new Refusal(
      `"${organization}" is on its way from ${shard.name} to ${mark.to}: run that move again, or with --give-up.`,
    )
  }
}

const compare = (copy: Connection, other: Connection, organization: string): Promise<Difference> =>
  inTransaction(copy.query, () => inTransaction(other.query, () => differenceOf(copy, other, organization)))

async function remove(
  copy: Connection,
  other: Connection,
  organization: string,
  losesCharges: boolean,
): Promise<Difference> {
  await untilChargesEnd(copy, organization)
  return inTransaction(copy.query, async () => {
    const projects = await projectsOf(copy, organization)
    const tables = await tenantTables(copy.query, organization, projects)
    await hold(copy, tables, organization, projects)
    const difference = await inTransaction(other.query, () => differenceOf(copy, other, organization))
    refuseLosses(difference, { organization, from: copy.shard, keptOn: other.shard, losesCharges })
    await inTransaction(other.query, () => raisePromises(copy, other, organization))
    await removeOrganization(copy, tables, organization)
    return difference
  })
}

interface Removing {
  organization: string
  from: Shard
  keptOn: Shard
  losesCharges: boolean
}

function refuseLosses({ charges, refunds, erasures }: Difference, removing: Removing): void {
  const { organization, from, keptOn, losesCharges } = removing
  if (erasures > 0)
    throw new Refusal(
      `${count(erasures, 'person was', 'people were')} erased in the copy of "${organization}" on ${from.name} only, and would be back: run "tundish erasures reapply" on ${keptOn.name} with the ledger of ${from.name} first.`,
    )
  if (charges + refunds > 0 && !losesCharges)
    throw new Refusal(
      `${keptOn.name} lacks ${count(charges, 'charge', 'charges')} and ${count(refunds, 'refund', 'refunds')} of "${organization}" that ${from.name} has: remove the copy on ${keptOn.name} instead, or add --lose-charges.`,
    )
}

export const count = (n: number, one: string, many: string) => `${n.toLocaleString('en')} ${n === 1 ? one : many}`

/**
 * Readers may have been served by either copy. Nothing is stamped before what the removed one has stamped; and if the other
 * one was restored, all that they read up to now may be void. Fails if the other copy is gone.
 */
async function raisePromises(copy: Connection, other: Connection, organization: string): Promise<void> {
  const [row] = await copy.query(
    `select greatest(db_clock(), last_trx_created_at,
       (select last_entry_at from credit_clocks where organization_id = $1), (select max(floor) from project_clocks
       where project_id in (select id from projects where organization_id = $1))) as at
     from organization_clocks where organization_id = $1`,
    [organization],
  )
  const { ahead } = await readClocks(copy, other)
  const projects = await projectsOf(other, organization)
  await raiseClocks(other, organization, projects, { at: row!.at!, ahead })
  await other.query(
    `update project_clocks set void_until = greatest(void_until, floor)
     where project_id = any($1) and void_until is not null`,
    [projects],
  )
  if (!(await has(other, organization)))
    throw new Refusal(`"${organization}" is no longer on ${other.shard.name}: nothing was removed.`)
}
