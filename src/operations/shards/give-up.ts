// Gives up a move: the old shard serves the organization again, and nothing of the move is left.

import { isReserved, releaseIds, reservedProjects } from '../../core/tenants/reserved-ids.ts'
import { Refusal, UsageError } from '../../lib/errors.ts'
import { isUnavailable } from '../../lib/pg/errors.ts'
import { inTransaction } from '../../lib/pg/in-transaction.ts'
import { requireOrganizationOn, takeMoveLock } from './admission.ts'
import { type Connection, connectTo, removeRows, skipForeignKeyChecks, withBoth } from './connection.ts'
import { dropSource, endCopy } from './copy-ahead.ts'
import { giveKeysBack, hasArrived, type Mark, readMarks, removeMark } from './mark.ts'
import type { Shard } from './shard.ts'
import { tenantTables } from './tenant-tables.ts'

export interface Broken {
  organization: string
  from: Shard
  to: Shard
}

/** Gives up a move that was broken off. Refuses where the new shard has the organization already, or does not respond. */
export async function giveUpBroken(broken: Broken): Promise<void> {
  await withBoth([broken.from, broken.to], async (source, target) => {
    await requireOrganizationOn(source, target, broken.organization)
    if (await takeBackAll(source, target, broken, 0)) return
    throw new Refusal(
      `"${broken.organization}" is on ${broken.to.name} already: run the move again to remove the old rows.`,
    )
  })
}

/** The same where the new shard is gone for good, so that what it has is not asked. Refuses where it responds. */
export async function giveUpWithout({ organization, from, to }: Broken): Promise<void> {
  if (await responds(to)) throw new Refusal(`${to.name} responds: leave out --target-is-gone.`)
  const source = await connectTo(from)
  try {
    await requireOrganizationOn(source, undefined, organization)
    await takeMoveLock(source, organization)
    await takeBack(source, organization, await markOf(source, { organization, to }))
    await dropSource(source, organization)
  } finally {
    await source.close()
  }
}

async function responds(shard: Shard): Promise<boolean> {
  try {
    await (await connectTo(shard)).close()
    return true
  } catch (error) {
    if (isUnavailable(error) || error instanceof UsageError) return false
    throw error
  }
}

/** Returns false, and does nothing, if the new shard has the organization already. */
export async function takeBackAll(
  source: Connection,
  target: Connection,
  { organization, to }: Pick<Broken, 'organization' | 'to'>,
  patienceMs: number,
): Promise<boolean> {
  for (const one of [source, target]) await takeMoveLock(one, organization, patienceMs)
  for (const one of [source, target]) await skipForeignKeyChecks(one)
  const mark = await markOf(source, { organization, to })
  if (mark && (await hasArrived(target.query, organization, mark))) return false
  await takeBack(source, organization, mark)
  await endCopy(source, target, organization)
  // Without the reservation, as after a restore there, the rows may be those of others.
  if (!(await isReserved(target.query, organization))) return true
  // Not the projects on the old shard, which another process may have moved away since.
  const tables = await tenantTables(source.query, organization, await reservedProjects(target.query, organization))
  await removeRows(
    target,
    tables.filter(({ ahead }) => ahead),
  )
  await releaseIds(target.query, organization)
  return true
}

/** The mark of the move to this shard, if it has one. */
export async function markOf(
  source: Connection,
  { organization, to }: Omit<Broken, 'from'>,
): Promise<Mark | undefined> {
  const mark = (await readMarks(source.query)).get(organization)
  if (mark && mark.to !== to.name)
    throw new Refusal(`"${organization}" is on its way to ${mark.to}: move it there, or give that move up.`)
  return mark
}

/** The old shard serves the organization again. */
export async function takeBack(source: Connection, organization: string, mark: Mark | undefined): Promise<void> {
  if (!mark) return
  await inTransaction(source.query, async () => {
    await giveKeysBack(source.query, organization, mark)
    await removeMark(source.query, organization)
  })
}
