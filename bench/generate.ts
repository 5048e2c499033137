// Generates a project of any size in SQL, in minutes: people with one session each, subscriptions in all states, transactions.
import type { Query } from '../src/lib/pg/types.ts'

export const PROJECT = 'bench'
export const ORGANIZATION = 'bench'

export interface Amount {
  /** The number of subscriptions and of transactions; there are a quarter as many people with them, with one session each. */
  size: number
  /** The number of existing projects among which they are divided evenly; `bench` is one of them. */
  projects?: number
  /** The number of rows of the payment report, and the seconds between two of them. */
  report?: number
  reportEverySeconds?: number
  /** The number of customers among whom the rows of the payment report are divided. */
  customers?: number
  /** The number of sessions, if it is larger: the others are of people without a subscription, with three each. */
  sessions?: number
}

/**
 * Fills an empty database whose organizations and projects exist. Needs a superuser, because rows are written before their
 * indexes and without checks of references; in one transaction, which a server with `wal_level = minimal` does not log.
 */
export async function generate(query: Query, amount: Amount): Promise<void> {
  const { size, projects = 1, report = size, reportEverySeconds = 1, customers = 1000, sessions = 0 } = amount
  const people = Math.ceil(size / projects / 4) * projects
  const numbers = {
    ':size': size,
    ':projects': projects,
    ':people': people,
    ':report_step': reportEverySeconds,
    ':report': report,
    ':customers': customers,
    ':visits': Math.max(0, sessions - people),
  }
  const fill = async (statement: string) => {
    const ready = Object.entries(numbers).reduce((text, [name, n]) => text.replaceAll(name, String(n)), statement)
    await query(ready)
  }
  for (const setting of SETTINGS) await query(setting)
  await query('begin')
  await query(`truncate ${TABLES.join(', ')} cascade`)
  const indexes = await dropIndexes(query)
  for (const statement of STATEMENTS) await fill(statement)
  for (const index of indexes) await query(index)
  await query('commit')
  await query('vacuum analyze')
}

const SETTINGS = [
  'set synchronous_commit = off',
  'set statement_timeout = 0',
  "set maintenance_work_mem = '512MB'",
  'set max_parallel_maintenance_workers = 2',
  'set session_replication_role = replica',
]

const TABLES =
  'funnels products profiles sessions subscriptions transactions customers report_transactions counts'.split(' ')

/** Drops the indexes that no constraint needs; returns the statements that create them again. */
async function dropIndexes(query: Query): Promise<string[]> {
  const indexes = await query(
    `select i.indexrelid::regclass as name, pg_get_indexdef(i.indexrelid) as definition from pg_index i
     where i.indrelid = any($1::text[]::regclass[]) and not exists (select from pg_constraint where conindid = i.indexrelid)`,
    [TABLES],
  )
  for (const { name } of indexes) await query(`drop index ${name}`)
  return indexes.map(({ definition }) => definition!)
}

// Rows are numbered from 0 and distributed round-robin over the projects; rows that belong together are in one project.
const PROJECT_OF = `case n % :projects when 0 then '${PROJECT}' else '${PROJECT}-' || n % :projects end`
const id = (prefix: string, n: string) => `'${prefix}_' || lpad((${n})::text, 12, '0')`
// The person with the subscription n: each has four in succession.
const OWNER = '(n / :projects / 4) * :projects + n % :projects'
// The first subscription of the person n.
const FIRST = '(n / :projects * 4) * :projects + n % :projects'
const END = `timestamptz '2026-01-01'`
// A row every 7 seconds up to the end, so that stamps differ and have the order of the ids.
const at = (n: string) => `${END} - (:size - (${n})) * interval '7 seconds'`
// Between 0 and 1, the same for each n.
const CHANCE = '((hashint8(n) & 2147483647) / 2147483648.0)'
// A third of the rows changed later, at random times, so that in the order of changes they are scattered over the table.
const CHANGED = `case when n % 3 = 0 then ${at('n')} + (${END} - (${at('n')})) * ${CHANCE} else ${at('n')} end`
const FUNNEL = `'funnel_' || floor(20 * ${CHANCE} ^ 2)::int`
const PRODUCT = `'product_' || floor(50 * ${CHANCE} ^ 3)::int`
// One in a thousand is unpaid, and most are active.
const STATUS = `case when n % 1000 = 0 then 'unpaid'
  else (array['trialing', 'active', 'active', 'active', 'active', 'active', 'paused', 'cancelled', 'cancelled', 'expired'])[1 + n % 10] end`
const PROVIDER = `(array['stripe', 'stripe', 'adyen', 'checkout'])[1 + n % 4]`
const COUNTRY = `(array['US', 'US', 'DE', 'GB', 'FR', 'BR', 'JP'])[1 + n % 7]`
// One visit in five has no source.
const SOURCE = `(array['meta', 'meta', 'google', 'tiktok', ''])[1 + n % 5]`
const CAMPAIGN = `case when n % 5 = 4 then '' else 'campaign_' || floor(200 * ${CHANCE} ^ 2)::int end`
// The sessions of people without a subscription are spread evenly over the same time, and the first of three begins the profile.
const VISIT_AT = (n: string) => `${END} - (:visits - (${n})) * (:size * interval '7 seconds' / nullif(:visits, 0))`
const VISITOR = '(n / :projects / 3) * :projects + n % :projects'
const FIRST_VISIT = '(n / :projects * 3) * :projects + n % :projects'
const rows = (from: string) => `from generate_series(0::bigint, ${from} - 1) n`

