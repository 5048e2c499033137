// Makes a project of any size in SQL: profiles with a session each, subscriptions in all states, transactions.
import type { Query } from '../src/lib/db.ts'

export const PROJECT = 'bench'

/** Fills the project `bench`, which exists, with `size` subscriptions and as many profiles, sessions and transactions. */
export async function generate(query: Query, size: number): Promise<void> {
  await query("set synchronous_commit = off; set maintenance_work_mem = '256MB'; set statement_timeout = 0")
  for (const statement of STATEMENTS) await query(statement.replaceAll(':size', String(size)))
  await query('vacuum analyze')
}

const ID = (prefix: string, n: string) => `'${prefix}_' || lpad(${n}::text, 12, '0')`
// A row every 7 seconds up to now: stamps differ, and their order is the order of the ids.
const AT = "timestamptz '2026-01-01' - (:size - n) * interval '7 seconds'"
const STATUS =
  "(array['created','trialing','active','active','active','active','paused','cancelled','expired','unpaid'])[1 + n % 10]"

const STATEMENTS = [
  `insert into funnels (project_id, id, title, title_folded, alias, created_at, updated_at)
   select '${PROJECT}', 'funnel_' || n, 'Funnel ' || n, 'funnel ' || n, 'funnel-' || n, '2020-01-01', '2020-01-01'
   from generate_series(1, 20) n`,
  `insert into products (project_id, id, name, status, created_at, updated_at)
   select '${PROJECT}', 'product_' || n, 'Product ' || n, 'active', '2020-01-01', '2020-01-01' from generate_series(1, 50) n`,
  `insert into profiles (project_id, id, created_at, updated_at, email, email_folded, country, funnel_id)
   select '${PROJECT}', ${ID('pro', 'n')}, ${AT}, ${AT}, 'person' || n || '@example.com', 'person' || n || '@example.com', 'DE',
     'funnel_' || 1 + n % 20 from generate_series(1, :size) n`,
  `insert into sessions (project_id, id, created_at, updated_at, profile_id, funnel_id, funnel_version, user_agent, ip)
   select '${PROJECT}', ${ID('ses', 'n')}, ${AT}, ${AT}, ${ID('pro', 'n')}, 'funnel_' || 1 + n % 20, 1, 'Mozilla/5.0', '192.0.2.1'
   from generate_series(1, :size) n`,
  `insert into subscriptions (project_id, id, psp_id, status, renews, created_at, updated_at, billing_interval,
     billing_interval_count, price, currency, price_usd, funnel_version, payment_provider, period_starts_at, period_ends_at,
     profile_id, product_id, funnel_id, session_id)
   select '${PROJECT}', ${ID('sub', 'n')}, 'psp_' || n, ${STATUS}, n % 3 > 0, ${AT}, ${AT}, 'month', 1, 1999, 'USD', 1999, 3,
     (array['stripe','adyen','checkout'])[1 + n % 3], ${AT}, ${AT} + interval '1 month',
     ${ID('pro', 'n')}, 'product_' || 1 + n % 50, 'funnel_' || 1 + n % 20, ${ID('ses', 'n')}
   from generate_series(1, :size) n`,
  `insert into transactions (project_id, id, created_at, updated_at, session_id, profile_id, funnel_id, funnel_version,
     currency, price, price_usd, subscription_id)
   select '${PROJECT}', ${ID('trn', 'n')}, ${AT}, ${AT}, ${ID('ses', 'n')}, ${ID('pro', 'n')}, 'funnel_' || 1 + n % 20, 3, 'USD',
     1999, 1999, ${ID('sub', 'n')} from generate_series(1, :size) n`,
  `insert into counts (project_id, list, field, value, n)
   select '${PROJECT}', list, '', '', :size from unnest(array['profiles', 'sessions', 'subscriptions', 'transactions']) list`,
  `insert into counts (project_id, list, field, value, n) values
   ('${PROJECT}', 'funnels', '', '', 20), ('${PROJECT}', 'funnels', 'all', '', 20), ('${PROJECT}', 'products', '', '', 50)`,
  ...['status', 'funnel_id', 'product_id', 'payment_provider'].map(
    (field) => `insert into counts (project_id, list, field, value, n)
      select '${PROJECT}', 'subscriptions', '${field}', ${field}, count(*) from subscriptions
      where project_id = '${PROJECT}' group by ${field}`,
  ),
]
