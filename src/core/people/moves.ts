// The statements of a merge: $1 is the project, $2 the profile that ends, $3 the one that remains, $4 the least stamp.
import { paidAt } from '../records/payment-time.ts'
import { profileRecord } from '../records/profile.ts'
import { erasedColumns } from '../records/record.ts'
import { dayIn, zoneOf } from '../tenants/reporting.ts'

/** The tables whose rows move to the remaining profile. */
export const MOVED = ['sessions', 'subscriptions', 'transactions', 'customers'] as const

const STAMP = "greatest(db_clock(), $4::timestamptz, updated_at + interval '1 microsecond')"
const OF_BOTH = 'project_id = $1 and profile_id in ($2, $3)'

/** Marks the days whose figures depend on which of the two a record belongs to. */
export const MARK_FIGURES = `
  insert into figure_marks (project_id, family, day)
  select distinct $1, family, ${dayIn('at', zoneOf('$1'))} from (
    select 'visits', created_at from sessions where ${OF_BOTH}
    union all select 'experiments', created_at from sessions where ${OF_BOTH} and experiment_id is not null
    union all select family, created_at from transactions cross join (values ('sales'), ('subscriptions')) f (family)
      where ${OF_BOTH}
    union all select 'subscriptions', d.at from subscriptions u cross join lateral (values (u.created_at),
        (subscription_end(u.status, u.period_ends_at, u.cancelled_at, u.paused_at, u.created_at))) d (at)
      where ${OF_BOTH}
    union all select 'renewals', period_ends_at from subscriptions
      where ${OF_BOTH} and status in ('active', 'trialing') and renews
    union all select 'sales', ${paidAt('r')} from customers c
      join report_transactions r on r.organization_id = c.organization_id and r.external_id = c.external_id
      where c.project_id = $1 and c.profile_id in ($2, $3)
  ) touched (family, at) where at is not null and isfinite(at)`

// The remaining profile gets what it lacks, so that nothing is lost.
const GIVEN = 'profiles f where f.project_id = $1 and f.id = $2 and t.project_id = $1 and t.id = $3'
const COALESCED = ['phone', 'password_hash', 'country', 'locale', 'funnel_id']

/** Run them before the moves. */
export const FILL = [
  // Their nested e-mail changes: a sync must see it.
  `update subscriptions set updated_at = ${STAMP}
   where project_id = $1 and profile_id = $3
     and exists (select from profiles t, ${GIVEN} and t.email is null and f.email is not null)`,
  `insert into counts (project_id, list, field, value, n)
   select $1, 'profiles', 'funnel_id', f.funnel_id, 1 from profiles t, ${GIVEN}
     and t.funnel_id is null and f.funnel_id is not null`,
  `update profiles t set ${COALESCED.map((name) => `${name} = coalesce(t.${name}, f.${name})`)},
     email = coalesce(t.email, f.email), email_folded = case when t.email is null then f.email_folded else t.email_folded end,
     email_erased = t.email_erased or f.email_erased,
     integrations = case when t.integrations::text = '{}' then f.integrations when f.integrations::text = '{}' then t.integrations
       else (f.integrations::jsonb || t.integrations::jsonb)::json end,
     updated_at = ${STAMP.replace('updated_at', 't.updated_at')} from ${GIVEN}`,
]

/** Repeating them changes nothing. */
export const MOVES = [
  // Entries of credits are exported with the profile of their customer.
  'select await_credit_entries((select organization_id from projects where id = $1)) where $2 <> $3',
  `update credit_entries e set updated_at = ${STAMP.replace('updated_at', 'e.updated_at')} from customers c
   where c.project_id = $1 and c.profile_id = $2 and $2 <> $3
     and e.organization_id = c.organization_id and e.external_id = c.external_id`,
  ...MOVED.map(
    (table) => `update ${table} set profile_id = $3, updated_at = ${STAMP} where project_id = $1 and profile_id = $2`,
  ),
  // They hold data of the person: an erasure must find them.
  'update events set profile_id = $3 where project_id = $1 and profile_id = $2',
]

/** Removes the personal data of the profile that ends, and makes its id, with all its other ids, stand for the one that remains. */
export const LEAVE = [
  `update profiles set ${erasedColumns(profileRecord)}, anonymized_at = $4::timestamptz, updated_at = ${STAMP}
   where project_id = $1 and id = $2 and $3 <> id`,
  `update profile_aliases set profile_id = $3 where project_id = $1 and profile_id = $2`,
  `insert into profile_aliases (project_id, alias, profile_id, created_at) values ($1, $2, $3, db_clock())`,
]