const STATEMENTS = [
  `insert into funnels (project_id, id, title, title_folded, alias, created_at, updated_at)
   select ${PROJECT_OF}, 'funnel_' || m, 'Funnel ' || m, 'funnel ' || m, 'funnel-' || m, '2020-01-01', '2020-01-01'
   ${rows(':projects')}, generate_series(0, 19) m`,
  `insert into products (project_id, id, name, status, created_at, updated_at)
   select ${PROJECT_OF}, 'product_' || m, 'Product ' || m, 'active', '2020-01-01', '2020-01-01'
   ${rows(':projects')}, generate_series(0, 49) m`,
  `insert into profiles (project_id, id, created_at, updated_at, email, email_folded, country, funnel_id)
   select ${PROJECT_OF}, ${id('pro', 'n')}, ${at(FIRST)}, ${at(FIRST)}, 'person' || n || '@example.com',
     'person' || n || '@example.com', ${COUNTRY}, ${FUNNEL} ${rows(':people')}`,
  `insert into sessions (project_id, id, created_at, updated_at, profile_id, funnel_id, funnel_version, user_agent, ip,
     country, visit_source, visit_campaign)
   select ${PROJECT_OF}, ${id('ses', 'n')}, ${at(FIRST)}, ${at(FIRST)}, ${id('pro', 'n')}, ${FUNNEL}, 1, 'Mozilla/5.0', '192.0.2.1',
     ${COUNTRY}, ${SOURCE}, ${CAMPAIGN}
   ${rows(':people')}`,
  `insert into profiles (project_id, id, created_at, updated_at, country, funnel_id)
   select ${PROJECT_OF}, ${id('vis', 'n')}, ${VISIT_AT(FIRST_VISIT)}, ${VISIT_AT(FIRST_VISIT)}, ${COUNTRY}, ${FUNNEL}
   ${rows('ceil(:visits / 3.0 / :projects)::bigint * :projects')}`,
  `insert into sessions (project_id, id, created_at, updated_at, profile_id, funnel_id, funnel_version, user_agent, ip,
     country, visit_source, visit_campaign)
   select ${PROJECT_OF}, ${id('vis', 'n')}, ${VISIT_AT('n')}, ${VISIT_AT('n')}, ${id('vis', VISITOR)}, ${FUNNEL}, 1, 'Mozilla/5.0',
     '192.0.2.1', ${COUNTRY}, ${SOURCE}, ${CAMPAIGN}
   ${rows(':visits')}`,
  `insert into subscriptions (project_id, id, psp_id, status, renews, created_at, updated_at, billing_interval,
     billing_interval_count, price, currency, price_usd, funnel_version, payment_provider, period_starts_at, period_ends_at,
     profile_id, product_id, funnel_id, session_id)
   select ${PROJECT_OF}, ${id('sub', 'n')}, 'psp_' || n, ${STATUS}, n % 3 > 0, ${at('n')}, ${CHANGED}, 'month', 1, 1999, 'USD',
     1999, 3, ${PROVIDER}, ${at('n')}, ${at('n')} + interval '1 month', ${id('pro', OWNER)}, ${PRODUCT}, ${FUNNEL},
     ${id('ses', OWNER)} ${rows(':size')}`,
  `insert into transactions (project_id, id, created_at, updated_at, session_id, profile_id, funnel_id, funnel_version,
     currency, price, price_usd, subscription_id)
   select ${PROJECT_OF}, ${id('trn', 'n')}, ${at('n')}, ${at('n')}, ${id('ses', OWNER)}, ${id('pro', OWNER)}, ${FUNNEL}, 3, 'USD',
     1999, 1999, ${id('sub', 'n')} ${rows(':size')}`,
  `insert into customers (organization_id, external_id, project_id, created_at, updated_at)
   select '${ORGANIZATION}', 'customer ' || n, '${PROJECT}', ${END}, ${END} ${rows(':customers')}`,
  `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
     amount, amount_usd, currency_code, status, integration_type, region, psp, pp_id, pp_version, is_cit, psp_date,
     psp_transaction_id, psp_merchant_id, psp_transaction_type, psp_status, meta_subs_id, meta_subs_iteration, pm_type, network,
     pm_data_bin_account_funding_type, pm_data_bin_issuer_name, pm_data_bin_issuer_country_code, pm_data_expiration_date,
     pm_data_first6, pm_data_last4)
   select '${ORGANIZATION}', 'customer ' || n % :customers, true, ${END}, gen_random_uuid(), gen_random_uuid(),
     ${END} - (:report - n) * interval ':report_step seconds', 10.5, 10.5, 'USD', 'succeeded', 'hosted_page', 'eu', 'stripe', 1, 1, true,
     ${END} - (:report - n) * interval ':report_step seconds', 'pi_' || n, 'main', 'sale', 'captured', md5((n / 12)::text)::uuid::text,
     (n % 12)::text, 'card', 'visa', 'credit', 'A bank', 'DE', '12/29', '424242', '4242' ${rows(':report')}`,
  `insert into counts (project_id, list, field, value, n, fresh)
   select project_id, list, '', '', n, false from (${[
     'funnels',
     'products',
     'profiles',
     'sessions',
     'subscriptions',
     'transactions',
   ]
     .map((list) => `select project_id, '${list}' as list, count(*) as n from ${list} group by 1`)
     .join(' union all ')}) counted
   union all select project_id, 'funnels', 'all', '', count(*), false from funnels group by 1`,
  ...[
    ['subscriptions', 'status'],
    ['subscriptions', 'funnel_id'],
    ['subscriptions', 'product_id'],
    ['subscriptions', 'payment_provider'],
    ['profiles', 'funnel_id'],
    ['sessions', 'funnel_id'],
  ].map(
    ([list, field]) => `insert into counts (project_id, list, field, value, n, fresh)
      select project_id, '${list}', '${field}', ${field}, count(*), false from ${list} group by 1, ${field}`,
  ),
]
