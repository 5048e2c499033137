// Whether an organization may be moved: by no other process, from the shard that has it, to one where its ids are free.
import { setTimeout as sleep } from 'node:timers/promises'
import { reserveIds } from '../../core/tenants/reserved-ids.ts'
import { Refusal } from '../../lib/errors.ts'
import { openSeal } from '../../lib/secrets.ts'
import type { Connection } from './connection.ts'
import { projectsOf } from './hold.ts'

// Class of the advisory locks of moves.
export const MOVE_LOCK = 7485

/** Refuses while another process moves it: on both shards, for the one that it leaves may have lost its connections. */
export async function takeMoveLock({ query }: Connection, organization: string, patienceMs = 0): Promise<void> {
  const giveUpAt = performance.now() + patienceMs
  for (;;) {
    const [row] = await query(`select pg_try_advisory_lock(${MOVE_LOCK}, hashtext($1)) as locked`, [organization])
    if (row!.locked === 't') return
    if (performance.now() >= giveUpAt) throw new Refusal(`"${organization}" is being moved by another process.`)
    await sleep(100)
  }
}

/** The projects of the organization. Refuses when it is not on the one shard. */
export async function readProjects(from: Connection, to: Connection, organization: string): Promise<string[]> {
  await requireOrganizationOn(from, to, organization)
  await sameSchema(from, to)
  for (const one of [from, to]) await hasMasterKey(one)
  return projectsOf(from, organization)
}

/** Refuses when the organization is not here, and says if it is there. */
export async function requireOrganizationOn(
  here: Connection,
  there: Connection | undefined,
  organization: string,
): Promise<void> {
  if (await has(here, organization)) return
  const moved = there && (await has(there, organization)) ? ` It is on ${there.shard.name}.` : ''
  throw new Refusal(`There is no organization "${organization}" on ${here.shard.name}.${moved}`)
}

/** Reserves its ids on the new shard. Refuses where another organization has one of them. */
export async function reserve(target: Connection, organization: string, projects: string[]): Promise<void> {
  await reserveIds(target.query, organization, projects)
  const { name } = target.shard
  if (await has(target, organization))
    throw new Refusal(`There is an organization "${organization}" on ${name} already.`)
  const [taken] = await target.query('select id from projects where id = any($1)', [projects])
  if (taken) throw new Refusal(`There is a project "${taken.id}" of another organization on ${name}.`)
}

async function sameSchema(from: Connection, to: Connection): Promise<void> {
  const newest = async ({ query }: Connection) =>
    (await query('select max(version) as version from schema_migrations'))[0]!.version
  if ((await newest(from)) !== (await newest(to)))
    throw new Refusal('The shards have different migrations: run the same version of Tundish on both.')
}

/** Refuses where a database has another master key than the settings: what one shard has sealed would not be opened on the other. */
async function hasMasterKey({ query, shard }: Connection): Promise<void> {
  const [row] = await query(`select value from instance where name = 'master key'`)
  if (!row || row.value === openSeal(shard.config.masterKey!).fingerprint) return
  throw new Refusal(
    `The database of ${shard.name} has another master key than the settings of the shards: replace the key on every shard, and set MASTER_KEY in all of their settings. Nothing was moved.`,
  )
}

export async function has({ query }: Connection, organization: string): Promise<boolean> {
  return (await query('select 1 from organizations where id = $1', [organization])).length > 0
}
