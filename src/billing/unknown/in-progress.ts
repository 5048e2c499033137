// Charges and refunds in progress: the lease of the process that has one, and when it is looked at next. Once for both tables.
import type { Db } from '../../lib/pg/db.ts'
import type { NamedRow, Query, Statement } from '../../lib/pg/types.ts'
import { pauseSeconds } from './lease.ts'
import type { Room } from './turns.ts'

/** The columns of an order or refund that this file needs. */
export type InProgress = NamedRow & {
  organization_id: string
  order_id: string
  status: string
  /** How often it was taken from its queue; a process that holds an older number has lost it to another. */
  looks: string
}

/** How the rows of one table are selected. */
export interface Table {
  name: 'orders' | 'refunds'
  /** In the names of prepared statements, which appear in PostgreSQL's statistics. */
  noun: 'order' | 'refund'
  alias: 'o' | 'r'
  id: 'order_id' | 'refund_id'
  columns: string
  /** Another table that the columns need, and the condition that joins it. */
  join?: { table: string; on: string }
}

/** Why a row is given back to the queue. */
export interface HandOver {
  /** Seconds to the next look; left out: by the number of looks so far. */
  pauseS?: number
  /** The provider was asked and did not know it. */
  isNotFound?: boolean
  /** How the provider's answer differs from what was asked, which an operator has to judge. */
  mismatch?: 'reference' | 'currency'
  /** A refund whose process did not call the provider. */
  isUnsent?: boolean
}

/** The verbs on one table's rows in progress. A process holds a row from `takeDue`, `take` or its claim on. */
export function inProgress<Row extends InProgress>(table: Table) {
  const statements = statementsOf(table)
  return {
    /** Gives a row back, to be looked at again; does nothing when another process has it by now. */
    async handOver(db: Db, row: Row, { pauseS, isNotFound, mismatch, isUnsent }: HandOver = {}): Promise<void> {
      const { organization_id, looks } = row
      const pause = pauseS ?? pauseSeconds(Number(looks))
      const how = [isNotFound ?? false, mismatch ?? null, ...(table.name === 'refunds' ? [isUnsent ?? false] : [])]
      await db.query(statements.handOver, [organization_id, row[table.id]!, looks, pause, ...how])
    },

    /** Takes rows that are due, for as long as the lease: each account's first before any account's second. */
    takeDue: (db: Db, { most, perAccount, accounts }: Room, leaseMs: number): Promise<Row[]> =>
      db.query<Row>(statements.takeDue, [
        most,
        leaseMs / 1000,
        perAccount,
        accounts.map(({ organizationId }) => organizationId),
        accounts.map(({ psp }) => psp),
        accounts.map(({ merchantId }) => merchantId),
        accounts.map(({ room }) => String(room)),
      ]),

    /** Makes due at once what was put off by a clock of the database that was set back since. */
    async makeDue(db: Db, longestLeaseMs: number): Promise<void> {
      await db.query(statements.makeDue, [longestLeaseMs / 1000])
    },

    /** Takes one row in progress, due or not, unless a process holds it. */
    async take(db: Db, row: Row, leaseMs: number): Promise<Row | undefined> {
      const [taken] = await db.query<Row>(statements.take, [row.organization_id, row[table.id]!, leaseMs / 1000])
      return taken
    },

    /** Begins the lease of a row anew for the process that has it; undefined when another one took it or settled it. */
    async renew(db: Db, row: Row, leaseMs: number): Promise<Row | undefined> {
      const { organization_id, looks } = row
      const [renewed] = await db.query<Row>(statements.renew, [organization_id, row[table.id]!, looks, leaseMs / 1000])
      return renewed
    },

    /** Deletes a row whose movement was never begun at the provider, so that its key is free again. */
    async giveBack(db: Db, row: Row): Promise<void> {
      const { organization_id, looks } = row
      await db.query(statements.giveBack, [organization_id, row[table.id]!, looks])
    },

    /** The rows that a provider knows by these keys, of any organization. */
    findByProviderKeys: (query: Query, keys: string[]): Promise<Row[]> =>
      query<Row>(`select ${table.columns} from ${statements.from} where ${table.alias}.provider_key = any($1)`, [keys]),

    /** One row by its id alone, for operators. */
    async find(query: Query, id: string): Promise<Row | undefined> {
      const [row] = await query<Row>(
        `select ${table.columns} from ${statements.from} where ${table.alias}.${table.id} = $1`,
        [id],
      )
      return row
    },
  }
}

