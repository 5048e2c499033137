// The statements that take movements in progress, lease them and give them back, for the table of one kind.

import { isMoving } from '../../../core/tenants/leaving.ts'
import type { NamedRow, Param, Statement } from '../../../lib/pg/types.ts'

/** Why a row is given back to the queue. */
export interface HandOver {
  /** Seconds until the next check; if omitted, they depend on the number of checks so far. */
  pauseS?: number
  /** Whether a look-up did not find it at the provider. */
  isNotFound?: boolean
  /** How the provider's outcome differs from the request, which an operator has to judge. */
  mismatch?: 'reference' | 'currency'
  /** Whether the provider said that it decides later. */
  isPending?: boolean
  /** Whether the provider was not called so far, for kinds that note it. */
  isUnsent?: boolean
  /** The provider's id of the movement, if it is known. */
  transactionId?: string | undefined
}

/** How the rows of one table are selected. */
export interface Table<Row> {
  name: string
  /** In the names of prepared statements, which appear in PostgreSQL's statistics. */
  noun: string
  alias: string
  id: keyof Row & string
  columns: string
  /** Reads a row of these columns. */
  read(row: NamedRow): Row
  /** Another table that the columns need, and the condition that joins it. */
  join?: { table: string; on: string }
  /** SQL that deletes the row of a condition, with what was counted for it. */
  giveBack?: (condition: string) => string
  /** What a hand-over sets in this table alone; its parameters are $8 and further. */
  handOver?: { sql: string; params(how: HandOver): Param[] }
}

/** The statements of `inProgress` for one table. */
export function statementsOf<Row>(table: Table<Row>) {
  const { name, noun, alias: a, id, columns, join, giveBack } = table
  const using = join ? `, ${join.table}` : ''
  const joined = join ? ` and ${join.on}` : ''
  const free = `(${a}.lease_until is null or ${a}.lease_until <= (select db_clock()))`
  const mine = `organization_id = $1 and ${id} = $2 and looks = $3 and status = 'processing'`
  const from = join ? `${name} ${a} join ${join.table} on ${join.on}` : `${name} ${a}`
  // The columns keep the names `looks` and `next_look_at`: an older process that still runs knows no others.
  const taken = `looks = ${a}.looks + 1, lease_until = t.until, next_look_at = t.until, has_news = false`
  return {
    from,
    handOver: {
      name: `hand over ${noun}`,
      text: `
        update ${name} set lease_until = null, handed_over_at = db_clock(), has_news = false,
          next_look_at = db_clock() + case when has_news then interval '0' else make_interval(secs => $4) end,
          not_found_at = case when $5 then coalesce(not_found_at, db_clock()) end,
          provider_mismatch = $6, pending_since = case when $7 then coalesce(pending_since, db_clock()) end
          ${table.handOver ? `, ${table.handOver.sql}` : ''}
        where ${mine}`,
    },
    takeDue: takeDueStatement(table, from, taken),
    // A lease that ends later than any lease lasts was begun before that, too. An adopted refund has no lease at first. The times
    // of rows that are moving here are still those of another shard's clock.
    makeDue: {
      name: `make ${noun}s due`,
      text: `
        update ${name} ${a} set lease_until = null, next_look_at = db_clock() where status = 'processing'
          and not ${isMoving(`${a}.organization_id`)} and (lease_until is null and coalesce(handed_over_at, created_at) > db_clock()
            or lease_until > db_clock() + make_interval(secs => $1))`,
    },
    take: {
      name: `take ${noun}`,
      text: `
        update ${name} ${a} set ${taken} from ${leaseEnd('$3')}${using}
        where ${a}.organization_id = $1 and ${a}.${id} = $2 and ${a}.status = 'processing' and ${free}${joined}
        returning ${columns}`,
    },
    renew: {
      name: `renew lease of ${noun}`,
      text: `
        update ${name} ${a} set lease_until = t.until, next_look_at = t.until,
          begun_at = case when $5 then db_clock() else ${a}.begun_at end
        from ${leaseEnd('$4')}${using}
        where ${a}.organization_id = $1 and ${a}.${id} = $2 and ${a}.looks = $3 and ${a}.status = 'processing'${joined}
        returning ${columns}`,
    },
    noteNews: {
      name: `note news of ${noun}`,
      text: `
        update ${name} ${a} set has_news = not ${free},
          next_look_at = case when ${free} then least(next_look_at, (select db_clock())) else next_look_at end
        where organization_id = $1 and ${id} = $2 and status = 'processing'`,
    },
    giveBack: { name: `give back ${noun}`, text: giveBack?.(mine) ?? `delete from ${name} where ${mine}` },
  } satisfies Record<string, Statement | string>
}

/**
 * Takes up to $1 due rows, each merchant account's first before any account's second. An account that is busy has the room
 * given for it; any other has $3. The recursion walks the organizations that have rows in progress, one index entry each.
 * Those that are being moved to another shard or to this one are left out: what both shards settle would be settled twice.
 */
function takeDueStatement<Row>(
  { name, noun, alias: a, id, columns, join }: Table<Row>,
  from: string,
  taken: string,
): Statement {
  const joined = join ? ` and ${join.on}` : ''
  const using = join ? `, ${join.table}` : ''
  // The merchant account of a refund is its order's.
  const accountOf = join ? 'o' : a
  const account = `${accountOf}.psp, ${accountOf}.psp_merchant_id`
  const busy = `unnest($4::text[], $5::text[], $6::text[], $7::int[]) as busy (organization_id, psp, psp_merchant_id, room)`
  return {
    name: `take due ${noun}s`,
    text: `
      with recursive now as materialized (select db_clock() as at), organizations as (
        (select organization_id from ${name} where status = 'processing' order by organization_id limit 1)
        union all
        select (select organization_id from ${name} t
          where t.status = 'processing' and t.organization_id > o.organization_id order by organization_id limit 1)
        from organizations o where o.organization_id is not null),
      staying as materialized (select organization_id from organizations g where not ${isMoving('g.organization_id')}),
      due as (
        select d.*, row_number() over (partition by d.organization_id, d.psp, d.psp_merchant_id order by d.next_look_at)
          as turn
        from now, staying g cross join lateral (
          select ${a}.organization_id, ${a}.${id}, ${a}.next_look_at, ${account}
          from ${from}
          where ${a}.organization_id = g.organization_id and ${a}.status = 'processing' and ${a}.next_look_at <= now.at
            and (${a}.lease_until is null or ${a}.lease_until <= now.at)
            and not exists (select from ${busy} where busy.room = 0
              and (busy.organization_id, busy.psp) = (${a}.organization_id, ${accountOf}.psp)
              and busy.psp_merchant_id is not distinct from ${accountOf}.psp_merchant_id)
          order by ${a}.next_look_at limit $1 for update of ${a} skip locked) d),
      chosen as (
        select due.* from due left join ${busy} on (busy.organization_id, busy.psp) = (due.organization_id, due.psp)
          and busy.psp_merchant_id is not distinct from due.psp_merchant_id
        where due.turn <= coalesce(busy.room, $3) order by due.turn, due.next_look_at limit $1),
      taken as (
        update ${name} ${a} set ${taken} from chosen, ${leaseEnd('$2')}${using}
        where ${a}.organization_id = chosen.organization_id and ${a}.${id} = chosen.${id}${joined}
        returning ${columns}, chosen.next_look_at as due_at)
      select * from taken order by due_at, ${id}`,
  }
}

const leaseEnd = (parameter: string) => `(select db_clock() + make_interval(secs => ${parameter}) as until) t`
