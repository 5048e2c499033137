// A dashboard with the demo, and the same numbers computed from the demo's records by independent SQL.
import assert from 'node:assert/strict'
import { dashboardOf } from '../../support/dashboard.ts'
import { startDemoServer } from './demo-database.ts'

const DAY_MS = 86_400_000
const day = (daysAgo: number) => new Date(Date.now() - daysAgo * DAY_MS).toISOString().slice(0, 10)
// 200 days, so that the months at both ends are incomplete; `TO` is the day after the last, for SQL.
export const [FROM, LAST, TO] = [day(200), day(1), day(0)]
export const PERIOD = `project=demo&from=${FROM}&to=${LAST}&by=month`

// Independent of the statements that compute figures: a row for each movement of money, session and so on.
export const SALES = `
  select to_char(t.created_at at time zone 'UTC', 'YYYY-MM') as month, t.created_at as at, t.price_usd as cents, t.currency,
    coalesce(u.product_id, '') as product, coalesce(p.country, '') as country, coalesce(t.funnel_id, '') as funnel,
    coalesce(u.payment_provider, '') as provider, case when t.price > 0 then p.id end as payer,
    case when u.id is null then 'one_off' when t.id = u.trial_transaction_id then 'trial'
      when t.price > 0 and rank() over (partition by u.id, t.price > 0 and t.id is distinct from u.trial_transaction_id
        order by t.created_at, t.id) = 1 then 'new' else 'renewal' end as kind
  from transactions t join profiles p on p.project_id = t.project_id and p.id = t.profile_id
  left join subscriptions u on u.project_id = t.project_id and u.id = t.subscription_id
  where t.project_id = 'demo' and not t.sandbox and not p.preview
  union all
  select to_char(r.trx_created_at at time zone 'UTC', 'YYYY-MM'), r.trx_created_at, r.amount_usd * 100, r.currency_code, '', '',
    '', r.psp, r.external_id, 'one_off'
  from report_transactions r join customers c using (organization_id, external_id)
  where c.project_id = 'demo' and c.profile_id is null and r.psp_transaction_type = 'sale' and r.status = 'succeeded'`
export const BACK = `
  select to_char(r.trx_created_at at time zone 'UTC', 'YYYY-MM') as month, r.trx_created_at as at,
    r.amount_usd * 100 as cents, r.psp_transaction_type as type, coalesce(r.psp_reason_code, '') as reason
  from report_transactions r join customers c using (organization_id, external_id)
  left join profiles p on p.project_id = 'demo' and p.id = c.profile_id
  where c.project_id = 'demo' and r.psp_transaction_type in ('refund', 'chargeback') and p.preview is not true`
export const SESSIONS = `
  select s.id, s.profile_id, s.funnel_id as funnel, s.funnel_version::text as version, s.experiment_id as experiment, s.locale, to_char(s.created_at at time zone 'UTC', 'YYYY-MM') as month, s.created_at as at,
    s.country, exists (select from replies r where r.project_id = 'demo' and r.session_id = s.id) as replied,
    p.email is not null as email,
    exists (select from subscriptions u where u.project_id = 'demo' and u.session_id = s.id) as subscribed,
    s.id in (
      select t.session_id from transactions t where t.project_id = 'demo' and t.price > 0
      union select u.session_id from transactions t
        join subscriptions u on u.project_id = t.project_id and u.id = t.subscription_id
        where t.project_id = 'demo' and t.price > 0) as paid
  from sessions s join profiles p on p.project_id = s.project_id and p.id = s.profile_id
  where s.project_id = 'demo' and not p.preview`
export const SUBSCRIPTIONS = `
  select u.id, to_char(u.created_at at time zone 'UTC', 'YYYY-MM') as month, u.created_at as at,
    coalesce(first, case when u.status = 'active' or (u.status not in ('created', 'trialing') and u.trial_offer is null
      and u.trial_transaction_id is null) then u.created_at end) as began,
    case when u.status = 'paused' then u.paused_at
      when u.status in ('cancelled', 'expired', 'unpaid') then coalesce(u.period_ends_at, u.cancelled_at) end as ended,
    u.price_usd * case u.billing_interval when 'day' then 30.4375 when 'week' then 30.4375 / 7 when 'year' then 1 / 12.0 else 1 end
      / u.billing_interval_count as worth,
    u.trial_offer is not null or u.trial_transaction_id is not null or u.status = 'trialing' as trial
  from subscriptions u join profiles p on p.project_id = u.project_id and p.id = u.profile_id
  left join lateral (select min(t.created_at) as first from transactions t where t.project_id = 'demo'
    and t.subscription_id = u.id and t.price > 0 and t.id is distinct from u.trial_transaction_id) f on true
  where u.project_id = 'demo' and not u.sandbox and not p.preview`
export const ATTEMPTS = `
  select to_char(r.trx_created_at at time zone 'UTC', 'YYYY-MM') as month, r.trx_created_at as at, r.status,
    r.psp as provider, r.psp_merchant_id as account, r.psp_reason_code as reason, r.psp_reason_decline_type as type
  from report_transactions r join customers c using (organization_id, external_id)
  where c.project_id = 'demo' and r.psp_transaction_type = 'sale' and r.status in ('succeeded', 'failed')`

export type Fact = Record<string, string | null>

/** A dashboard with the demo; `page` visits the period, `facts` are rows of it, or of what `where` says. */
export async function startDemo() {
  const server = await startDemoServer()
  const { operator, signIn, visit } = dashboardOf(server)
  const cookie = await signIn((await operator('read')).key)
  async function page(path: string, query = PERIOD): Promise<string> {
    const { status, text } = await visit(`${path}?${query}`, { cookie })
    assert.equal(status, 200, text)
    return text
  }
  const facts = (sql: string, where = `at >= '${FROM}Z' and at < '${TO}Z'`): Promise<Fact[]> =>
    server.db.query(`select * from (${sql}) facts where ${where}`)
  /** The address to which a page redirects. */
  async function redirect(path: string, query: string): Promise<string | null> {
    const { status, headers } = await visit(`${path}?${query}`, { cookie })
    assert.equal(status, 303)
    return headers.get('location')
  }
  return { query: server.db.query, page, redirect, facts, stop: server.stop }
}

export const cents = (rows: Fact[]) => Math.round(rows.reduce((sum, one) => sum + Number(one.cents), 0)) / 100
export const count = (rows: Fact[], field: string) => rows.filter((one) => one[field] === 't').length

/** Rows sorted by the second cell, the largest first. */
export const sorted = (rows: (string | number)[][]) =>
  rows.sort((a, b) => Number(b[1]) - Number(a[1]) || (a[0]! < b[0]! ? -1 : 1))

/** Applies `values` to the rows of each key; sorted by the second cell, the largest first. */
export const grouped = (rows: Fact[], field: string, values: (rows: Fact[]) => number[]) =>
  sorted([...Map.groupBy(rows, (one) => one[field] ?? '')].map(([key, own]) => [key, ...values(own)]))

/** The number of sessions that reached each step. */
export const steps = (own: Fact[]) => [
  own.length,
  ...['replied', 'email', 'subscribed', 'paid'].map((one) => count(own, one)),
]
