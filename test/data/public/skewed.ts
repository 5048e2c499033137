// A project with realistically skewed values: most rows have one value, a few old ones another.
import type { Db } from '../../../src/lib/pg/db.ts'

const SIZE = 20_000
/** The number of oldest rows with the rare value. */
const RARE = 30

/** Fills a project, and its organization's payment report. */
export async function fillSkewed(db: Db, { id, organizationId }: { id: string; organizationId: string }) {
  await db.tx(async (query) => {
    for (const statement of STATEMENTS) {
      await query(statement.replaceAll(':project', `'${id}'`).replaceAll(':organization', `'${organizationId}'`))
    }
  })
  await db.query('analyze')
}

/** Many almost empty projects, so that the average of rows per project is small. */
export async function addSmallProjects(db: Db, organizationId: string, howMany = 500): Promise<void> {
  const of = (columns: string, values: string) =>
    `insert into ${columns.replace('(', '(project_id, ')} select 'small-' || n, ${values} from generate_series(1, ${howMany}) n`
  await db.tx(async (query) => {
    await query(
      `insert into projects (id, organization_id, name) select 'small-' || n, $1, 'x' from generate_series(1, ${howMany}) n`,
      [organizationId],
    )
    await query(of('profiles (id, created_at, updated_at)', `'pro', ${OLD}, ${OLD}`))
    await query(of('sessions (id, created_at, updated_at, profile_id)', `'ses', ${OLD}, ${OLD}, 'pro'`))
    await query(of('products (id, name, status, created_at, updated_at)', `'prod', 'x', 'active', ${OLD}, ${OLD}`))
    await query(
      of(
        `subscriptions (id, status, renews, created_at, updated_at, billing_interval, billing_interval_count, price,
           currency, profile_id, product_id)`,
        `'sub', 'active', true, ${OLD}, ${OLD}, 'month', 1, 1, 'USD', 'pro', 'prod'`,
      ),
    )
    await query(
      of(
        'transactions (id, created_at, updated_at, profile_id, currency, price, subscription_id)',
        `'trn', ${OLD}, ${OLD}, 'pro', 'USD', 1, 'sub'`,
      ),
    )
  })
  await db.query('analyze')
}

const OLD = `timestamptz '2020-01-01'`
const AT = `timestamptz '2026-01-01' - (${SIZE} - n) * interval '1 minute'`
// The order of changes differs from that of creation, so that rows in one order are scattered in the other.
const CHANGED = `${AT} + (n * 7919 % ${SIZE}) * interval '1 minute'`
const often = (often: string, rare: string) => `case when n <= ${RARE} then '${rare}' else '${often}' end`
const FUNNEL = often('funnel-1', 'funnel-rare')
const rows = (howMany = SIZE) => `from generate_series(1, ${howMany}) n`
// Most people have one or two of each kind, one person has a hundred.
const OWNER = `case when n between 1000 and 1100 then 7 else 1 + n / 2 end`
const EMAIL = `'person' || ${OWNER} || '@example.com'`

