// Compares the keys, endpoints and settings of a backup with those of the database that it replaces: a key that was revoked since the
// backup is valid again.
import { type Difference, IS_VALID_KEY, RESTORED, type RestoredMark, storeMark } from '../../core/tenants/restored.ts'
import type { Query } from '../../lib/pg/types.ts'
import { instantFromPg } from '../../lib/time.ts'
import type { Header } from './format.ts'

/** Saves the settings of the database that is being replaced; call it before the database is emptied. */
export async function keepSettings(query: Query): Promise<void> {
  await query(`create temporary table former_settings on commit drop as ${SETTINGS}`)
  // The restore of a backup once more finds nothing to compare, and what was found the first time still holds.
  await query(`create temporary table former_marks on commit drop as
    select name, value from instance where name like '${RESTORED}%'`)
}

/**
 * Compares, and stores what differs until an operator confirms it. Call it when the backup is loaded and migrated. Returns undefined
 * if there is nothing that an operator should know.
 */
export async function compareSettings(
  query: Query,
  { made_at }: Pick<Header, 'made_at'>,
): Promise<RestoredMark | undefined> {
  await query('insert into instance (name, value) select name, value from former_marks on conflict (name) do nothing')
  const [state] = await query(STATE)
  const compared = state!.compared === 't'
  if (!compared && state!.has_keys === 'f') return undefined
  const rows = compared ? await query<{ difference: string }>(DIFFERENCES) : []
  const differences = rows.map(({ difference }) => JSON.parse(difference) as Difference)
  if (compared && differences.length === 0) return undefined
  const mark = { made_at, restored_at: instantFromPg(state!.now!), compared, differences }
  await storeMark(query, mark)
  return mark
}

/** Ends what signs in to the dashboard: a link that was used and a session that was ended since the backup would be valid again. */
export async function endSignIns(query: Query): Promise<void> {
  for (const table of ['sign_in_links', 'dashboard_sessions', 'people_sessions']) await query(`delete from ${table}`)
}

