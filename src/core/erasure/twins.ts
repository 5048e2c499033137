// Twins: other profiles of the project that are probably the same person, by their e-mail address or their customer.
import type { Query } from '../../lib/pg/types.ts'
import { fold } from '../../lib/text.ts'

/** A living profile `twin_id` that has the address or the customer of `profile_id`. */
export interface Twin {
  profile_id: string
  twin_id: string
  reason: 'email' | 'customer'
}

// The most twins of one profile: an address of a tester may have thousands, and the header of a response is limited.
const MOST = 50

/** SQL: whether the text is an address. Many people share a word like `none`, or what an empty form sent. */
export const isAddress = (column: string) => `${column} like '%@%'`

/** The twins of these profiles, without these profiles themselves, and those that were known when one of them was erased. */
export async function findTwins(query: Query, projectId: string, ids: string[]): Promise<Twin[]> {
  const customers = await query<{ profile_id: string; email: string }>(EMAILS_OF_CUSTOMERS, [projectId, ids])
  const owners = customers.map(({ profile_id }) => profile_id)
  const folded = customers.map(({ email }) => fold(email))
  const given = [projectId, ids, owners, folded]
  const rows = await query<{ profile_id: string; twin_id: string; by_email: string }>(TWINS, given)
  return rows.map(({ profile_id, twin_id, by_email }) => ({
    profile_id,
    twin_id,
    reason: by_email === 't' ? 'email' : 'customer',
  }))
}

/** The distinct ids of twins, sorted. */
export const idsOf = (twins: Twin[]): string[] => [...new Set(twins.map(({ twin_id }) => twin_id))].sort()

/** Remembers the twins that an erasure does not reach, for its receipt. */
export async function keepTwins(query: Query, projectId: string, twins: Twin[]): Promise<void> {
  if (twins.length === 0) return
  const pairs = [twins.map(({ profile_id }) => profile_id), twins.map(({ twin_id }) => twin_id)]
  await query(KEEP, [projectId, ...pairs])
}

/** The twins known when the profile was erased that still live. */
export async function livingTwins(query: Query, projectId: string, profileId: string): Promise<string[]> {
  const rows = await query(LIVING, [projectId, profileId])
  return rows.map(({ twin_id }) => twin_id!)
}

const EMAILS_OF_CUSTOMERS = `
  select profile_id, email from customers where project_id = $1 and profile_id = any($2) and ${isAddress('email')}`

const ORGANIZATION = '(select organization_id from projects where id = $1)'

/** SQL: these rows for each of `from`, found by their index, whatever the planner knows of the tables: `offset 0` keeps them apart. */
const each = (from: string, rows: string) => `${from} cross join lateral (${rows} offset 0) o`

const IN_REPORT = `r.organization_id = ${ORGANIZATION}`

// The customer of a profile, under all its names: the caller's, and those at the provider.
const TWINS = `
  with given as materialized (select distinct id from unnest($2::text[]) given (id)
  ), customer as materialized (
    select g.id, o.external_id from ${each('given g', 'select external_id from customers where project_id = $1 and profile_id = g.id')}
  ), named as materialized (
    select id, external_id as name from customer
    union select c.id, o.psp_customer_id from ${each(
      'customer c',
      `select distinct r.psp_customer_id from report_transactions r where ${IN_REPORT} and r.external_id = c.external_id
         and r.psp_transaction_type = 'sale' and r.status = 'succeeded' and r.psp_customer_id is not null`,
    )}
  ), address as materialized (
    select g.id, o.email_folded as email from ${each(
      'given g',
      `select p.email_folded from profiles p where p.project_id = $1 and p.id = g.id and ${isAddress('p.email_folded')}`,
    )}
    union select * from unnest($3::text[], $4::text[]) customers (id, email)
  ), pairs (profile_id, twin_id, by_email) as (
    select a.id, o.id, true from ${each(
      'address a',
      `select t.id from profiles t where t.project_id = $1 and t.email_folded = a.email and t.id <> a.id limit ${MOST} + cardinality($2)`,
    )}
    -- The import of an account at the provider names a profile after the customer there.
    union all select id, name, false from named
    union all select g.id, o.profile_id, false from ${each(
      'given g',
      `select c.profile_id from customers c
       where c.organization_id = ${ORGANIZATION} and c.external_id = g.id and c.project_id = $1`,
    )}
    union all select g.id, o.profile_id, false from ${each(
      'given g',
      `select distinct c.profile_id from report_transactions r
       join customers c on c.organization_id = r.organization_id and c.external_id = r.external_id and c.project_id = $1
       where ${IN_REPORT} and r.psp_customer_id = g.id`,
    )}
    -- Who paid is also who visited.
    ${['subscriptions', 'transactions']
      .map(
        (table) => `
    union all select g.id, o.profile_id, false from ${each(
      'given g',
      `select s.profile_id from ${table} u join sessions s on s.project_id = $1 and s.id = u.session_id
       where u.project_id = $1 and u.profile_id = g.id and s.profile_id <> g.id`,
    )}
    union all select g.id, o.profile_id, false from ${each(
      'given g',
      `select u.profile_id from sessions s join ${table} u on u.project_id = $1 and u.session_id = s.id
       where s.project_id = $1 and s.profile_id = g.id and u.profile_id <> g.id`,
    )}`,
      )
      .join('')}
    union all select w.profile_id, w.twin_id, false from given g
      join erasure_twins w on w.project_id = $1 and w.profile_id = g.id
  ), others as (
    select pairs.profile_id, pairs.twin_id, bool_or(by_email) as by_email from pairs
    where not exists (select from given g where g.id = pairs.twin_id) group by 1, 2
  ), twins as (
    select others.*, row_number() over (partition by others.profile_id order by others.twin_id) as place
    from ${each('others', 'select from profiles t where t.project_id = $1 and t.id = others.twin_id and t.anonymized_at is null')})
  select profile_id, twin_id, by_email from twins where place <= ${MOST} order by profile_id, twin_id`

const KEEP = `
  insert into erasure_twins (project_id, profile_id, twin_id)
  select distinct $1, profile_id, twin_id from unnest($2::text[], $3::text[]) twins (profile_id, twin_id)
  on conflict do nothing`

const LIVING = `
  select w.twin_id from erasure_twins w join profiles t on t.project_id = w.project_id and t.id = w.twin_id
  where w.project_id = $1 and w.profile_id = $2 and t.anonymized_at is null order by w.twin_id`