const STATEMENTS = [
  `insert into funnels (project_id, id, title, title_folded, alias, type, created_at, updated_at, deleted_at)
   select :project, case n when 2 then 'funnel-rare' else 'funnel-' || n end, 'x', ${often('quiz', 'rare quiz')}, 'alias-' || n,
     ${often('default', 'rare')}, ${AT}, ${AT}, case when n % 3 = 0 then ${AT} end ${rows(3000)}`,
  `insert into products (project_id, id, name, status, created_at, updated_at)
   select :project, case n when 2 then 'product-rare' else 'product-' || n end, 'x', 'active', ${AT}, ${AT} ${rows(3000)}`,
  `insert into experiments (project_id, id, created_at, updated_at)
   select :project, 'experiment-' || n, ${AT}, ${CHANGED} ${rows(3000)}`,
  `insert into profiles (project_id, id, created_at, updated_at, email, email_folded, funnel_id)
   select :project, 'pro-' || n, ${AT}, ${CHANGED}, ${EMAIL}, ${EMAIL}, ${FUNNEL} ${rows()}`,
  `insert into sessions (project_id, id, created_at, updated_at, profile_id, funnel_id)
   select :project, 'ses-' || n, ${AT}, ${CHANGED}, 'pro-' || ${OWNER}, ${FUNNEL} ${rows()}`,
  `insert into subscriptions (project_id, id, status, renews, created_at, updated_at, billing_interval, billing_interval_count,
     price, currency, payment_provider, profile_id, product_id, funnel_id)
   select :project, 'sub-' || n, ${often('active', 'unpaid')}, true, ${AT}, ${CHANGED}, 'month', 1, 1, 'USD',
     ${often('stripe', 'rare')}, 'pro-' || ${OWNER}, ${often('product-1', 'product-rare')}, ${FUNNEL} ${rows()}`,
  `insert into transactions (project_id, id, created_at, updated_at, profile_id, funnel_id, currency, price, subscription_id)
   select :project, 'trn-' || n, ${AT}, ${CHANGED}, 'pro-1', ${FUNNEL}, 'USD', 1, 'sub-' || ${OWNER} ${rows()}`,
  `insert into customers (organization_id, external_id, project_id, profile_id, email, created_at, updated_at)
   select :organization, 'customer ' || n, :project, 'pro-' || n, ${EMAIL}, ${AT}, ${AT} ${rows(2000)}`,
  `insert into report_transactions (organization_id, external_id, imported, updated_at, order_id, trx_id, trx_created_at,
     amount, currency_code, status, psp, psp_transaction_type, meta_subs_id, meta_oneoff_id)
   select :organization, 'customer ' || 1 + n % 2000, true, ${AT}, ${uuid(OWNER)}, ${uuid('n')},
     ${AT} + (n * 7919 % ${SIZE}) * interval '1 second', 1, 'USD', 'succeeded', 'x', 'sale',
     ${uuid(OWNER)}::text, ${uuid(OWNER)}::text ${rows()}`,
  `insert into orders (organization_id, order_id, external_id, project_id, idempotency_key, amount, currency_code, status, psp,
     payment_method_token, source_trx_id, provider_key, created_at, settled_at)
   select :organization, ${uuid('n')}, 'customer ' || 1 + n % 2000, :project, 'key ' || n, 1, 'USD', 'succeeded', 'x', 'pm',
     ${uuid('n')}, 'key ' || n, ${AT}, ${AT} ${rows()}`,
  `insert into consumables (organization_id, consumable_id, order_id, external_id, amount, currency_code, granted_at, updated_at)
   select :organization, ${uuid('n')}, ${uuid('n')}, 'customer ' || 1 + n % 2000, 1, 'USD', ${AT}, ${CHANGED} ${rows()}`,
  `insert into refunds (organization_id, refund_id, order_id, external_id, amount, currency_code, provider_key, created_at, updated_at,
     status, settled_at, next_look_at)
   select :organization, ${uuid('n')}, ${uuid('n')}, 'customer ' || 1 + n % 2000, 1, 'USD', 'key ' || n, ${AT}, ${CHANGED},
     case when n % 3 = 0 then 'processing' else 'succeeded' end, case when n % 3 > 0 then ${AT} end, ${AT} ${rows()}`,
  `insert into disputes (organization_id, order_id, dispute_id, amount, currency_code, status, opened_at, created_at, updated_at)
   select :organization, ${uuid('n')}, 'dispute-' || n, 1, 'USD', 'open', ${AT}, ${AT}, ${CHANGED} ${rows()}`,
  `insert into credit_units (organization_id, unit, name, created_at) values (:organization, 'tokens', 'Tokens', now())`,
  `insert into credit_accounts (organization_id, external_id, unit, account_id, granted, created_at, updated_at)
   select :organization, 'customer ' || n, 'tokens', ${uuid('n')}, 1000, ${AT}, ${AT} ${rows(2000)}`,
  `insert into credit_entries (organization_id, project_id, created_at, updated_at, entry_id, external_id, unit, account, amount,
     balance, cause)
   select :organization, :project, ${AT}, ${CHANGED}, ${uuid('n')}, 'customer ' || 1 + n % 2000, 'tokens', 'granted', 1, 1, 'grant'
   ${rows()}`,
  `insert into counts (project_id, list, field, value, n, fresh)
   select :project, list, '', '', ${SIZE}, false from unnest(array['profiles', 'sessions', 'subscriptions', 'transactions']) list
   union all select :project, 'subscriptions', 'product_id', 'product-' || n, 1, false ${rows(3000)}`,
]

/** SQL: the number as a UUID. */
function uuid(n: string): string {
  return `('00000000-0000-4000-8000-' || lpad((${n})::text, 12, '0'))::uuid`
}

/** The same, outside of SQL. */
export const uuidOf = (n: string) => `00000000-0000-4000-8000-${n.padStart(12, '0')}`