// The state has every setting of an operator, without hashes and secrets. The beginning of a hash shows whether webhook secrets differ.
// A restored top-up that a customer has ended charges the card again, so only those that are on are compared.
const SETTINGS = `
  select case when k.project_id is null then 'organization key' else 'project key' end as kind, k.id::text as id,
    k.organization_id, k.project_id, k.name, k.last_four,
    jsonb_build_object('expires_at', k.expires_at::text, 'scopes', k.scopes, 'rate_limit', k.rate_limit, 'rate_limit_burst', k.rate_limit_burst) as state
  from secret_keys k where ${IS_VALID_KEY}
  union all select 'operator key', k.id::text, null, null, k.name, null,
    jsonb_build_object('expires_at', k.expires_at::text, 'scope', k.scope)
  from operator_keys k where ${IS_VALID_KEY}
  union all select 'webhook endpoint', e.id::text, p.organization_id, e.project_id, e.url, null,
    jsonb_build_object('url', e.url, 'enabled', e.enabled, 'kinds', e.kinds)
  from webhook_endpoints e join projects p on p.id = e.project_id where e.removed_at is null
  union all select 'alert destination', concat_ws('/', a.project_id, a.id), p.organization_id, a.project_id, a.shown, null,
    jsonb_build_object('address', a.shown, 'receives', a.receives)
  from alert_destinations a join projects p on p.id = a.project_id
  union all select 'merchant account', concat_ws('/', m.organization_id, m.psp, m.psp_merchant_id), m.organization_id,
    null, null, null, jsonb_build_object('currencies', m.currencies, 'region', m.region, 'key_last4', m.credentials_last4,
      'webhook_secrets', left(encode(sha256(m.webhook_secrets), 'hex'), 8))
  from merchant_accounts m where m.credentials is not null
  union all select 'alert setting', a.project_id, p.organization_id, a.project_id, null, null,
    jsonb_build_object('digest_hour', a.digest_hour, 'quiet_from', a.quiet_from, 'quiet_to', a.quiet_to)
  from alert_settings a join projects p on p.id = a.project_id
  union all select 'alert rule', concat_ws('/', a.project_id, a.id), p.organization_id, a.project_id, null, null,
    to_jsonb(a) - array['project_id', 'id', 'checked_day', 'last_value', 'fired_at', 'problem', 'created_at', 'updated_at']
  from alert_rules a join projects p on p.id = a.project_id
  union all select 'credit unit', concat_ws('/', u.organization_id, u.unit), u.organization_id, null, null, null,
    jsonb_build_object('name', u.name, 'low_below', u.low_below)
  from credit_units u
  union all select 'credit rule', concat_ws(' ', c.organization_id, c.charged, c.currency_code, c.unit), c.organization_id, null, null, null,
    jsonb_build_object('amount', c.amount, 'expires_after', c.expires_after)
  from credit_rules c
  union all select 'top-up', concat_ws(' ', t.organization_id, t.external_id, t.unit), t.organization_id, null, null, null, '{}'
  from credit_top_ups t where t.status = 'on'
  union all select 'charge cap', concat_ws(' ', c.organization_id, c.scope, c.per, nullif(c.currency_code, '')),
    c.organization_id, null, null, null, jsonb_build_object('most', c.most)
  from charge_caps c
  union all select 'closed month', concat_ws('/', f.organization_id, to_char(f.month, 'YYYY-MM')), f.organization_id,
    null, null, null, '{}'
  from finance_months f
  union all select 'bank line', concat_ws('/', b.organization_id, b.psp, b.psp_merchant_id, b.payout_id), b.organization_id,
    null, null, null, jsonb_build_object('day', b.bank_day, 'amount', b.bank_amount, 'reference', b.bank_reference)
  from provider_payouts b where b.matched_at is not null
  union all select 'followed account', concat_ws('/', i.project_id, 'stripe', i.psp_merchant_id), i.organization_id, i.project_id,
    null, null, '{}'
  from stripe_imports i where i.background and i.options ->> 'follow' = 'true' and i.status <> 'stopped'
  union all select 'installation', '', null, null, null, null, jsonb_build_object('master_key', left(n.value, 8))
  from instance n where n.name = 'master key'
  union all select 'organization', o.id, o.id, null, null, null, to_jsonb(o) - array['id', 'name', 'created_at']
  from organizations o
  union all select 'project', p.id, p.organization_id, p.id, null, null,
    to_jsonb(p) - array['id', 'organization_id', 'number', 'name', 'created_at']
  from projects p`

// A database without an organization of the backup is no later state of it.
const STATE = `
  select db_clock() as now,
    exists (select from former_settings f join organizations o on (f.kind, f.id) = ('organization', o.id)) as compared,
    exists (select from (${SETTINGS}) s where s.kind like '% key') as has_keys`

// Whole organizations and projects that are gone are what any restore loses, and so are top-ups, which customers have. Under another
// master key each webhook secret is sealed differently, so that the hashes tell nothing.
const DIFFERENCES = `
  with replaced as materialized (
    select count(distinct state) > 1 as replaced from (
      select state from former_settings where kind = 'installation'
      union all select state from (${SETTINGS}) s where kind = 'installation') keys)
  select jsonb_build_object('kind', kind, 'id', id, 'organization_id', coalesce(f.organization_id, r.organization_id),
    'project_id', coalesce(f.project_id, r.project_id), 'name', coalesce(f.name, r.name),
    'last_four', coalesce(f.last_four, r.last_four),
    'change', case when f.state is null then 'back' when r.state is null then 'gone' else 'changed' end,
    'setting', s.setting, 'before', f.state -> s.setting, 'after', r.state -> s.setting)::text as difference
  from former_settings f full join (${SETTINGS}) r using (kind, id)
  left join lateral (
    select setting from jsonb_object_keys(r.state) setting
    where f.state is not null and f.state -> setting is distinct from r.state -> setting
      and not (setting = 'webhook_secrets' and (select replaced from replaced))) s on true
  where s.setting is not null or (kind not in ('installation', 'organization', 'project') and (f.state is null or r.state is null)
    and (kind <> 'top-up' or f.state is null))
  order by kind = 'installation' desc, kind like '% key' desc, kind in ('organization', 'project') desc, coalesce(f.organization_id, r.organization_id), coalesce(f.project_id, r.project_id), kind, id, s.setting`
