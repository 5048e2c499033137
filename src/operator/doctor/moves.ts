// The doctor's check of moves between shards that were broken off: requests that are refused, and log that is held back.

import { readReserved } from '../../core/tenants/reserved-ids.ts'
import type { Db } from '../../lib/pg/db.ts'
import { MOVE_LOCK } from '../../operations/shards/admission.ts'
import { SLOTS } from '../../operations/shards/copy-ahead.ts'
import { readMarks } from '../../operations/shards/mark.ts'
import { type Finding, failed, ok, warning } from './finding.ts'

const MIB = 1024 * 1024

interface Slot {
  name: string
  /** The part of the log that the server must keep; null if the slot has lost it. */
  bytes: string | null
}

/** Returns no finding on a shard that no organization is leaving or moving to. */
export async function checkMoves(db: Db): Promise<Finding[]> {
  const [marks, slots, reserved] = await Promise.all([readMarks(db.query), readSlots(db), readReserved(db.query)])
  const leaving = new Set([...marks.keys(), ...slots.keys()])
  const moving = await readMoving(db, [...leaving, ...reserved.organizations])
  const arriving = reserved.organizations.map((organization) => {
    if (moving.has(organization)) return ok('shards', `"${organization}" is being moved to this shard.`)
    const message = `A move of "${organization}" to this shard was broken off. Its ids and those of its projects are reserved here.`
    return warning('shards', message, 'Run the same "tundish shards move" again, or with --give-up to give it up.')
  })
  const departing = [...leaving].map((organization) => {
    if (moving.has(organization)) return ok('shards', `"${organization}" is being moved to another shard.`)
    const slot = slots.get(organization)
    const mark = marks.get(organization)
    return mark ? refused(organization, mark.to, slot) : copied(organization, slot!)
  })
  return [...departing, ...arriving]
}

function refused(organization: string, to: string, slot: Slot | undefined): Finding {
  const held = slot ? ` ${heldBack(slot)}` : ''
  const message = `The move of "${organization}" to ${to} was broken off. Its requests are refused.${held}`
  const command = `tundish shards move ${organization} --in FOLDER --from SHARD --to ${to}`
  return failed('shards', message, `Finish it: ${command}. To give it up: the same with --give-up.`)
}

function copied(organization: string, slot: Slot): Finding {
  const drop = `If the other shard is gone, run here: select pg_drop_replication_slot('${slot.name}');`
  if (organization === slot.name) {
    const message = `A move of an organization that is no longer here has left something behind. ${heldBack(slot)}`
    return warning('shards', message, `Run on the other shard: drop subscription ${slot.name}; ${drop}`)
  }
  const message = `A move of "${organization}" was broken off while it was copied. ${heldBack(slot)}`
  return warning(
    'shards',
    message,
    `Run the same "tundish shards move" again: it starts over, or with --give-up removes the remains. ${drop}`,
  )
}

const heldBack = ({ name, bytes }: Slot) =>
  bytes === null
    ? `Its replication slot ${name} has lost its part of the log.`
    : `Its replication slot ${name} holds back ${(Number(bytes) / MIB).toFixed(1)} MiB of the log, and more with each write.`

/** The slots of moves, by the organization that leaves; by their own name where it is no longer here. */
async function readSlots(db: Db): Promise<Map<string, Slot>> {
  const rows = await db.query(
    `select coalesce(o.id, s.slot_name) as organization, s.slot_name as name,
       case when not pg_is_in_recovery() then pg_wal_lsn_diff(pg_current_wal_lsn(), s.restart_lsn) end as bytes
     from pg_replication_slots s
     left join organizations o on s.slot_name = $1 || left(encode(sha256(convert_to(o.id, 'UTF8')), 'hex'), 16)
     where s.database = current_database() and starts_with(s.slot_name, $1)`,
    [SLOTS],
  )
  return new Map(rows.map(({ organization, name, bytes }) => [organization!, { name: name!, bytes: bytes! }]))
}

/** Those of the organizations whose move is under way: its process holds their locks, on both shards. */
async function readMoving(db: Db, organizations: string[]): Promise<Set<string>> {
  const rows = await db.query(
    `select o.id from unnest($1::text[]) o (id)
     join pg_locks l on l.objid = (hashtext(o.id)::bigint & 4294967295)::oid
     where l.locktype = 'advisory' and l.classid = ${MOVE_LOCK} and l.objsubid = 2 and l.granted
       and l.database = (select oid from pg_database where datname = current_database())`,
    [organizations],
  )
  return new Set(rows.map(({ id }) => id!))
}
