// The rules of figure marks for payments and customers, and what all rules are made of.
import { paidAt } from '../../core/records/payment-time.ts'
import type { Scope } from '../../core/records/record.ts'
import { nextMonthIn, zoneOf } from '../../core/tenants/reporting.ts'
import { declinesAround } from '../figures/declines.ts'

/** SQL of `family, at` for the days that a change of records changes. */
export interface Rule {
  /** SQL of `family, at` for rows that are going to be replaced: `t` is stored, `s` staged. */
  changed(from: string, scope: Scope): string[]
  /** For rows that are new. */
  added(from: string, scope: Scope): string[]
}

/** SQL: whether a staged row differs from the stored one. */
export const differ = (...columns: string[]) =>
  `row(${columns.map((name) => `t.${name}`).join(', ')}) is distinct from row(${columns.map((name) => `s.${name}`).join(', ')})`

/** SQL: the rows of the report that are a customer's sales, refunds and disputes; an index has each half. */
export const reportRows = (customer: string, organization: string) => `
  cross join lateral (
    select ${paidAt('report_transactions')} as paid_at from report_transactions
    where organization_id = ${organization} and external_id = ${customer}.external_id
      and psp_transaction_type = 'sale' and status = 'succeeded'
    union all ${back(customer, organization)}) r`

const back = (customer: string, organization: string) => `
    select ${paidAt('report_transactions')} as paid_at from report_transactions
    where organization_id = ${organization} and external_id = ${customer}.external_id and psp_transaction_type <> 'sale'`

/** The same for refunds and disputes alone. */
export const rowsBack = (customer: string, organization: string) =>
  `cross join lateral (${back(customer, organization)}) r`

export const customer: Rule = {
  changed: (from, { organization_id, project_id }) => [
    `select 'sales', r.paid_at from ${from} ${reportRows('t', organization_id)} where ${differ('profile_id')}`,
    ...['t.profile_id', 's.profile_id'].map((one) => exposures(from, one, project_id, differ('profile_id'))),
  ],
  added: () => [`select 'sales', null::timestamptz where false`],
}

const FAMILIES = `cross join (values ('sales'), ('payments')) families (family)`

/** SQL: the days of declined payments that depend on the payment `row`, which may be another attempt at them. */
const declined = (from: string, organization: string, row: string, at: string) => [
  `select 'declines', ${at} from ${from} where ${row}.psp_transaction_type = 'sale' and ${row}.status = 'failed'`,
  `select 'declines', ${paidAt('r')} from ${from} join report_transactions r
     on ${declinesAround('r', organization, `${row}.external_id`, at)} where ${row}.psp_transaction_type = 'sale'`,
]

/** Other rows of the report that depend on the payment `row`. */
const besidePayment = (
  from: string,
  { organization_id: organization, project_id }: Scope,
  row: string,
  at = paidAt(row),
) => [
  ...declined(from, organization, row, at),
  // The first payment of their payer in the month may be earlier or later now.
  `select 'sales', ${paidAt('r')} from ${from} join report_transactions r
     on r.organization_id = ${organization} and r.external_id = ${row}.external_id
     and r.psp_transaction_type = 'sale' and r.status = 'succeeded' and ${paidAt('r')} >= ${at}
     and ${paidAt('r')} < ${nextMonthIn(at, zoneOf(project_id))}`,
  // The row of a refund that failed later cancels the row of its success, and what goes back belongs to the session of the
  // payment: all of one order.
  `select 'sales', ${paidAt('r')} from ${from} join report_transactions r
     on r.organization_id = ${organization} and r.order_id = ${row}.order_id`,
  // The first payment of the customer may be another one now.
  `select 'sales', r.paid_at from ${from} ${reportRows(row, organization)}
   where ${row}.psp_transaction_type = 'sale' and ${row}.status = 'succeeded' and not exists (
     select from report_transactions e where e.organization_id = ${organization} and e.external_id = ${row}.external_id
       and e.psp_transaction_type = 'sale' and e.status = 'succeeded' and ${paidAt('e')} < ${at})`,
]

/** SQL: the days on which the person whose money it is came into experiments. */
export const exposures = (from: string, profile: string, project: string, where = 'true') =>
  `select 'experiments', e.created_at from ${from}
   join sessions e on e.project_id = ${project} and e.profile_id = ${profile} and e.experiment_id is not null where ${where}`

/** The same for a customer. */
const exposuresOf = (from: string, customer: string, { project_id, organization_id }: Scope) =>
  exposures(
    `${from} join customers x on x.organization_id = ${organization_id} and x.external_id = ${customer}.external_id
       and x.project_id = ${project_id}`,
    'x.profile_id',
    project_id,
  )

// A stored row keeps its `trx_created_at`, whatever the line says.
const PAID_AFTERWARDS = 'coalesce(s.psp_date, t.trx_created_at)'

export const payment: Rule = {
  changed: (from, scope) => [
    ...['t', 's'].map((one) => exposuresOf(from, one, scope)),
    `select family, ${paidAt('t')} from ${from} ${FAMILIES}`,
    `select family, ${PAID_AFTERWARDS} from ${from} ${FAMILIES}`,
    ...besidePayment(from, scope, 't'),
    ...besidePayment(from, scope, 's', PAID_AFTERWARDS),
  ],
  added: (from, scope) => [
    exposuresOf(from, 's', scope),
    `select family, ${paidAt('s')} from ${from} ${FAMILIES}`,
    ...besidePayment(from, scope, 's'),
  ],
}