function statementsOf({ name, noun, alias: a, id, columns, join }: Table) {
  const using = join ? `, ${join.table}` : ''
  const joined = join ? ` and ${join.on}` : ''
  const free = `(${a}.lease_until is null or ${a}.lease_until <= (select db_clock()))`
  const mine = `organization_id = $1 and ${id} = $2 and looks = $3 and status = 'processing'`
  const until = (parameter: string) => `(select db_clock() + make_interval(secs => ${parameter}) as until) t`
  const from = join ? `${name} ${a} join ${join.table} on ${join.on}` : `${name} ${a}`
  // The merchant account of a refund is its order's.
  const accountOf = join ? 'o' : a
  const account = `${accountOf}.psp, ${accountOf}.psp_merchant_id`
  const busy = `unnest($4::text[], $5::text[], $6::text[], $7::int[]) as busy (organization_id, psp, psp_merchant_id, room)`
  const taken = `looks = ${a}.looks + 1, lease_until = t.until, next_look_at = t.until`
  return {
    from,
    handOver: {
      name: `hand over ${noun}`,
      text: `
        update ${name} set lease_until = null, next_look_at = db_clock() + make_interval(secs => $4), handed_over_at = db_clock(),
          not_found_at = case when $5 then coalesce(not_found_at, db_clock()) end,
          provider_mismatch = $6${name === 'refunds' ? ', is_unsent = $7' : ''}
        where ${mine}`,
    },
    takeDue: {
      name: `take due ${noun}s`,
      text: `
        with recursive now as materialized (select db_clock() as at), organizations as (
          (select organization_id from ${name} where status = 'processing' order by organization_id limit 1)
          union all
          select (select organization_id from ${name} t
            where t.status = 'processing' and t.organization_id > o.organization_id order by organization_id limit 1)
          from organizations o where o.organization_id is not null),
        due as (
          select d.*, row_number() over (partition by d.organization_id, d.psp, d.psp_merchant_id order by d.next_look_at)
            as turn
          from now, organizations g cross join lateral (
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
          update ${name} ${a} set ${taken} from chosen, ${until('$2')}${using}
          where ${a}.organization_id = chosen.organization_id and ${a}.${id} = chosen.${id}${joined}
          returning ${columns}, chosen.next_look_at as due_at)
        select * from taken order by due_at, ${id}`,
    },
    // A lease that ends later than any lease lasts was begun before that, too.
    makeDue: {
      name: `make ${noun}s due`,
      text: `
        update ${name} set lease_until = null, next_look_at = db_clock() where status = 'processing'
          and (lease_until is null and handed_over_at > db_clock()
            or lease_until > db_clock() + make_interval(secs => $1))`,
    },
    take: {
      name: `take ${noun}`,
      text: `
        update ${name} ${a} set ${taken} from ${until('$3')}${using}
        where ${a}.organization_id = $1 and ${a}.${id} = $2 and ${a}.status = 'processing' and ${free}${joined}
        returning ${columns}`,
    },
    renew: {
      name: `renew lease of ${noun}`,
      text: `
        update ${name} ${a} set lease_until = t.until, next_look_at = t.until, begun_at = db_clock()
        from ${until('$4')}${using}
        where ${a}.organization_id = $1 and ${a}.${id} = $2 and ${a}.looks = $3 and ${a}.status = 'processing'${joined}
        returning ${columns}`,
    },
    giveBack: { name: `give back ${noun}`, text: `delete from ${name} where ${mine}` },
  } satisfies Record<string, Statement | string>
}
