// Writes staged payments: creates their customers, and gives each new row of the report a unique instant.

import type { Scope, Tenant } from '../../core/records/record.ts'
import type { Query } from '../../lib/pg/types.ts'
import { addRest, lockKeys, type MergeHooks, type Merging, mergeKnown } from './merge.ts'
import type { StagedKind } from './staging.ts'

/** Merges all staged payments; do it last in the transaction, for a live import keeps the organization's clock locked. */
export async function mergePayments(query: Query, brought: StagedKind, merging: Merging, hooks: MergeHooks) {
  const { scope, tally } = merging
  await Promise.all([query(createCustomers(scope)), tally.add(query, dropOwn(scope))])
  const keys = await lockKeys(query, brought, scope)
  await Promise.all(mergeKnown(query, brought, keys, merging, hooks))
  await (scope.live ? stamp(query, scope) : moveApart(query, scope))
  await Promise.all(addRest(query, brought.kind, scope, hooks))
}

/**
 * Before the transaction of an import of history: sets the organization's clock past all its times. Charges that
 * settle during the import then take later instants, and need not wait for the import.
 */
export async function raiseClock(query: Query, { organization_id }: Tenant): Promise<void> {
  // Moved apart, each row takes a microsecond more after the last staged and stored one. A clock that
  // is an hour ahead of that is out of reach.
  await query(`
    with brought as (select max(trx_created_at) as last, count(*) * interval '1 microsecond' as room from import_payment)
    update organization_clocks set last_trx_created_at = greatest(last_trx_created_at, last) + room from brought
    where organization_id = ${organization_id} and last_trx_created_at < last + interval '1 hour'`)
}

/** Drops payments of orders that were charged by Tundish, whose own rows are authoritative. */
function dropOwn({ organization_id }: Scope): string {
  return `
    with gone as (
      delete from import_payment s using orders o
      where o.organization_id = ${organization_id} and o.order_id = s.order_id returning s.source)
    select 'skipped' as counted, source, count(*) as n from gone group by source`
}

function createCustomers({ organization_id, project_id, stamp }: Scope): string {
  return `
    insert into customers (organization_id, external_id, project_id, created_at, updated_at)
    select distinct ${organization_id}, s.external_id, ${project_id}, ${stamp}, ${stamp} from import_payment s
    where not exists (
      select from customers c where c.organization_id = ${organization_id} and c.external_id = s.external_id)`
}

/** The clock stays locked until the commit, so that no row gets a stamp earlier than one that a reader has passed. */
async function stamp(query: Query, { organization_id }: Scope): Promise<void> {
  const order = `select ctid as at, row_number() over (order by trx_created_at, source, line) as place from import_payment`
  await query(`
    with clock as (
      update organization_clocks set last_trx_created_at =
        greatest(db_clock(), last_trx_created_at + interval '1 microsecond') + brought.count * interval '1 microsecond'
      from (select count(*) from import_payment) brought
      where organization_id = ${organization_id} and brought.count > 0
      returning last_trx_created_at as last, brought.count)
    update import_payment s set trx_created_at = clock.last - (clock.count - placed.place) * interval '1 microsecond'
    from clock, (${order}) placed where s.ctid = placed.at`)
}

/** Moves rows of one instant apart, also from stored ones, in the order of their lines. */
async function moveApart(query: Query, { organization_id }: Scope): Promise<void> {
  for (;;) {
    const [found] = await query(`
      select exists (select from import_payment group by trx_created_at having count(*) > 1) as tied,
        exists (select from import_payment s join report_transactions t
          on t.organization_id = ${organization_id} and t.trx_created_at = s.trx_created_at) as taken`)
    if (found!.taken === 't') await query(passTaken(organization_id))
    else if (found!.tied === 't') await query(SPREAD)
    else return
  }
}

/** Moves rows whose instant is taken to the first free one after it. Searches once per instant, not per row. */
const passTaken = (organization: string) => `
  with taken as materialized (
    select distinct s.trx_created_at as at from import_payment s
    join report_transactions t on t.organization_id = ${organization} and t.trx_created_at = s.trx_created_at
  ), free as materialized (
    select at, (
      select t.trx_created_at + interval '1 microsecond' from report_transactions t
      where t.organization_id = ${organization} and t.trx_created_at >= taken.at and not exists (
        select from report_transactions next where next.organization_id = ${organization}
          and next.trx_created_at = t.trx_created_at + interval '1 microsecond')
      order by t.trx_created_at limit 1) as next
    from taken)
  update import_payment s set trx_created_at = free.next from free where s.trx_created_at = free.at`

/** Sets each row at least a microsecond after the one before it, by a running maximum. */
const SPREAD = `
  with placed as (
    select ctid as at, trx_created_at as was,
      row_number() over (order by trx_created_at, source, line) * interval '1 microsecond' as place
    from import_payment
  ), spread as (select at, was, max(was - place) over (order by place) + place as now from placed)
  update import_payment s set trx_created_at = spread.now from spread where s.ctid = spread.at and spread.now <> spread.was`
